"""Packages: the same results as what was saved, the same bytes in each build, no compiler at loading, and what is refused."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import OptionError, PackageError
from graphkernel.packages.container import PackageReader
from graphkernel.packages.manifest import FORMAT, MANIFEST, PROGRAM, WEIGHTS, Machine
from graphkernel.packages.tensors import read_tensors
from graphkernel.runtime.executable import Executable
from kernelgen.native import mapped
from kernelgen.system.digest import digest
from kernelgen.tensor.bind import concrete_shape

pytestmark = pytest.mark.skipif(not mapped.is_supported(), reason="packages are made on x86-64 Linux")

WEIGHT = np.random.default_rng(0).normal(size=(32, 16)).astype(np.float32)
WIDE = WEIGHT.astype(np.float64)
X = np.random.default_rng(1).normal(size=(4, 32)).astype(np.float32)


def product(x):
    """By onnxruntime, which has those of float64."""
    return ops.cast(ops.matmul(ops.cast(x, "float64"), WIDE), "float32")


def net(x):
    wide = product(x)
    return ops.softmax(ops.relu(wide) * 2.0 + 1.0, axis=-1), ops.sigmoid(x)


def traced(rows: int | str = 4) -> gk.Graph:
    return gk.trace(net, gk.spec((rows, 32), "float32"))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    gk.compile(traced()).save(tmp_path / "net.gkx")
    return tmp_path / "net.gkx"


def same(found: tuple[np.ndarray, ...], expected: tuple[np.ndarray, ...]) -> bool:
    return len(found) == len(expected) and all(map(np.array_equal, found, expected))


def test_it_gives_the_same_results(package: Path) -> None:
    loaded = gk.load_compiled(package)
    assert same(loaded(X), gk.compile(traced())(X))
    assert loaded.graph == gk.compile(traced()).graph
    assert loaded.report.kernels
    assert all(kernel.cached for kernel in loaded.report.kernels)


def in_place(x, y):
    ops.assign(x, x + y)
    return ops.exp(y)


def mixed(x):
    return ops.cast(x, "bfloat16") * 3.0, ops.reduce_sum(x, axis=0), product(x)


def viewed(x):
    view = ops.reshape(ops.matmul(x, WIDE), (16, 4))  # of one region's result, for another one's operand
    return ops.matmul(view, ops.reshape(ops.exp(view), (4, 16)))


NETS: dict[str, Callable[[], gk.Graph]] = {
    "symbols": lambda: traced("N"),
    "a view between regions": lambda: gk.trace(viewed, gk.spec((4, 32), "float64")),
    "several types": lambda: gk.trace(mixed, gk.spec(("N", 32), "float32")),
    "inputs written in place": lambda: gk.trace(in_place, gk.spec((64,), "float32"), gk.spec((64,), "float32")),
    "threads": lambda: gk.trace(lambda x: ops.exp(x) + 1.0, gk.spec((2000, 512), "float32")),
    "no kernel": lambda: gk.trace(lambda x: ops.matmul(x, WIDE), gk.spec((4, 32), "float64")),
    "complex constants": lambda: gk.trace(
        lambda x: x * np.full((32,), 1 + 2j, np.complex64), gk.spec((4, 32), "complex64")
    ),
    "bfloat16 constants": lambda: gk.trace(
        lambda x: x * gk.ops.cast(np.linspace(0, 1, 32).astype(np.float32), "bfloat16"), gk.spec((4, 32), "bfloat16")
    ),
}


@pytest.mark.parametrize("name", NETS)
def test_what_a_graph_may_hold(name: str, tmp_path: Path) -> None:
    graph = NETS[name]()
    compiled = gk.compile(graph)
    compiled.save(tmp_path / "net.gkx")
    loaded = gk.load_compiled(tmp_path / "net.gkx")
    arrays: list[np.ndarray] = []
    for number, type_ in enumerate(value.type for value in graph.inputs):
        shape = concrete_shape(type_.shape, {"N": 6})
        arrays.append(np.random.default_rng(number).normal(size=shape).astype(type_.dtype.numpy))
    others = [array.copy() for array in arrays]
    assert same(loaded(*others), compiled(*arrays))
    assert same(tuple(others), tuple(arrays))  # what was written in place too


def test_two_builds_are_equal_to_the_byte(package: Path, tmp_path: Path) -> None:
    program = (
        "import sys, graphkernel as gk\n"
        "from tests.graphkernel.packages.test_packages import traced\n"
        "gk.compile(traced()).save(sys.argv[1])"
    )
    other = tmp_path / "other.gkx"
    subprocess.run([sys.executable, "-c", program, str(other)], check=True, timeout=120)
    assert other.read_bytes() == package.read_bytes()


def test_what_was_loaded_can_be_saved_again(package: Path, tmp_path: Path) -> None:
    gk.load_compiled(package).save(tmp_path / "again.gkx")
    assert (tmp_path / "again.gkx").read_bytes() == package.read_bytes()


def test_loading_needs_no_compiler(package: Path) -> None:
    program = (
        "import sys, numpy as np, graphkernel as gk\n"
        "exe = gk.load_compiled(sys.argv[1])\n"
        "assert len(exe(np.ones((4, 32), np.float32))) == 2\n"
        "heavy = ('islpy', 'llvmlite', 'onnx.', 'pydantic', 'kernelgen.poly', 'kernelgen.targets')\n"
        "assert not [name for name in sys.modules if name.startswith(heavy)]"
    )
    subprocess.run([sys.executable, "-c", program, str(package)], check=True, timeout=120)


def test_weights_lie_in_the_file(package: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        assert archive.testzip() is None
        held = {entry.filename: entry.file_size for entry in archive.infolist()}
    assert list(held)[:3] == [WEIGHTS, MANIFEST, PROGRAM]
    arrays = read_tensors(PackageReader.mapped(package).view(WEIGHTS))
    assert any(np.array_equal(array, WEIGHT) for array in arrays.values())
    assert not any(array.flags.writeable or array.flags.owndata for array in arrays.values())
    assert all(size < WEIGHT.nbytes for name, size in held.items() if name.startswith("regions/"))


def test_it_survives_a_pickle(package: Path) -> None:
    assert same(pickle.loads(pickle.dumps(gk.load_compiled(package)))(X), gk.compile(traced())(X))


Change = Callable[[dict[str, bytes]], None]


def altered(package: Path, change: Change) -> Path:
    """The package with other contents of entries, as an archive that is whole."""
    with zipfile.ZipFile(package) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    change(contents)
    with zipfile.ZipFile(package, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return package


def with_manifest(**fields: object) -> Change:
    def change(contents: dict[str, bytes]) -> None:
        contents[MANIFEST] = json.dumps({**json.loads(contents[MANIFEST]), **fields}).encode()

    return change


def with_program(**fields: object) -> Change:
    def change(contents: dict[str, bytes]) -> None:
        put_program(contents, {**json.loads(contents[PROGRAM]), **fields})

    return change


def put_program(contents: dict[str, bytes], document: object) -> None:
    """Writes another program, with its digest: as somebody who means it."""
    contents[PROGRAM] = json.dumps(document).encode()
    digests = json.loads(contents[MANIFEST])["digests"]
    with_manifest(digests={**digests, PROGRAM: digest(contents[PROGRAM])})(contents)


def with_entry(name: str, content: bytes) -> Change:
    return lambda contents: contents.update({name: content})


def without(name: str) -> Change:
    def change(contents: dict[str, bytes]) -> None:
        del contents[name]

    return change


def machine(**fields: object) -> dict[str, object]:
    here = Machine.here(())._asdict()
    return {**here, "flags": [], **fields}


REFUSED: dict[str, tuple[Change, str]] = {
    "another format": (with_manifest(format=99), f"a package of format 99, this reads format {FORMAT}; build it again"),
    "another version": (with_manifest(graphkernel="0.0.1"), "built by graphkernel 0.0.1"),
    "another processor": (
        with_manifest(machine=machine(flags=["quantum"])),
        "built for another machine: this processor lacks quantum; build it here",
    ),
    "another architecture": (with_manifest(machine=machine(architecture="vax")), "it is for linux on vax"),
    "another build of Python": (with_manifest(machine=machine(object_bytes=1)), "another build of Python"),
    "an unknown field": (with_manifest(evil=1), "evil: unknown"),
    "a field of another type": (with_manifest(kernels="evil"), "expected a list"),
    "kernels that are not there": (with_manifest(kernels=[]), "a program that is none"),
    "no regions": (with_manifest(regions=[]), "a program that is none"),
    "no way to call kernels": (with_manifest(caller=None), "without code for its kernels"),
    "too few steps": (with_program(steps=[]), "segments that do not follow each other"),
    "slots that are not there": (with_program(size=1), "a slot beyond the last one"),
    "a step of no kind": (with_program(steps=[["evil", "name", [], []]]), "a step of kind 'evil'"),
    "another program": (with_entry(PROGRAM, b"{}"), "program.json is damaged"),
    "another graph": (with_entry("graph.gk", b"graph g() { return }"), "graph.gk is damaged"),
    "other code": (
        with_entry("code.bin", bytes(1 << 16)),
        "code.bin is damaged",
    ),
    "no weights": (without(WEIGHTS), "a package without weights.safetensors"),
    "weights that are none": (with_entry(WEIGHTS, b"\xff" * 100), "weights"),
    "no manifest": (without(MANIFEST), "a package without manifest.json"),
    "a manifest that is no JSON": (with_entry(MANIFEST, b"{"), "not JSON"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, package: Path) -> None:
    change, message = REFUSED[name]
    with pytest.raises(PackageError) as caught:
        gk.load_compiled(altered(package, change))
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(package))
    assert "\n" not in str(caught.value)


def test_a_damaged_file_is_refused_wherever_it_is_damaged(package: Path) -> None:
    """A byte that is changed is noticed, or lies where nothing reads: in dates and attributes of the archive."""
    sound, random = package.read_bytes(), np.random.default_rng(0)
    expected = gk.load_compiled(package)(X)
    for place in random.integers(len(sound), size=60):
        damaged = bytearray(sound)
        damaged[place] ^= 1 << int(random.integers(8))
        package.write_bytes(damaged)
        try:
            found = gk.load_compiled(package)
        except PackageError:
            continue
        assert same(found(X), expected)
    for size in (0, 10, len(sound) // 2, len(sound) - 1):
        package.write_bytes(sound[:size])
        with pytest.raises(PackageError):
            gk.load_compiled(package)


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in a JSON document."""
    parts = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in parts:
        yield (*path, key)
        yield from places(value, (*path, key))


Put = Callable[[dict[str, bytes], Any], None]
PUT: dict[str, Put] = {
    MANIFEST: lambda contents, document: contents.update({MANIFEST: json.dumps(document).encode()}),
    PROGRAM: put_program,
}


@pytest.mark.parametrize(("entry", "least"), [(MANIFEST, 80), (PROGRAM, 70)])
def test_any_value_is_checked(entry: str, least: int, package: Path) -> None:
    """Whatever stands in its place: the package is refused in a sentence, or what was changed means nothing."""
    with zipfile.ZipFile(package) as archive:
        text = archive.read(entry)
    random, known = np.random.default_rng(0), list(places(json.loads(text)))
    hostile = (-1, 0, 1 << 62, 1.5, None, True, "", "evil", "../../etc/passwd", [], [1], {}, "9" * 30)
    refused = 0
    for _ in range(100):
        document = json.loads(text)
        *way, key = known[int(random.integers(len(known)))]
        holder: Any = document
        for step in way:
            holder = holder[step]
        holder[key] = hostile[int(random.integers(len(hostile)))]
        altered(package, lambda contents, document=document: PUT[entry](contents, document))
        try:
            gk.load_compiled(package)
        except PackageError as error:
            refused += "\n" not in str(error)
    assert refused > least


def test_what_cannot_be_packed_says_so(tmp_path: Path) -> None:
    compiled = gk.compile(traced())
    with pytest.raises(PackageError, match="cannot be written"):
        compiled.save(tmp_path / "nowhere" / "net.gkx")
    stand_in = gk.compile(traced(), compiler=lambda desc, target: lambda *inputs, out=None: ())
    with pytest.raises(PackageError, match="another compiler's"):
        stand_in.save(tmp_path / "net.gkx")
    with pytest.raises(PackageError, match="save the graph"):
        Executable(compiled.plan, compiled.report).save(tmp_path / "net.gkx")
    assert not list(tmp_path.iterdir())


def test_its_report_says_that_it_has_no_graphs(package: Path) -> None:
    page = gk.load_compiled(package).report.to_html()
    assert "The graphs are not drawn" in page
    assert "<h2>Kernels</h2>" in page
    assert "The graphs are not drawn" not in gk.compile(traced()).report.to_html()


@pytest.mark.parametrize("threads", [None, 1, 2])
def test_threads_are_said_at_loading(threads: int | None, package: Path) -> None:
    loaded = gk.load_compiled(package, threads=threads)
    assert loaded.threads == threads
    assert pickle.loads(pickle.dumps(loaded)).threads == threads
    assert same(loaded(X), gk.compile(traced())(X))


@pytest.mark.parametrize("threads", [0, -1, True])
def test_a_number_of_threads_that_is_none_is_refused(threads: int, package: Path) -> None:
    with pytest.raises(OptionError, match="one thread at least"):
        gk.load_compiled(package, threads=threads)
