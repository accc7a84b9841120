from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import FrontendError, GraphKernelError, InputError, ParseError

TABLE = np.arange(40, dtype=np.float32).reshape(10, 4)


def net(x: Any) -> Any:
    return ops.exp(ops.add(ops.mul(x, TABLE), np.array([1.0, 2.0, 3.0, 4.0], np.float32)))


GRAPH = gk.trace(net, gk.spec((10, 4)))


@pytest.mark.parametrize("level", [0, 2])
def test_what_is_saved_loads_with_its_constants(level: int, tmp_path: Path) -> None:
    graph = gk.optimize(GRAPH, level)
    gk.save(graph, tmp_path / "net.gk")
    loaded = gk.load(tmp_path / "net.gk")
    assert loaded == graph
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.gk", "net.gk.npz"]
    np.testing.assert_array_equal(gk.compile(loaded)(TABLE)[0], gk.compile(graph)(TABLE)[0])


def test_small_constants_are_in_the_text(tmp_path: Path) -> None:
    gk.save(gk.trace(lambda x: ops.mul(x, 2.0), gk.spec(3)), tmp_path / "net.gk")
    assert [path.name for path in tmp_path.iterdir()] == ["net.gk"]


def test_changed_constants_are_refused(tmp_path: Path) -> None:
    gk.save(GRAPH, tmp_path / "net.gk")
    beside = tmp_path / "net.gk.npz"
    with np.load(beside) as found:
        changed = {name: found[name] + 1 for name in found.files}
    np.savez(beside, **changed)
    with pytest.raises(FrontendError, match="does not fit its digest"):
        gk.load(tmp_path / "net.gk")


@pytest.mark.parametrize(("name", "content", "error", "message"), [
    ("net.txt", "x", FrontendError, r"the extension .txt is none of .onnx, .gk, .json, .info"),
    ("net.gkx", "x", FrontendError, r"a package, which is compiled already: gk.load_compiled\(path\) runs it"),
    ("net", "x", FrontendError, r"the extension \(none\)"),
    ("net.gk", "graph net(x: f32[3]) {\n  y: f32[3] = Mull(x)\n  return y\n}", ParseError, "net.gk: line 2, column"),
    ("net.json", '{"composite": true}', FrontendError, r"net.json: \$"),
])  # fmt: skip
def test_errors_say_what_is_wrong(
    name: str, content: str, error: type[Exception], message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(error, match=message):
        gk.load(tmp_path / name)


def test_a_missing_file_and_another_ending_are_named(tmp_path: Path) -> None:
    with pytest.raises(FrontendError, match="there is no such file"):
        gk.load(tmp_path / "nothing.onnx")
    with pytest.raises(FrontendError, match=r"graphs are written as .gk or .onnx, not .json"):
        gk.save(GRAPH, tmp_path / "net.json")


SYMBOLIC = """graph net(x: f32[N, 2*M], y: f32[N, M]) {
  a: f32[N, 2*M] = Exp(x)
  b: f32[N, 3*M] = Concat(a, y, axis=1)
  return b
}
"""


def test_extents_are_fixed_at_load(tmp_path: Path) -> None:
    (tmp_path / "net.gk").write_text(SYMBOLIC)
    graph = gk.load(tmp_path / "net.gk", dims={"M": 4})
    assert [str(value.type) for value in (*graph.inputs, *graph.outputs)] == ["f32[N, 8]", "f32[N, 4]", "f32[N, 12]"]
    assert gk.parse(str(graph)) == graph
    assert gk.load(tmp_path / "net.gk", dims={"M": 4, "N": 2}).outputs[0].type.is_static


@pytest.mark.parametrize(("dims", "message"), [
    ({"n": 4}, r"no input has an extent 'n' \(did you mean 'N'\?\); it has M, N"),
    ({"N": -1}, "N = -1 is no extent"),
    ({"N": "4"}, "N = '4' is no extent"),
])  # fmt: skip
def test_extents_that_cannot_be_fixed_are_named(dims: Any, message: str, tmp_path: Path) -> None:
    (tmp_path / "net.gk").write_text(SYMBOLIC)
    with pytest.raises(FrontendError, match=message):
        gk.load(tmp_path / "net.gk", dims=dims)


@pytest.mark.parametrize("take", [gk.load, gk.load_compiled], ids=["load", "load_compiled"])
@pytest.mark.parametrize("given", [3, None, GRAPH])
def test_what_is_no_path_is_an_error_of_ours(take: Any, given: Any) -> None:
    with pytest.raises(
        GraphKernelError, match=rf"{take.__name__} takes the path of a file, got {type(given).__name__}; give"
    ):
        take(given)


def test_a_model_in_memory_is_told_how_to_become_a_file() -> None:
    with pytest.raises(FrontendError, match=r"got ModelProto; onnx\.save"):
        gk.load(onnx.ModelProto())  # pyright: ignore[reportArgumentType]


def test_paths_may_be_bytes(tmp_path: Path) -> None:
    gk.save(GRAPH, tmp_path / "net.gk")
    assert gk.load(bytes(tmp_path / "net.gk")) == GRAPH  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("shapes", "told"), [
    ([(3, 5), (3, 5)], "input x is f32[8, seq], got shape (3, 5) with batch = 8"),
    ([(8, 5), (8, 6)], "input z is f32[8, seq], got shape (8, 6) with seq = 5"),
    ([(8, 5), (7, 6)], "input z is f32[8, seq], got shape (7, 6) with batch = 8, seq = 5"),
])  # fmt: skip
@pytest.mark.parametrize("suffix", ["onnx", "gk", "gkx"])
def test_wrong_extents_are_told_by_the_names_that_dims_gave(
    shapes: list[tuple[int, int]], told: str, suffix: str, tmp_path: Path
) -> None:
    graph = gk.trace(lambda x, z: ops.add(x, z), gk.spec(("batch", "seq")), gk.spec(("batch", "seq")))
    gk.save(graph, file := tmp_path / ("net.gk" if suffix == "gk" else "net.onnx"))
    executable = gk.compile(gk.load(file, dims={"batch": 8}))
    if suffix == "gkx":
        executable.save(tmp_path / "net.gkx")
        executable = gk.load_compiled(tmp_path / "net.gkx")
    with pytest.raises(InputError, match=re.escape(told) + "$"):
        executable(*(np.ones(shape, np.float32) for shape in shapes))


def test_numbers_in_place_of_extents_are_in_the_text() -> None:
    graph = gk.parse("graph net(x: f32[8, N]) where batch = 8 {\n  y: f32[8, N] = Exp(x)\n  return y\n}\n")
    assert gk.parse(str(graph)) == graph
    assert [str(entry) for entry in graph.derived] == ["batch = 8"]
