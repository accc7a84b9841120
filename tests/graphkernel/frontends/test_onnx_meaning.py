"""What operators mean at each opset, as ONNX states it; onnxruntime is asked only where it follows the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx
from tests.support.onnx_models import model, run_onnxruntime

pytestmark = pytest.mark.usefixtures("shared_kernels")

Array = np.ndarray[Any, Any]
LEVELS = range(4)
X = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
SIGNED = ("int8", "int16", "int32", "int64")
INTEGERS = (*SIGNED, "uint8", "uint16", "uint32", "uint64")


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def answers(
    node: NodeProto, inputs: Mapping[str, Array], constants: Mapping[str, Array] | None = None, opset: int = 17
) -> list[Array]:
    """The node's first result at each level with its operands given, and at two with all of them known (which folds it)."""
    constants = dict(constants or {})
    result = next(filter(None, node.output))
    given = import_onnx(model([node], inputs, (result,), constants, opset))
    known = import_onnx(model([node], {}, (result,), {**constants, **inputs}, opset))
    found = [gk.compile(given, opt_level=level)(*inputs.values())[0] for level in LEVELS]
    return found + [gk.compile(known, opt_level=level)()[0] for level in (1, 2)]


def assert_means(
    expected: Array,
    node: NodeProto,
    inputs: Mapping[str, Array],
    constants: Mapping[str, Array] | None = None,
    opset: int = 17,
) -> None:
    for found in answers(node, inputs, constants, opset):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- integers


@pytest.mark.parametrize("of", INTEGERS)
def test_integers_divide_and_have_remainders(of: str) -> None:
    most, least = np.iinfo(of).max, np.iinfo(of).min
    x, y = np.array([most, most - 1, least, 7], of), np.array([1, 2, 3, 2], of)
    quotients = [abs(int(a)) // int(b) * (1 if a >= 0 else -1) for a, b in zip(x, y, strict=True)]
    assert_means(np.array(quotients, of), helper.make_node("Div", ["x", "y"], ["z"]), {"x": x, "y": y})
    floors = [int(a) % int(b) for a, b in zip(x, y, strict=True)]
    assert_means(np.array(floors, of), helper.make_node("Mod", ["x", "y"], ["z"]), {"x": x, "y": y})
    rests = [int(a) - q * int(b) for a, b, q in zip(x, y, quotients, strict=True)]
    assert_means(np.array(rests, of), helper.make_node("Mod", ["x", "y"], ["z"], fmod=1), {"x": x, "y": y})


@pytest.mark.parametrize("exponents", SIGNED)
@pytest.mark.parametrize("of", SIGNED)
def test_powers_of_integers_to_integers_of_any_type(of: str, exponents: str) -> None:
    x, y = np.array([-9, 3, -1, 1, 2, 0, 5, 7], of), np.array([-2, 3, -3, -100, 6, 0, 1, 2], exponents)
    expected = np.array([0, 27, -1, 1, 64, 1, 5, 49], of)
    assert_means(expected, helper.make_node("Pow", ["x", "y"], ["z"]), {"x": x, "y": y})


def test_powers_of_integers_to_floats() -> None:
    x = np.array([4, 9, 16, 2], np.int32)
    node = helper.make_node("Pow", ["x", "y"], ["z"])
    assert_means(np.array([2, 3, 4, 1], np.int32), node, {"x": x, "y": np.array([0.5], np.float32)})
    large = np.array([2**53 + 1, 3], np.int64)
    assert_means(large, node, {"x": large}, {"y": np.array([1.0], np.float32)})
    assert_means(large * large, node, {"x": large}, {"y": np.array(2.0, np.float64)})
    assert_means(np.array([0.25, 8], np.float32), node, {"x": np.array([2, 2], np.float32), "y": ints(-2, 3)})


@pytest.mark.parametrize("of", INTEGERS)
def test_padding_and_bounds_of_integers_are_exact(of: str) -> None:
    most = np.iinfo(of).max
    x = np.array([1, most], of)
    node = helper.make_node("Pad", ["x", "p", "v"], ["y"])
    assert_means(np.array([most - 2, 1, most], of), node, {"x": x}, {"p": ints(1, 0), "v": np.array(most - 2, of)})
    node = helper.make_node("Clip", ["x", "", "high"], ["y"])
    assert_means(np.array([1, most - 1], of), node, {"x": x}, {"high": np.array(most - 1, of)})


@pytest.mark.parametrize("of", ["int32", "int64", "uint32", "uint64"])
def test_the_mean_of_integers_is_exact_and_rounds_towards_zero(of: str) -> None:
    most, least = np.iinfo(of).max, np.iinfo(of).min
    x = np.array([[most, most, most - 1], [least, least, least + 1], [3, 4, 4], [0, 0, 1]], of)
    exact = [sum(row) for row in x.tolist()]
    expected = np.array([abs(total) // 3 * (1 if total >= 0 else -1) for total in exact], of)
    node = helper.make_node("ReduceMean", ["x"], ["y"], axes=[1], keepdims=0)
    graph = import_onnx(model([node], {"x": x}))
    for level in LEVELS:
        np.testing.assert_array_equal(gk.compile(graph, opt_level=level)(x)[0], expected)


def test_ranges_of_integers_are_exact() -> None:
    node = helper.make_node("Range", ["a", "b", "c"], ["y"])
    first = 2**53 + 1
    bounds = {"a": np.array(first), "b": np.array(first + 5), "c": np.array(2)}
    assert_means(ints(first, first + 2, first + 4), node, {}, bounds)


# ---------------------------------------------------------------- opsets


@pytest.mark.parametrize("opset", [1, 12, 13])
@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_softmax_of_a_matrix_before_opset_13(name: str, opset: int, axis: int | None) -> None:
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    node = helper.make_node(name, ["x"], ["y"], **attributes)
    taken = (-1 if opset >= 13 else 1) if axis is None else axis
    rows = X if opset >= 13 else X.reshape(int(np.prod(X.shape[:taken])), -1)
    along = taken if opset >= 13 else 1
    e = np.exp(rows - rows.max(along, keepdims=True))
    soft = e / e.sum(along, keepdims=True)
    first = np.expand_dims(rows.argmax(along), along)
    places = np.arange(rows.shape[along]).reshape([-1 if a == along % rows.ndim else 1 for a in range(rows.ndim)])
    expected = {"Softmax": soft, "LogSoftmax": np.log(soft), "Hardmax": (places == first).astype(np.float32)}[name]
    assert_means(expected.reshape(X.shape), node, {"x": X}, opset=opset)


@pytest.mark.parametrize(("attributes", "constants", "opset"), [
    ({"min": -0.5, "max": 0.5}, {}, 6),
    ({"min": -0.5, "max": 0.5}, {}, 10),
    ({}, {"low": np.array(-0.5, np.float32), "high": np.array(0.5, np.float32)}, 11),
    ({}, {"low": np.array(-0.5, np.float32), "high": np.array(0.5, np.float32)}, 13),
])  # fmt: skip
def test_bounds_of_clip_became_operands(attributes: dict[str, Any], constants: dict[str, Array], opset: int) -> None:
    node = helper.make_node("Clip", ["x", *constants], ["y"], **attributes)
    assert_means(np.clip(X, -0.5, 0.5), node, {"x": X}, constants, opset)


@pytest.mark.parametrize(("name", "of"), [("Add", X), ("Mul", X), ("Div", X), ("Sub", X), ("Less", X)])
def test_the_second_operand_began_at_an_axis_before_opset_7(name: str, of: Array) -> None:
    square = of[:, :, :3]  # the extents fit at either end
    column = np.array([1.0, 2.0, 3.0], np.float32)
    result = {"Add": np.add, "Mul": np.multiply, "Div": np.divide, "Sub": np.subtract, "Less": np.less}[name]
    node = helper.make_node(name, ["x", "z"], ["y"], axis=1, broadcast=1)
    assert_means(result(square, column[:, None]), node, {"x": square}, {"z": column}, 6)
    node = helper.make_node(name, ["x", "z"], ["y"])
    assert_means(result(square, column), node, {"x": square}, {"z": column}, 9)


def test_dropout_in_training_is_not_left_out() -> None:
    node = helper.make_node("Dropout", ["x", "r", "t"], ["y"])
    kept = {"r": np.array(0.5, np.float32), "t": np.array(False)}
    assert_means(X, node, {"x": X}, kept, 13)
    trained = import_onnx(model([node], {"x": X}, constants={**kept, "t": np.array(True)}, opset=13))
    assert [found.op.name for found in trained.operators] == ["Dropout"]


# ---------------------------------------------------------------- slices


SLICES = [(-99, 99, 1), (-99, -1, 1), (99, -99, -1), (-99, 99, -1), (-99, -98, -1), (-6, -99, -1), (-99, -99, -2),
          (3, -99, -2), (0, -99, -1), (4, 4, 1), (2, 1, 1), (1, 99, 3), (-1, 0, -1), (2**40, -(2**40), -3)]  # fmt: skip


def cut(extent: int, start: int, stop: int, step: int) -> list[int]:
    """The places by the text of the standard: starts and ends are clamped to the axis, whichever way the slice runs."""
    start, stop = (place + extent if place < 0 else place for place in (start, stop))
    start = min(max(start, 0), extent if step > 0 else extent - 1)
    stop = min(max(stop, 0 if step > 0 else -1), extent if step > 0 else extent - 1)
    return list(range(start, stop, step))


@pytest.mark.parametrize(("start", "stop", "step"), SLICES)
def test_slices_are_clamped_as_the_standard_says(start: int, stop: int, step: int) -> None:
    x = np.arange(5)
    node = helper.make_node("Slice", ["x", "b", "e", "a", "s"], ["y"])
    constants = {"b": ints(start), "e": ints(stop), "a": ints(0), "s": ints(step)}
    assert_means(x[cut(5, start, stop, step)], node, {"x": x}, constants)


@pytest.mark.parametrize(("start", "stop", "step"), SLICES)
def test_slices_of_shapes_are_cut_alike(start: int, stop: int, step: int) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Slice", ["shape", "b", "e", "a", "s"], ["part"]),
        helper.make_node("ReduceProd", ["part"], ["size"]),
        helper.make_node("Expand", ["k", "size"], ["y"]),
    ]
    x = np.zeros((2, 3, 1, 4, 5), np.float32)
    constants = {"b": ints(start), "e": ints(stop), "a": ints(0), "s": ints(step), "k": np.ones(1, np.float32)}
    graph = import_onnx(model(nodes, {"x": x}, constants=constants, shapes={"x": ("N", 3, 1, 4, 5)}))
    expected = int(np.prod([x.shape[place] for place in cut(5, start, stop, step)]))
    (found,) = gk.compile(graph, opt_level=2)(x)
    assert found.shape == (expected,)


# ---------------------------------------------------------------- symbols


@pytest.mark.parametrize("number", [2, 3])
def test_a_symbol_is_not_taken_to_differ_from_a_number(number: int) -> None:
    """Whether an extent is 3 is known when the model runs, not before."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Equal", ["shape", "three"], ["is"]),
        helper.make_node("Where", ["is", "ten", "shape"], ["y"]),
    ]
    x = np.zeros(number, np.float32)
    made = model(nodes, {"x": x}, constants={"three": ints(3), "ten": ints(10)}, shapes={"x": ("N",)})
    (found,) = gk.compile(import_onnx(made), opt_level=2)(x)
    assert found.tolist() == run_onnxruntime(made, {"x": x})[0].tolist()


# ---------------------------------------------------------------- folding

FOLDED: list[tuple[NodeProto, Sequence[Array]]] = [
    (helper.make_node("LpNormalization", ["x0"], ["y"], p=1), [X]),
    (helper.make_node("LpNormalization", ["x0"], ["y"], p=2, axis=0), [X]),
    (helper.make_node("ReduceLogSumExp", ["x0"], ["y"]), [np.array([[np.inf, 1], [-np.inf, -np.inf]], np.float32)]),
    (helper.make_node("ReduceLogSum", ["x0"], ["y"]), [np.array([[1, 2], [3, 4]], np.int32)]),
    (helper.make_node("CumSum", ["x0", "x1"], ["y"]), [np.array([2**53 + 1, 1, -1], np.int64), np.array(0)]),
    (helper.make_node("ReduceL2", ["x0"], ["y"]), [X]),
    (helper.make_node("Celu", ["x0"], ["y"], alpha=2.0), [X]),
    (helper.make_node("ThresholdedRelu", ["x0"], ["y"]), [X]),
    (helper.make_node("Trilu", ["x0"], ["y"]), [X]),
    (helper.make_node("GatherElements", ["x0", "x1"], ["y"]), [ints(2**53 + 1, 5), ints(-2, 1)]),
    (helper.make_node("ReduceMax", ["x0"], ["y"], axes=[0]), [np.zeros((0, 2), np.float32)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("node", "arrays"), FOLDED, ids=lambda part: part.op_type if isinstance(part, NodeProto) else ""
)
def test_folded_is_what_is_computed_at_run_time(node: NodeProto, arrays: Sequence[Array]) -> None:
    """At each level the same, whether operands are known or given; what cannot be computed now ends no compilation."""
    inputs = {f"x{place}": array for place, array in enumerate(arrays)}
    given = import_onnx(model([node], inputs, opset=17))
    known = import_onnx(model([node], {}, constants=inputs, opset=17))
    for level in LEVELS:
        at_run_time, before = gk.compile(given, opt_level=level), gk.compile(known, opt_level=level)
        try:
            expected = at_run_time(*arrays)[0]
        except Exception as error:
            with pytest.raises(type(error)):
                before()
            continue
        found = before()[0]
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=0 if found.dtype.kind in "iub" else 1e-6)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["RandomNormalLike", "Bernoulli"])
def test_random_numbers_are_drawn_by_each_node_in_each_run(name: str, level: int) -> None:
    """Equal nodes are not one, and none is computed when the graph is compiled."""
    half = np.full(1000, 0.5, np.float32)
    nodes = [
        helper.make_node(name, ["x"], ["a"]),
        helper.make_node(name, ["x"], ["b"]),
        helper.make_node(name, ["k"], ["c"]),
    ]
    executable = gk.compile(import_onnx(model(nodes, {"x": half}, ("a", "b", "c"), {"k": half})), opt_level=level)
    first, second = executable(half), executable(half)
    drawn = [*first, *second]
    assert not any((drawn[i] == drawn[j]).all() for i in range(len(drawn)) for j in range(i))


def test_texts_that_an_operator_makes_are_onnxruntimes() -> None:
    graph = model([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.STRING)], {"x": X})
    (found,), (wanted,) = gk.compile(import_onnx(graph))(X), run_onnxruntime(graph, {"x": X})
    assert found.tolist() == wanted.tolist()


MOVES: dict[str, tuple[dict[str, Any], dict[str, np.ndarray]]] = {
    "Pad": ({"mode": "reflect"}, {"amounts": np.array([0, 0, -1, 2, 0, 0, 1, -1])}),
    "DepthToSpace": ({"blocksize": 2}, {}),
    "SpaceToDepth": ({"blocksize": 2}, {}),
    "Trilu": ({"upper": 0}, {"k": np.array(1)}),
    "ReverseSequence": ({"batch_axis": 0, "time_axis": 1}, {"lengths": np.array([3, 2])}),
    "GatherElements": ({"axis": 3}, {"indices": np.zeros((2, 4, 4, 1), np.int64)}),
    "GatherND": ({}, {"indices": np.array([[1, 2], [0, 3]])}),
    "CenterCropPad": ({"axes": [2, 3]}, {"shape": np.array([2, 6])}),
}


@pytest.mark.parametrize("of", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("name", MOVES)
def test_what_moves_elements_moves_narrow_ones(name: str, of: str) -> None:
    attributes, constants = MOVES[name]
    x = np.random.default_rng(0).integers(0, 100, (2, 4, 4, 4))
    made = helper.make_node(name, ["x", *constants], ["y"], **attributes)
    results = []
    for each in (of, "int64"):
        inputs = {"x": x.astype(each)}
        results.append(gk.compile(import_onnx(model([made], inputs, constants=constants, opset=18)))(inputs["x"])[0])
    assert results[0].dtype == of
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("size", [2.0**-20, 1.0, 300.0])
@pytest.mark.parametrize("name", ["ReduceL2", "ReduceSumSquare", "Mean"])
def test_narrow_floats_are_rounded_once(name: str, size: float) -> None:
    x = (np.array([[1, 2, 3, 4], [4, 3, 2, 1]]) * size / (8 if name == "ReduceSumSquare" else 1)).astype(np.float16)
    x = x * np.float16(30) if name == "Mean" and size > 100 else x
    operands = ["x", "x", "x"] if name == "Mean" else ["x"]
    made = model([helper.make_node(name, operands, ["y"])], {"x": x}, opset=17)
    (expected,) = run_onnxruntime(made, {"x": x})
    for level in LEVELS:
        np.testing.assert_allclose(gk.compile(import_onnx(made), opt_level=level)(x)[0], expected, rtol=1e-3)
