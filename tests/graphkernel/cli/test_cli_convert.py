"""The command convert: MindSpore Lite's words, our files; for Ascend also the kernels, simulated, and a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import graphkernel as gk
from graphkernel import ops
from graphkernel.cli import app
from graphkernel.errors import FrontendError, OptionError
from graphkernel.export.kernels import export
from graphkernel.export.summary import VENDOR, NetworkSummary
from graphkernel.ops import OPS
from graphkernel.ops.tensor.tensor import Tensor
from graphkernel.options import Options
from graphkernel.passes.base import Context
from graphkernel.passes.shape.kernel_packet import is_packet, kernel_packet
from kernelgen.ascend_package import Kit
from kernelgen.composite.description import KernelDesc
from kernelgen.tensor.text import parse
from kernelgen.verify.record import Record, Status

RUNNER = CliRunner()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    gk.save(gk.trace(lambda x: ops.exp(x * 2.0 + 1.0), gk.spec(("N", 4))), tmp_path / "net.gk")
    (tmp_path / "akg.cfg").write_text("# how the page of MindSpore Lite writes it\n[graph_kernel_param]\nopt_level=2\n")
    return tmp_path


def convert(folder: Path, *more: str) -> Result:
    arguments = ["--fmk=GK", f"--modelFile={folder / 'net.gk'}", f"--outputFile={folder / 'out'}"]
    found = RUNNER.invoke(app, ["convert", *arguments, *more])
    if isinstance(found.exception, Exception):
        raise found.exception
    return found


def kernels(folder: Path) -> int:
    return sum(node.body is not None for node in gk.load(folder / "out.gk").operators)


@pytest.mark.parametrize(
    ("orientation", "expected"), [("none", 0), ("general", 1), ("gpu_oriented", 1), ("ascend_oriented", 1)]
)
def test_the_configuration_file_switches_graph_kernels_on(folder: Path, orientation: str, expected: int) -> None:
    convert(folder, f"--configFile={folder / 'akg.cfg'}", f"--optimize={orientation}")
    assert kernels(folder) == expected


@pytest.mark.parametrize("orientation", ["general", "gpu_oriented", "ascend_oriented"])
@pytest.mark.parametrize(
    "command",
    [
        *(("run", "--opt-level", level) for level in "0123"),
        ("bench", "--rounds", "1"),
        ("report", "-o", "report.html"),
        ("check",),
        ("profile",),
    ],
    ids=" ".join,
)
def test_a_converted_model_goes_through_the_other_commands(
    folder: Path, monkeypatch: pytest.MonkeyPatch, orientation: str, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(folder)
    linear = gk.trace(lambda x, w, b: ops.softmax(x @ w + b), gk.spec((4, 8)), gk.spec((8, 6)), gk.spec((6,)))
    gk.save(linear, folder / "net.gk")
    convert(folder, f"--configFile={folder / 'akg.cfg'}", f"--optimize={orientation}")
    name, *options = command
    found = RUNNER.invoke(app, [name, "out.gk", *options])
    assert found.exit_code == 0, found.output


def test_without_a_configuration_file_nothing_is_fused_and_a_line_says_so(folder: Path) -> None:
    assert "write opt_level=2 below [graph_kernel_param]" in convert(folder).stderr
    assert kernels(folder) == 0


def test_other_flags_stand_beside_the_level(folder: Path) -> None:
    (folder / "akg.cfg").write_text("[graph_kernel_param]\nopt_level=2\ndisable_cluster_ops=Exp\n")
    convert(folder, f"--configFile={folder / 'akg.cfg'}")
    assert [node.op.name for node in gk.load(folder / "out.gk").operators] == ["Fused", "Exp"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[graph_kernel]\nopt_level=2\n", r"no section \[graph_kernel_param\] \(did you mean 'graph_kernel'\?\)"),
        ("opt_level=2\n", "cannot be read: File contains no section headers"),
        ("[graph_kernel_param]\nopt_levle=2\n", r"unknown flag 'opt_levle' \(did you mean 'opt_level'\?\)"),
    ],
)
def test_a_wrong_configuration_is_refused(folder: Path, text: str, said: str) -> None:
    (folder / "akg.cfg").write_text(text)
    with pytest.raises(OptionError, match=said):
        convert(folder, f"--configFile={folder / 'akg.cfg'}")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--optimize=gpu", "--optimize=gpu: one of none, general, gpu_oriented, ascend_oriented"),
        ("--fmk=TFLITE", "--fmk=TFLITE: one of ONNX, GK, COMPOSITE"),
        ("--fmk=ONNX", "--fmk=ONNX reads .onnx, not"),
        ("--configFile=nothing.cfg", "--configFile=nothing.cfg: cannot be read"),
        ("--optimize=general:910A", "--optimize=general:910A: a machine stands behind ascend_oriented only"),
    ],
)
def test_wrong_words_are_refused(folder: Path, more: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        convert(folder, more)


# ---------------------------------------------------------------- for Ascend


def two_kernels() -> gk.Graph:
    """softmax(x @ w) in two places, and a transpose: MatMul stays outside, the softmaxes are one kernel."""

    def net(x: Any, w: Any) -> Any:  # values of the trace
        first = ops.softmax(ops.matmul(x, w), -1)
        return ops.softmax(ops.matmul(first, w), -1)

    return gk.trace(net, gk.spec((24, 24)), gk.spec((24, 24)))


def converted(folder: Path, graph: gk.Graph, *more: str) -> tuple[Result, Path, dict[str, Any]]:
    gk.save(graph, folder / "net.gk")
    found = convert(folder, f"--configFile={folder / 'akg.cfg'}", *more)
    kernels_folder = folder / "out_kernels"
    return found, kernels_folder, json.loads((kernels_folder / "report.json").read_text())


def test_ascend_writes_kernels_their_meta_and_a_report(folder: Path) -> None:
    found, written, report = converted(folder, two_kernels(), "--optimize=ascend_oriented")
    (kernel,) = report["kernels"]
    name = kernel["name"]
    assert len(kernel["calls"]) == 2
    assert (kernel["status"], kernel["run"]["scaled"]) == ("passed", False)
    assert report["outside"] == {"MatMul": 2}
    assert {one.relative_to(written).as_posix() for one in written.rglob("*.*")} == {
        "network.json", "report.html", "report.json", "kernel_meta/launch.py",
        *(f"kernel_meta/{name}.{ending}" for ending in ("cpp", "json", "info", "npz")),
        *(f"timelines/{name}.{ending}" for ending in ("svg", "trace.json")),
    }  # fmt: skip
    assert f"1/1 {name}: passed" in found.stderr
    assert (
        "2 kernel calls, 1 distinct: 1 passed in the simulator, 0 failed, 0 refused; 2 operators left to the vendor (2 MatMul)"
        in found.stderr
    )
    page = (written / "report.html").read_text()
    assert f"timelines/{name}.svg" in page
    assert "never measured by us" in page


def test_the_line_counts_every_operator_of_the_network_that_is_no_kernel(folder: Path) -> None:
    """Also those of kernels that were refused; not views, for which nothing runs."""

    def net(x: Tensor, w: Tensor) -> Tensor:
        y = ops.reshape(ops.exp(x), (2, 2, 8)) @ w  # a product and a view
        return ops.sin(ops.cast(y, "float64")) + ops.cos(ops.cast(y, "float64"))  # which no kernel computes

    graph = gk.trace(net, gk.spec((4, 8)), gk.spec((8, 8)))
    found, written, report = converted(folder, graph, "--optimize=ascend_oriented")
    nodes = json.loads((written / "network.json").read_text())["nodes"]
    others = [node["operator"] for node in nodes if "kernel" not in node]
    run = [name for name in others if name != "Reshape"]
    assert len(run) >= 3
    assert sum(report["outside"].values()) == len(run)
    assert report["views"] == len(others) - len(run)
    assert f"{len(run)} operators left to the vendor (" in found.stderr
    assert all(name in found.stderr for name in run)


def test_the_network_says_what_runs_in_which_order(folder: Path) -> None:
    _, written, report = converted(folder, two_kernels(), "--optimize=ascend_oriented")
    network = json.loads((written / "network.json").read_text())
    assert [node["operator"] for node in network["nodes"]] == ["MatMul", "Fused", "MatMul", "Fused"]
    assert network["nodes"][1]["kernel"] == report["kernels"][0]["name"]
    assert network["nodes"][1]["inputs"] == [network["nodes"][0]["name"]]
    assert network["outputs"] == [network["nodes"][3]["name"]]


def test_the_machine_stands_behind_the_orientation(folder: Path) -> None:
    _, written, report = converted(folder, two_kernels(), "--optimize=ascend_oriented:950")
    meta = json.loads((written / "kernel_meta" / f"{report['kernels'][0]['name']}.json").read_text())
    assert (report["machine"], meta["npuArch"]) == ("950", "dav-3510")
    with pytest.raises(OptionError, match="unknown Ascend machine '910C'"):
        convert(folder, f"--configFile={folder / 'akg.cfg'}", "--optimize=ascend_oriented:910C")


def test_a_platform_config_file_is_a_machine(folder: Path) -> None:
    sizes = "l0_a_size=65536\nl0_b_size=65536\nl0_c_size=131072\nl1_size=524288\nub_size=196608\n"
    cores = "[version]\nSoC_version=Ascend910B4\n[SoCInfo]\nai_core_cnt=20\nvector_core_cnt=40\n"
    (folder / "B4.ini").write_text(f"{cores}[AICoreSpec]\ncube_freq=1500\n{sizes}")
    _, written, report = converted(folder, two_kernels(), f"--optimize=ascend_oriented:{folder / 'B4.ini'}")
    meta = json.loads((written / "kernel_meta" / f"{report['kernels'][0]['name']}.json").read_text())
    assert meta["machine"] == "Ascend910B4"
    assert meta["blockDim"] <= 40


def refused(desc: KernelDesc) -> Kit:
    return Kit(desc, Record(desc.name, Status.SKIPPED, "unsupported-op", "[unsupported-op] no such <instruction>"))


def summary_of(folder: Path, kit: Any) -> tuple[gk.Graph, NetworkSummary]:
    graph = two_kernels()
    return export(graph, gk.optimize(graph, 2, "ascend"), folder, "910B", kit)


def test_what_has_no_kernel_stays_with_the_vendors_operators(folder: Path) -> None:
    runnable, summary = summary_of(folder, refused)
    assert not any(node.body is not None for node in runnable.operators)
    assert (summary.count(VENDOR), summary.kernels[0].reason) == (1, "unsupported-op")
    assert "no such &lt;instruction&gt;" in (folder / "report.html").read_text()
    assert not (folder / "kernel_meta").exists()


def test_a_packet_that_stays_with_the_vendor_is_operators_and_no_refused_kernel(folder: Path) -> None:
    graph = parse(
        """
        graph f(x: f32[8*N], y: f32[N, 4]) {
          t0: i64[2] = Shape(y)
          const c0: i64[2] = [2, 1]
          t1: i64[2] = Mul(t0, c0)
          t2: f32[2*N, 4] = DynamicReshape(x, t1, shape=(2*N, 4))
          return t2
        }
        """,
        OPS,
    )
    packed = kernel_packet(graph, Context(Options.parse("")))
    assert any(map(is_packet, packed.operators))
    runnable, summary = export(graph, packed, folder, "910B", refused)
    assert (summary.kernels, dict(summary.outside)) == ((), {"DynamicReshape": 1, "Mul": 1, "Shape": 1})
    assert not any(map(is_packet, runnable.operators))


def test_a_wrong_kernel_is_counted_and_kept_in_the_graph(folder: Path) -> None:
    def wrong(desc: KernelDesc) -> Kit:
        return Kit(desc, Record(desc.name, Status.FAILED, "wrong-answer", "y[3] is 2, expected 1"))

    runnable, summary = summary_of(folder, wrong)
    assert any(node.body is not None for node in runnable.operators)
    assert summary.headline.count("1 failed") == 1


def test_an_extent_that_is_given_is_fixed_in_the_result(folder: Path) -> None:
    convert(folder, f"--configFile={folder / 'akg.cfg'}", "--dim", "N=3")
    assert [value.type.shape for value in gk.load(folder / "out.gk").inputs] == [(3, 4)]
    with pytest.raises(FrontendError, match="M"):
        convert(folder, "--dim", "M=3")
