"""Shape tensors that are followed at import come out as onnxruntime computes them: no type, range or guess is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx
from tests.support.onnx_models import model, run_onnxruntime

node = helper.make_node
X = np.ones((7, 300), np.float32)


def agree(nodes: Sequence[NodeProto], shape: Sequence[Any], constants: dict[str, np.ndarray], opset: int = 18) -> None:
    made = model([node("Shape", ["x"], ["s"]), *nodes], {"x": X}, constants=constants, opset=opset, shapes={"x": shape})
    expected = run_onnxruntime(made, {"x": X})
    found = gk.compile(import_onnx(made))(X)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype


SHAPES = ((7, 300), ("N", "M"), ("N", 300))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    "to", [TensorProto.FLOAT, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32, TensorProto.BOOL]
)
def test_a_cast_changes_type_and_range(to: int, shape: Sequence[Any]) -> None:
    agree([node("Cast", ["s"], ["y"], to=to)], shape, {})


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_floats_divide_truly(shape: Sequence[Any]) -> None:
    nodes = [
        node("Cast", ["s"], ["f"], to=TensorProto.FLOAT),
        node("Gather", ["f", "i"], ["g"]),
        node("Div", ["f", "g"], ["y"]),
    ]
    agree(nodes, shape, {"i": np.array(0)})


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("of", [np.int8, np.uint8, np.int32, np.int64])
def test_constants_wrap_around_in_their_type(operator: str, of: Any) -> None:
    info = np.iinfo(of)
    constants = {"a": np.array([info.max, info.max - 1, info.min, 7], of), "b": np.array([2, 3, 3, 2], of)}
    if operator in ("Add", "Sub", "Mul", "Div") and of in (np.int8, np.uint8):
        found = gk.compile(import_onnx(model([node(operator, ["a", "b"], ["y"])], {"x": X}, constants=constants)))(X)
        wide = {name: array.astype(np.int64) for name, array in constants.items()}
        expected = run_onnxruntime(model([node(operator, ["a", "b"], ["y"])], {"x": X}, constants=wide), {"x": X})
        np.testing.assert_array_equal(found[0], expected[0].astype(of))
        return
    agree([node(operator, ["a", "b"], ["y"])], (7, 300), constants)


@pytest.mark.parametrize("number", [-1, 0, 1, 7, 300])
def test_a_symbol_may_be_any_number_from_1(number: int) -> None:
    nodes = [node("Equal", ["s", "n"], ["e"]), node("Where", ["e", "n", "s"], ["w"]), node("Add", ["w", "n"], ["y"])]
    agree(nodes, ("N", "M"), {"n": np.array(number)})


def test_symbols_of_two_names_may_be_equal() -> None:
    nodes = [
        node("Gather", ["s", "i"], ["a"]), node("Gather", ["s", "j"], ["b"]), node("Equal", ["a", "b"], ["e"]),
        node("Where", ["e", "i", "j"], ["y"]),
    ]  # fmt: skip
    made = model(
        [node("Shape", ["x"], ["s"]), *nodes],
        {"x": X},
        constants={"i": np.array(0), "j": np.array(1)},
        shapes={"x": ("N", "M")},
    )
    run = gk.compile(import_onnx(made))
    assert [int(run(np.ones(s, np.float32))[0]) for s in ((3, 3), (3, 4))] == [0, 1]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("attributes", [{}, {"keepdims": 0}, {"noop_with_empty_axes": 1}])
def test_a_product_over_no_axes_is_what_the_attributes_say(attributes: dict[str, int], shape: Sequence[Any]) -> None:
    agree([node("ReduceProd", ["s"], ["y"], **attributes)], shape, {})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("axes", [[0], [1], [0, 1]])
def test_a_product_over_some_axes_of_a_table(axes: list[int]) -> None:
    nodes = [
        node("Slice", ["s", "zero", "one"], ["n"]), node("Concat", ["n", "two", "two", "two"], ["l"], axis=0),
        node("Reshape", ["l", "square"], ["t"]), node("ReduceProd", ["t", "k"], ["p"], keepdims=0),
        node("Reshape", ["p", "flat"], ["f"]), node("ConstantOfShape", ["f"], ["y"]),
    ]  # fmt: skip
    constants = {name: np.array([k]) for k, name in enumerate(("zero", "one", "two"))}
    agree(nodes, ("N", 300), {**constants, "square": np.array([2, 2]), "k": np.array(axes), "flat": np.array([-1])})


@pytest.mark.parametrize("to", [TensorProto.UINT8, TensorProto.INT64])
def test_a_symbol_in_a_narrow_type_is_cut(to: int) -> None:
    nodes = [
        node("Cast", ["s"], ["c"], to=to),
        node("Cast", ["c"], ["d"], to=TensorProto.INT64),
        node("ReduceSum", ["d"], ["y"]),
    ]
    agree(nodes, ("N", "M"), {})


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("place", [1, -1])
def test_an_extent_of_a_shape_is_replaced(place: int, shape: Sequence[Any]) -> None:
    nodes = [node("ScatterElements", ["s", "place", "three"], ["t"]), node("Expand", ["row", "t"], ["y"])]
    constants = {"place": np.array([place]), "three": np.array([3]), "row": np.array([1.0, 2.0, 3.0], np.float32)}
    agree(nodes, shape, constants)
    made = model([node("Shape", ["x"], ["s"]), *nodes], {"x": X}, constants=constants, shapes={"x": shape})
    assert gk.compile(import_onnx(made)).report.host == ()


def test_a_sum_into_a_shape_is_what_onnxruntime_says() -> None:
    constants = {"place": np.array([1]), "three": np.array([3])}
    agree([node("ScatterElements", ["s", "place", "three"], ["y"], reduction="add")], ("N", 300), constants)
