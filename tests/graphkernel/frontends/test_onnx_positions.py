"""Positions along open axes, and what exported masks look up by them, are kernels; who counts all rows looks nothing up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import graphkernel as gk
from graphkernel.errors import RuntimeFailure
from graphkernel.frontends.onnx.importer import import_onnx
from tests.support.onnx_models import model, run_onnxruntime

ONES = np.ones((2, 3), np.int64)
NUMBERS = {"zero": np.array(0), "one": np.array(1), "three": np.array(3), "axes": np.array([1])}


def node(op_type: str, operands: Sequence[str], *outputs: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, operands, outputs or ("y",), **attributes)


def extents(x: str = "x") -> list[NodeProto]:
    """``b`` and ``t``: how long the axes of an operand are."""
    return [
        node("Shape", [x], "shape"),
        node("Gather", ["shape", "zero"], "b"),
        node("Gather", ["shape", "one"], "t"),
    ]


def open_model(nodes: Sequence[NodeProto], more: Mapping[str, np.ndarray] | None = None) -> ModelProto:
    """Of ``x``, int64[B, T]."""
    return model([*extents(), *nodes], {"x": ONES}, constants={**NUMBERS, **(more or {})}, shapes={"x": ("B", "T")})


def agrees(made: ModelProto) -> gk.Graph:
    """One graph for all sizes, without steps of a library, that computes what onnxruntime does."""
    graph = import_onnx(made)
    exe = gk.compile(graph)
    assert not exe.report.host
    for shape in ((1, 1), (2, 3), (3, 2), (2, 7), (5, 64)):
        x = np.random.default_rng(0).integers(0, 2, shape)
        for got, wanted in zip(exe(x), run_onnxruntime(made, {"x": x}), strict=True):
            np.testing.assert_array_equal(got, wanted, strict=True)
    return graph


def looked_up(row: str = "t", first: str = "zero") -> list[NodeProto]:
    """As masks are exported: all rows of a matrix in a row, at ``batch * row + column``."""
    return [
        node("Flatten", ["x"], "flat", axis=2),
        node("Range", ["zero", "b", "one"], "batches"),
        node("Unsqueeze", ["batches", "axes"], "batch"),
        node("Mul", ["batch", row], "begin"),
        node("Range", [first, "t", "one"], "columns"),
        node("Add", ["columns", "begin"], "places"),
        node("Gather", ["flat", "places"]),
    ]


def test_places_that_count_all_rows_look_nothing_up() -> None:
    graph = agrees(open_model(looked_up()))
    after = gk.optimize(graph)
    assert not [each for each in after.nodes if each.op.name in ("Gather", "Places")]


@pytest.mark.parametrize("row", ["zero", "b"])
def test_other_places_are_looked_up(row: str) -> None:
    """Every row the first one, or rows that begin elsewhere: what lies beyond the operand is an error."""
    made = open_model(looked_up(row))
    exe = gk.compile(import_onnx(made))
    x = np.arange(9).reshape(3, 3)
    np.testing.assert_array_equal(exe(x)[0], run_onnxruntime(made, {"x": x})[0])
    assert [each for each in gk.optimize(import_onnx(made)).nodes if each.op.name == "Places" or each.body is None]
    if row == "b":
        with pytest.raises(RuntimeFailure):
            exe(np.arange(8).reshape(4, 2))


POSITIONS: dict[str, list[NodeProto]] = {
    "a range of an extent": [node("Range", ["zero", "t", "one"])],
    "a range downwards": [node("Range", ["t", "zero", "back"])],
    "a range from a number": [node("Add", ["t", "three"], "end"), node("Range", ["three", "end", "one"])],
    "a causal mask": [
        node("Range", ["zero", "t", "one"], "r"),
        node("Unsqueeze", ["r", "axes"], "rows"),
        node("LessOrEqual", ["r", "rows"]),
    ],
    "a running sum": [node("CumSum", ["x", "one"])],
    "elements of a table by positions": [
        node("Range", ["zero", "t", "one"], "r"),
        node("Expand", ["r", "shape"], "places"),
        node("GatherElements", ["table", "places"], axis=1),
    ],
    "a constant in an open shape": [
        node("ConstantOfShape", ["shape"], value=helper.make_tensor("v", TensorProto.INT64, [1], [4]))
    ],
}


@pytest.mark.parametrize("name", POSITIONS)
def test_positions(name: str) -> None:
    table = np.arange(5 * 70).reshape(5, 70)
    agrees(open_model(POSITIONS[name], {"back": np.array(-1), "table": table}))


def test_an_element_out_of_range_is_an_error_of_its_own_axis() -> None:
    """The next row of the table would have an element there."""
    made = open_model([node("GatherElements", ["table", "x"], axis=1)], {"table": np.arange(12).reshape(3, 4)})
    exe = gk.compile(import_onnx(made))
    np.testing.assert_array_equal(exe(np.array([[3], [-4]]))[0], [[3], [4]])
    with pytest.raises(RuntimeFailure, match="idx=4"):
        exe(np.array([[4], [0]]))


SLICES: dict[str, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    "elements": ((5, 6), (3, 2), 0),
    "rows": ((5, 6, 7), (3, 4, 2), 0),
    "slices": ((5, 6, 7), (4, 1), 0),
    "elements by their own": ((5, 6, 7), (2, 3, 3), 0),
    "rows of each batch": ((3, 5, 6), (3, 2, 1), 1),
    "an element of each batch": ((3, 5, 6), (3, 2), 1),
    "rows of batches of batches": ((2, 3, 5, 6), (2, 3, 4, 1), 2),
    "a batch of one": ((1, 5, 6), (1, 2, 2), 1),
}


@pytest.mark.parametrize("name", SLICES)
def test_slices_at_places_of_several_axes(name: str) -> None:
    shape, rows, batches = SLICES[name]
    random = np.random.default_rng(0)
    ends = shape[batches : batches + rows[-1]]
    places = np.stack([random.integers(-extent, extent, rows[:-1]) for extent in ends], -1)
    x = random.standard_normal(shape).astype(np.float32)
    made = model([node("GatherND", ["x", "i"], batch_dims=batches)], {"x": x, "i": places})
    for level in (0, 2):
        exe = gk.compile(import_onnx(made), opt_level=level)
        np.testing.assert_array_equal(exe(x, places)[0], run_onnxruntime(made, {"x": x, "i": places})[0], strict=True)
    assert not exe.report.host
    places[..., -1] = ends[-1]
    with pytest.raises(RuntimeFailure, match="GatherND"):
        exe(x, places)


def test_slices_among_an_unknown_number_are_onnxruntimes() -> None:
    """Places of two open axes are not shown to lie among the elements."""
    made = model([node("GatherND", ["x", "i"])], {"x": ONES, "i": ONES[:, :2]}, shapes={"x": ("B", "T"), "i": ("N", 2)})
    exe = gk.compile(import_onnx(made))
    x, places = np.arange(12).reshape(3, 4), np.array([[2, 3], [-1, 0]])
    np.testing.assert_array_equal(exe(x, places)[0], [11, 8])
    assert exe.report.host
