"""Pad in every mode is of kernels: beside onnxruntime and numpy, of fixed and of open extents, with what stands around it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

import graphkernel as gk
from graphkernel.errors import RuntimeFailure
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.runtime.plan.verify_plan import verify_plan
from graphkernel.runtime.verify_table import verify_tables
from tests.support.onnx_models import model, run_onnxruntime

pytestmark = pytest.mark.usefixtures("shared_kernels")

IMAGE = np.random.default_rng(0).standard_normal((2, 3, 5, 6)).astype(np.float32)
FIXED, BATCH, OPEN = IMAGE.shape, ("N", *IMAGE.shape[1:]), ("N", "C", "H", "W")
MODES = ("constant", "reflect", "edge", "wrap")
AMOUNTS: dict[str, tuple[list[int], list[int] | None]] = {
    "two axes": ([0, 0, 1, 2, 0, 0, 2, 1], None),
    "one end": ([0, 0, 0, 3, 0, 0, 0, 0], None),
    "as far as it goes": ([0, 0, 4, 0, 0, 0, 4, 5], None),
    "axes by name": ([2, 1, 1, 2], [3, 1]),
    "axes from behind": ([1, 2, 1, 0], [-2, -1]),
    "cut and padded": ([0, 0, -1, 2, 0, 0, 2, -2], None),
    "cut alone": ([0, -1, -1, 0, 0, 0, -2, -1], None),
    "nothing": ([0] * 8, None),
}


def padded(mode: str, amounts: list[int], axes: list[int] | None, x: np.ndarray, shape: Any) -> ModelProto:
    """Between two pointwise operators."""
    nodes = [
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node("Pad", ["n", "p", *([] if axes is None else ["", "a"])], ["q"], mode=mode),
        helper.make_node("Abs", ["q"], ["y"]),
    ]
    constants = {"p": np.array(amounts, np.int64), **({} if axes is None else {"a": np.array(axes, np.int64)})}
    return model(nodes, {"x": x}, constants=constants, opset=19, shapes={"x": shape})


def by_numpy(mode: str, amounts: list[int], axes: list[int] | None, x: np.ndarray) -> np.ndarray:
    """Cut first, then padded."""
    ends = [(0, 0)] * x.ndim
    for k, axis in enumerate(range(x.ndim) if axes is None else axes):
        ends[axis] = amounts[k], amounts[k + len(amounts) // 2]
    cut = x[tuple(slice(max(-a, 0), extent - max(-b, 0)) for extent, (a, b) in zip(x.shape, ends, strict=True))]
    return np.abs(np.pad(-cut, [(max(a, 0), max(b, 0)) for a, b in ends], mode=mode))  # pyright: ignore[reportCallIssue, reportArgumentType]


@pytest.mark.parametrize("shape", [FIXED, BATCH, OPEN], ids=["fixed", "batch", "open"])
@pytest.mark.parametrize("amounts", AMOUNTS)
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_that_of_numpy_and_onnxruntime(mode: str, amounts: str, shape: tuple[Any, ...]) -> None:
    given, axes = AMOUNTS[amounts]
    made = padded(mode, given, axes, IMAGE, shape)
    graph, expected = import_onnx(made), by_numpy(mode, given, axes, IMAGE)
    np.testing.assert_array_equal(run_onnxruntime(made, {"x": IMAGE})[0], expected)
    executable = gk.compile(graph)
    verify_plan(executable.plan)
    verify_tables(executable.program)
    np.testing.assert_array_equal(executable(IMAGE)[0], expected)
    np.testing.assert_array_equal(gk.compile(graph, opt_level=0)(IMAGE)[0], expected)
    cuts_open = shape == OPEN and min(given) < 0
    assert bool(executable.report.host) == cuts_open, "that open extents hold what is cut, no graph knows"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [FIXED, BATCH], ids=["fixed", "batch"])
def test_one_kernel_pads_with_what_stands_around(mode: str, shape: tuple[Any, ...]) -> None:
    executable = gk.compile(import_onnx(padded(mode, *AMOUNTS["two axes"], IMAGE, shape)))
    assert (executable.report.kernel_calls, executable.report.host) == (1, ())


@pytest.mark.parametrize("of", ["float64", "float16", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("mode", MODES)
def test_every_data_type_is_padded(mode: str, of: str) -> None:
    x = (np.random.default_rng(1).standard_normal((4, 5)) * 9).astype(of)
    made = model(
        [helper.make_node("Pad", ["x", "p"], ["y"], mode=mode)],
        {"x": x},
        constants={"p": np.array([1, 2, 3, 0])},
        opset=19,
    )
    expected = np.pad(x, [(1, 3), (2, 0)], mode=mode)  # pyright: ignore[reportCallIssue, reportArgumentType]
    found = gk.compile(import_onnx(made))(x)[0]
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("mode", "amounts", "extent"), [
    ("reflect", [5, 0], 5), ("reflect", [0, 5], 5), ("wrap", [6, 0], 5), ("wrap", [0, 6], 5), ("reflect", [1, 0], 1),
    ("reflect", [-2, 4], 5),
])  # fmt: skip
def test_more_than_there_is_stays_with_onnxruntime(mode: str, amounts: list[int], extent: int) -> None:
    x = np.arange(extent, dtype=np.float32)
    graph = import_onnx(padded(mode, amounts, None, x, x.shape))
    assert [node.op.name for node in graph.operators].count("Onnx") == 1


@pytest.mark.parametrize("mode", ["reflect", "wrap"])
def test_an_open_extent_that_is_too_small_is_an_error(mode: str) -> None:
    executable = gk.compile(import_onnx(padded(mode, [0, 3, 0, 3], None, IMAGE[0, 0], ("H", "W"))))
    np.testing.assert_array_equal(executable(IMAGE[0, 0])[0], by_numpy(mode, [0, 3, 0, 3], None, IMAGE[0, 0]))
    with pytest.raises(RuntimeFailure, match="fails"):
        executable(IMAGE[0, 0, :, :2])


def test_amounts_of_old_opsets_are_attributes() -> None:
    node = helper.make_node("Pad", ["x"], ["y"], mode="reflect", pads=[1, 0, 0, 2])
    made = model([node], {"x": IMAGE[0, 0]}, opset=9)
    expected = np.pad(IMAGE[0, 0], [(1, 0), (0, 2)], mode="reflect")
    np.testing.assert_array_equal(gk.compile(import_onnx(made))(IMAGE[0, 0])[0], expected)


@pytest.mark.parametrize("shape", [(5, 6), ("N", 6), ("N", "M")])
def test_tile_is_of_the_kernel_that_reads_it(shape: tuple[Any, ...]) -> None:
    nodes = [
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node("Tile", ["n", "r"], ["t"]),
        helper.make_node("Abs", ["t"], ["y"]),
    ]
    x = IMAGE[0, 0]
    made = model(nodes, {"x": x}, constants={"r": np.array([2, 3])}, shapes={"x": shape})
    executable = gk.compile(import_onnx(made))
    assert (executable.report.kernel_calls, executable.report.host) == (1, ())
    np.testing.assert_array_equal(executable(x)[0], np.abs(np.tile(x, (2, 3))))


def test_pads_between_convolutions_of_the_library_stay_there() -> None:
    weight = np.random.default_rng(2).standard_normal((4, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Pad", ["x", "p", "v"], ["q"]),
        helper.make_node("Conv", ["q", "w"], ["y"]),
    ]
    constants = {"p": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "v": np.array(1.5, np.float32), "w": weight}
    made = model(nodes, {"x": IMAGE}, constants=constants, opset=18, shapes={"x": OPEN})
    executable = gk.compile(import_onnx(made))
    assert executable.report.kernel_calls == 0
    np.testing.assert_allclose(executable(IMAGE)[0], run_onnxruntime(made, {"x": IMAGE})[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("flags", ["--disable_cluster_ops=Pad", "--enable_cluster_ops_only=Neg,Abs"])
def test_flags_keep_it_out_of_kernels(flags: str) -> None:
    graph = import_onnx(padded("constant", *AMOUNTS["two axes"], IMAGE, FIXED))
    (entry,) = gk.compile(graph, flags=flags).report.host
    assert entry.operators == ("Pad",)
