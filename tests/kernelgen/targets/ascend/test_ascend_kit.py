"""What an owner of a card takes home: kernel_meta, the launch script on a card that the simulator plays, machines by name."""

from __future__ import annotations

import ctypes
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from kernel_examples import Writer, momentum, softmax, tensor, two_phase_branches

from kernelgen.__main__ import compile_files
from kernelgen.ascend_package import Kit, make_kit
from kernelgen.ascendc.reader import read_kernel
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.write import dump_desc
from kernelgen.driver import compile
from kernelgen.errors import ArgumentError, BackendUnavailable
from kernelgen.machines.ascend.machines import MACHINES, find_machine
from kernelgen.samples.inputs import draw
from kernelgen.simulators.ascendc import simulate
from kernelgen.targets import find_target
from kernelgen.targets.ascend.entry import SimulatedEntry
from kernelgen.targets.ascend.package import launch_on_card
from kernelgen.targets.ascend.package.launch_on_card import LaunchError, main, value_of
from kernelgen.targets.ascend.proof.statement_count import statements_run
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, DType
from kernelgen.verify.record import Status


def product(tail: str = "") -> KernelDesc:
    """A matrix product in half, alone or with an operator of the vector cores behind it."""
    w, a, b = Writer(), tensor("a", 48, 32, dtype=FLOAT16), tensor("b", 32, 64, dtype=FLOAT16)
    y = w.op("MatMul", a, b, shape=(48, 64), transpose_a=False, transpose_b=False, dst_type="float16")
    return w.desc("product", (a, b), w.op(tail, y, shape=(48, 64)) if tail else y)


def added(dtype: DType) -> KernelDesc:
    w, x, y = Writer(), tensor("x", 5, 40, dtype=dtype), tensor("y", 5, 40, dtype=dtype)
    return w.desc("added", (x, y), w.op("Add", x, y, shape=(5, 40)))


KERNELS = {
    "half": added(FLOAT16),
    "bfloat16": added(BFLOAT16),
    "cube": product(),
    "cube and vector": product("Sqrt"),
    "softmax": softmax(64, 300),
    "momentum": momentum(),
    "two phases": two_phase_branches(),
    "all sizes": softmax(sym("M"), sym("N")),
}


@cache
def kit_of(name: str) -> Kit:
    return make_kit(KERNELS[name], find_target("ascend"))


# ---------------------------------------------------------------- kernel_meta


def test_the_document_has_the_loaders_keys_and_says_how_to_launch() -> None:
    kit = kit_of("softmax")
    meta = kit.meta
    text = kit.files["softmax.cpp"]
    assert list(meta)[:9] == [
        "binFileName", "binFileSuffix", "blockDim", "kernelName", "magic", "sha256", "coreType", "intercoreSync", "opParaSize",
    ]  # fmt: skip
    assert (meta["kernelName"], meta["binFileSuffix"]) == ("softmax", ".o")
    assert 1 < meta["blockDim"] <= 48
    assert (meta["magic"], meta["coreType"]) == ("RT_DEV_BINARY_MAGIC_ELF_AIVEC", "VectorCore")
    assert meta["sha256"] == "", "there is no binary yet"
    assert meta["sourceSha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert [(a["role"], a["dtype"], a["shape"]) for a in meta["arguments"]] == [
        ("input", "float32", [64, 300]), ("output", "float32", [64, 300]),
    ]  # fmt: skip
    assert 0 < meta["ubBytes"] <= find_machine("910B").memories["UB"]
    assert json.loads(kit.files["softmax.info"]) == json.loads(json.dumps(dump_desc(kit.desc)))


def test_open_sizes_are_fields_of_the_tiling_struct() -> None:
    meta = kit_of("all sizes").meta
    assert meta["tiling"]["fields"] == ["M", "N"]
    assert meta["opParaSize"] == 8
    assert meta["blockDim"] == 48
    assert meta["arguments"][0]["bytes"] == "4*M*N"


def test_cores_that_are_whole_have_another_magic() -> None:
    kernel = compile(KERNELS["softmax"], "ascend")
    files = find_target("ascend:950").files
    assert files is not None
    assert json.loads(files(kernel.source, kernel.nest)["softmax.json"])["npuArch"] == "dav-3510"
    whole = find_target("ascend:310P").files
    assert whole is not None
    meta = json.loads(whole(kernel.source, kernel.nest)["softmax.json"])
    assert (meta["magic"], meta["coreType"], meta["blockDim"]) == ("RT_DEV_BINARY_MAGIC_ELF", "AiCore", 8)


def test_products_name_the_cores_they_run_on() -> None:
    cube, both = kit_of("cube").meta, kit_of("cube and vector").meta
    assert (cube["coreType"], cube["magic"], cube["intercoreSync"]) == ("AiCore", "RT_DEV_BINARY_MAGIC_ELF_AICUBE", 0)
    assert (both["coreType"], both["intercoreSync"], both["taskRation"]) == ("MIX", 1, "1:2")
    assert both["workspace"]["num"] == 1


# ---------------------------------------------------------------- machines by name


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_stands_behind_a_colon(name: str) -> None:
    entry = find_target(f"ascend:{name}").load("", compile(KERNELS["softmax"], "ascend").nest)
    assert isinstance(entry, SimulatedEntry)
    assert entry.machine is find_machine(name)
    assert find_target(f"ascend:{name.lower()}").files is not None


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("ascend:910C", "unknown Ascend machine '910C'; known: 910A"),
        ("ascend:missing.ini", "missing.ini: no such platform_config file"),
        ("python:910A", "target 'python' has one machine only"),
    ],
)
def test_wrong_machines_are_refused(target: str, said: str) -> None:
    with pytest.raises(BackendUnavailable, match=said):
        find_target(target)


# ---------------------------------------------------------------- the run that goes with a kernel


@pytest.mark.parametrize("name", KERNELS)
def test_a_kit_was_run(name: str) -> None:
    kit = kit_of(name)
    assert kit.record.status is Status.PASSED, kit.record.message
    assert kit.rehearsal is not None
    assert kit.rehearsal.report.clean
    assert not kit.rehearsal.scaled
    picture, trace = kit.timeline.values()
    assert picture.startswith("<svg")
    events = json.loads(trace)["traceEvents"]
    assert {event["pid"] for event in events} == {kit.rehearsal.report.slowest}


@pytest.mark.parametrize(("limit", "value"), [("STATEMENTS", 100), ("MOST_BYTES", 100_000)])
def test_a_kernel_that_takes_long_runs_at_smaller_shapes(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(f"kernelgen.ascend_package.{limit}", value)
    kit = make_kit(KERNELS["softmax"], find_target("ascend"))
    assert kit.rehearsal is not None
    assert kit.rehearsal.scaled
    assert kit.rehearsal.shapes[0] != (64, 300)
    assert kit.meta["arguments"][0]["shape"] == [64, 300], "the files are the kernel's own"
    assert kit.data is None, "the run's arrays do not fit the kernel"


def test_statements_are_counted_without_a_run() -> None:
    kernel = read_kernel(compile(KERNELS["softmax"], "ascend").source)
    once, often = (statements_run(kernel, blocks, {}) for blocks in (1, 48))
    assert 48 < once <= often < 40_000


def test_other_targets_have_no_kit() -> None:
    with pytest.raises(ArgumentError, match="target cpu has no files to take home"):
        make_kit(KERNELS["softmax"], find_target("cpu"))


# ---------------------------------------------------------------- the launch script


class FakeCard:
    """The functions of both libraries, in this process: memory is ctypes', a launch is the simulator's."""

    def __init__(self, meta: Mapping[str, Any], fails: str = "") -> None:
        self.meta = meta
        self.fails = fails
        self.memory: dict[int, Any] = {}
        self.calls: list[str] = []
        self.text = b""
        self.compiled: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("acl"):
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if name == self.fails:
                return 507018
            work = getattr(self, f"do_{name}", None)
            return (work(*arguments) if work else None) or 0

        return call

    def do_aclrtcCreateProg(self, program: Any, text: Any, name: bytes, *_: Any) -> None:
        self.text = text.value

    def do_aclrtcCompileProg(self, program: Any, count: int, options: Any) -> int:
        self.compiled.append(options[0])
        return 176003 if b"broken" in self.text else 0

    def do_aclrtcGetCompileLogSize(self, program: Any, size: Any) -> None:
        size._obj.value = 16

    def do_aclrtcGetCompileLog(self, program: Any, log: Any) -> None:
        log.value = b"line 1: broken"

    def do_aclrtcGetBinDataSize(self, program: Any, size: Any) -> None:
        size._obj.value = len(self.text)

    def do_aclrtcGetBinData(self, program: Any, binary: Any) -> None:
        ctypes.memmove(binary, self.text, len(self.text))

    def do_aclrtMalloc(self, pointer: Any, size: Any, policy: int) -> None:
        block = ctypes.create_string_buffer(size.value)
        pointer._obj.value = ctypes.addressof(block)
        self.memory[ctypes.addressof(block)] = block

    def do_aclrtFree(self, pointer: Any) -> None:
        del self.memory[pointer.value]

    def do_aclrtMemcpy(self, target: Any, room: Any, source: Any, size: Any, kind: int) -> None:
        assert size.value <= room.value
        ctypes.memmove(target, source, size.value)

    def do_aclrtBinaryLoadFromData(self, binary: bytes, size: Any, options: Any, loaded: Any) -> None:
        option = options._obj.options[0]
        assert (option.type, option.value[0]) == (2, launch_on_card.MAGICS[self.meta["magic"]])
        assert binary == self.text or not self.text
        self.text = binary

    def do_aclrtLaunchKernelWithArgsArray(self, function: Any, blocks: Any, stream: Any, cfg: Any, values: Any) -> None:
        arguments = self.meta["arguments"]
        fields = self.meta["tiling"]["fields"]
        struct = ctypes.cast(values[len(arguments)], ctypes.POINTER(ctypes.c_int32)) if fields else []
        tiling = {name: int(struct[k]) for k, name in enumerate(fields)}
        arrays: dict[str, np.ndarray] = {}
        for argument, address in zip(arguments, values, strict=False):
            block = self.memory[ctypes.cast(address, ctypes.POINTER(ctypes.c_void_p))[0] or 0]
            count = value_of(argument["bytes"], tiling) // np.dtype(argument["dtype"]).itemsize
            arrays[argument["name"]] = np.frombuffer(block, argument["dtype"], count)
        roles = {a["name"]: a["role"] for a in arguments}
        report = simulate(
            self.text.decode(),
            arrays,
            machine=find_machine("910B"),
            blocks=blocks.value,
            outputs=[name for name, role in roles.items() if role == "output"],
            updated=[name for name, role in roles.items() if role in ("updated", "workspace")],
            tiling=tiling,
        )
        assert report.clean, str(report)


def launched(folder: Path, kit: Kit, *more: str, fails: str = "") -> tuple[int, FakeCard]:
    """The exit code of the script on a kit that was written to a folder, and the card that it ran on."""
    kit.write(folder, folder)
    meta = folder / f"{kit.meta['binFileName']}.json"
    card = FakeCard(kit.meta, fails)
    return main([str(meta), *more], load=lambda name: card), card


@pytest.mark.parametrize("name", KERNELS)
def test_the_script_compiles_runs_and_compares(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kit = kit_of(name)
    code, card = launched(tmp_path, kit)
    assert code == 0, capsys.readouterr().out
    assert "fine" in capsys.readouterr().out
    assert card.compiled == [b"--npu-arch=dav-2201"]
    assert not card.memory, "all memory is given back"
    assert card.calls[0] == "aclInit"
    assert card.calls[-1] == "aclFinalize"


def test_the_binary_is_kept_with_its_digest(tmp_path: Path) -> None:
    kit = kit_of("softmax")
    launched(tmp_path, kit)
    meta = json.loads((tmp_path / "softmax.json").read_text())
    assert meta["sha256"] == hashlib.sha256((tmp_path / "softmax.o").read_bytes()).hexdigest()
    again = FakeCard(kit.meta)
    assert main([str(tmp_path / "softmax.json")], load=lambda name: again) == 0
    assert not again.compiled, "the binary beside it is used"


def test_a_wrong_result_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kit = kit_of("softmax")
    kit.write(tmp_path, tmp_path)
    with np.load(tmp_path / "softmax.npz") as data:
        spoiled = {name: data[name] + (1 if name.startswith("expected") else 0) for name in data.files}
    np.savez(tmp_path / "other.npz", **spoiled)
    code, _ = launched(tmp_path, kit, "--data", str(tmp_path / "other.npz"))
    assert code == 1
    assert "WRONG" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        ("aclrtcCreateProg", "aclrtcCreateProg gave 507018"),
        ("aclrtSynchronizeStream", "aclrtSynchronizeStream gave 507018"),
    ],
)
def test_what_a_library_says_no_to_is_named(tmp_path: Path, fails: str, said: str) -> None:
    with pytest.raises(LaunchError, match=said):
        launched(tmp_path, kit_of("momentum"), fails=fails)


def test_a_text_that_was_changed_is_not_compiled(tmp_path: Path) -> None:
    kit = kit_of("momentum")
    kit.write(tmp_path, tmp_path)
    name = kit.meta["binFileName"]
    (tmp_path / f"{name}.cpp").write_text("broken")
    with pytest.raises(LaunchError, match="is not the text that"):
        main([str(tmp_path / f"{name}.json")], load=lambda _: FakeCard(kit.meta))
    with pytest.raises(LaunchError, match="does not compile:\nline 1: broken"):
        launch_on_card.compile_text(FakeCard(kit.meta), b"broken", name, "dav-2201")


def test_data_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    kit = kit_of("softmax")
    (given,) = draw(kit.desc)
    name = kit.meta["arguments"][0]["name"]
    for key, said in (("other", "the data lacks"), (name, "expected float32")):
        np.savez(tmp_path / "data.npz", **{key: given[:3]})  # pyright: ignore[reportArgumentType]  # any array
        with pytest.raises(LaunchError, match=said):
            launched(tmp_path, kit, "--data", str(tmp_path / "data.npz"))


@pytest.mark.parametrize(("text", "expected"), [(12, 12), ("4*M*N", 60), ("M - 2", 1), ("-M + 2*N*N", 47)])
def test_sizes_are_sums_of_products(text: int | str, expected: int) -> None:
    assert value_of(text, {"M": 3, "N": 5}) == expected


# ---------------------------------------------------------------- the command


def test_the_command_writes_a_kit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "softmax.info"
    path.write_text(json.dumps(dump_desc(softmax(8, 40))))
    folder = tmp_path / "kit"
    with pytest.raises(SystemExit, match="0"):
        run_compile(path, folder)
    assert sorted(one.name for one in folder.iterdir()) == [
        "launch.py", "softmax.cpp", "softmax.info", "softmax.json", "softmax.npz", "softmax.svg", "softmax.trace.json",
    ]  # fmt: skip
    assert "estimate, never measured by us" in capsys.readouterr().out


def run_compile(path: Path, folder: Path) -> None:
    """``compile PATH --target ascend --output FOLDER --timeline``."""
    try:
        compile_files([path], "ascend", output=folder, timeline=True)
    except typer.Exit as done:
        raise SystemExit(done.exit_code) from done
