"""Graphs whose extents are sums, products and differences of symbols, on every level and target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import InputError
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.handoff import EXTENTS, to_desc, untold_symbols
from kernelgen.tensor.graph import Graph
from tests.support.onnx_models import model, run_onnxruntime

Array = np.ndarray[Any, Any]


def numbers(*shape: int) -> Array:
    return (np.arange(np.prod(shape)) % 7 / 4 - 1).reshape(shape).astype(np.float32)


def joined(a: Any, b: Any) -> Any:
    return ops.exp(ops.tanh(ops.matmul(ops.concat([a, b], 0), np.eye(4, dtype=np.float32)))) * 2.0


def cut_again(a: Any, b: Any) -> Any:
    """Of the sum of two symbols one is wanted again."""
    both = ops.matmul(ops.concat([a, b], 0), np.eye(4, dtype=np.float32))
    return ops.tanh(ops.strided_slice(both, (0, 0), (a.shape[0], 4))) + 1.0


def parted(x: Any) -> Any:
    """Behind a product of joined batches an operand has only their product as extent."""
    rows = ops.matmul(ops.reshape(x, (-1, 4)), np.eye(4, dtype=np.float32))
    return ops.reshape(ops.tanh(ops.sigmoid(rows)), x.shape)


def spread(x: Any) -> Any:
    """The result has symbols that the kernel's only operand lacks."""
    row = ops.matmul(ops.reduce_sum(ops.reduce_sum(x, 0), 0, keep_dims=True), np.eye(4, dtype=np.float32))
    return ops.tanh(ops.broadcast_to(ops.reshape(row, (1, 1, 4)), x.shape) * 2.0)


def vanished(x: Any) -> Any:
    """What is left has the operand's extents, and no operand."""
    return (x - x) + 1.0, ops.exp(ops.reduce_sum(x - x, 1, keep_dims=True))


TWO, MATRIX = (gk.spec(("M", 4)), gk.spec(("N", 4))), gk.spec(("M", "N", 4))
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], list[tuple[Array, ...]]]] = {
    "concat": (joined, TWO, [(numbers(2, 4), numbers(3, 4)), (numbers(40, 4), numbers(1, 4))]),
    "cut": (cut_again, TWO, [(numbers(2, 4), numbers(3, 4)), (numbers(1, 4), numbers(4, 4))]),
    "product": (parted, (MATRIX,), [(numbers(2, 3, 4),), (numbers(3, 2, 4),), (numbers(1, 17, 4),)]),
    "spread": (spread, (MATRIX,), [(numbers(2, 3, 4),), (numbers(3, 2, 4),)]),
    "vanished": (vanished, (MATRIX,), [(numbers(2, 3, 4),), (numbers(3, 2, 4),), (numbers(1, 40, 4),)]),
}  # fmt: skip


@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize("target", ["cpu", "gpu", "ascend"])
@pytest.mark.parametrize("name", CASES)
def test_kernels_are_told_what_their_operands_do_not_tell(name: str, target: str, level: int) -> None:
    function, specs, calls = CASES[name]
    graph = gk.trace(function, *specs)
    executable = gk.compile(graph, level, target)
    assert {entry.code for entry in executable.report.fallbacks} <= {"host-numpy", "unsupported-attr"}
    for arrays in calls:
        for got, wanted in zip(executable(*arrays), gk.evaluate(graph, arrays), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def body(text: str) -> Graph:
    return gk.parse(f"graph body({text}")


@pytest.mark.parametrize(
    ("text", "untold"),
    [
        ("x: f32[M, N]) { y: f32[M, N] = Neg(x)\n return y }", ()),
        ("x: f32[M + N]) { y: f32[M + N] = Neg(x)\n return y }", ("M", "N")),
        ("x: f32[M + N], z: f32[M]) { y: f32[M + N] = Neg(x)\n return y, z }", ()),
        ("x: f32[M*N], z: f32[M]) { y: f32[M*N] = Neg(x)\n return y, z }", ("N",)),
        ("x: f32[2*M + 1]) { y: f32[2*M + 1] = Neg(x)\n return y }", ()),
        ("x: f32[M*M]) { y: f32[M*M] = Neg(x)\n return y }", ("M",)),
    ],
)
def test_symbols_that_shapes_do_not_tell(text: str, untold: tuple[str, ...]) -> None:
    graph = body(text)
    assert untold_symbols(graph) == untold
    names = [tensor.name for tensor in to_desc(graph).inputs]
    assert (EXTENTS in names) == bool(untold)


X, GAMMA, DATA = numbers(3, 4), numbers(4), numbers(4)
BOUNDS: tuple[str, ...] = ("starts", "ends", "axes", "steps")


def cut(start: int, end: int, axis: int, step: int) -> tuple[list[Any], dict[str, Array]]:
    constants = dict(zip(BOUNDS, (np.asarray([value]) for value in (start, end, axis, step)), strict=True))
    nodes = [helper.make_node("Slice", ["x", *BOUNDS], ["part"]), helper.make_node("ReduceSum", ["part"], ["y"])]
    return nodes, constants


def expanded(*after: Any) -> list[Any]:
    shape = [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Expand", ["data", "shape"], ["wide"])]
    return [*shape, *(after or [helper.make_node("Identity", ["wide"], ["y"])])]


MODELS: dict[str, tuple[list[Any], dict[str, Array]]] = {
    "expanded row": (expanded(), {"data": DATA}),
    "expanded scalar": (expanded(), {"data": np.asarray([2.5], np.float32)}),
    "expanded integers": (expanded(), {"data": np.asarray([2**53 + 1])}),
    "expanded and used": (expanded(helper.make_node("Mul", ["wide", "x"], ["y"])), {"data": DATA}),
    "layer norm": ([helper.make_node("LayerNormalization", ["x", "gamma"], ["y"])], {"gamma": GAMMA}),
    "joined": (
        [
            helper.make_node("Concat", ["x", "z"], ["both"], axis=0),
            helper.make_node("Exp", ["both"], ["e"]),
            helper.make_node("Tanh", ["e"], ["y"]),
        ],
        {},
    ),
    "nothing of a known axis": cut(4, 9, 1, 1),
    "nothing in the middle": cut(2, 2, 0, 1),
    "nothing behind every end": cut(2**62, 2**63 - 1, 0, 1),
    "nothing backwards": cut(3, 3, 1, -1),
}


@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_models_with_symbols_give_what_onnxruntime_gives(name: str, level: int) -> None:
    nodes, constants = MODELS[name]
    given = {"x": X, "z": numbers(2, 4)} if name == "joined" else {"x": X}
    graph = model(nodes, given, constants=constants, shapes={"x": ("N", 4), "z": ("M", 4)})
    executable = gk.compile(import_onnx(graph), level)
    for got, wanted in zip(executable(*given.values()), run_onnxruntime(graph, given), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_layer_norm_over_a_symbol(level: int) -> None:
    nodes = [helper.make_node("LayerNormalization", ["x", "gamma"], ["y"])]
    given = {"x": X, "gamma": GAMMA}
    graph = model(nodes, given, shapes={"x": ("N", "M"), "gamma": ("M",)})
    np.testing.assert_allclose(
        gk.compile(import_onnx(graph), level)(X, GAMMA)[0], run_onnxruntime(graph, given)[0], rtol=1e-5, atol=1e-6
    )


def test_an_extent_that_would_be_negative_is_refused() -> None:
    pool = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[4, 1])
    image = numbers(1, 1, 5, 4)
    executable = gk.compile(import_onnx(model([pool], {"x": image}, shapes={"x": (1, 1, "N", 4)})), 2)
    assert executable(image)[0].shape == (1, 1, 2, 4)
    with pytest.raises(InputError, match="would have an extent of N - 3, which is negative with N = 2"):
        executable(numbers(1, 1, 2, 4))
