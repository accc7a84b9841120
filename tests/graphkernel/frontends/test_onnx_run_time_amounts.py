"""Shapes, axes, amounts and sizes that are computed at run time, and operators over extents that are not known to be equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, helper

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx
from tests.support.onnx_models import model, run_onnxruntime

node = helper.make_node
X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
IMAGE = X[None]
NAMES = ("N", "M", 4)
THREE, OTHERS = ("B", "I", "J"), ("C", "D", "E")


def whole(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def scale(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


Case = tuple[list[NodeProto], dict[str, Any], dict[str, Any], dict[str, Any], int]

CASES: dict[str, Case] = {
    "axes of a sum": ([node("ReduceSum", ["x", "a"], ["y"])], {"x": X, "a": whole(1)}, {}, {}, 18),
    "axes of a mean": ([node("ReduceMean", ["x", "a"], ["y"], keepdims=0)], {"x": X, "a": whole(1)}, {}, {}, 18),
    "shape": (
        [node("Reshape", ["x", "a"], ["t"]), node("Relu", ["t"], ["y"])],
        {"x": X, "a": whole(0, -1)},
        {},
        {"x": NAMES},
        18,
    ),
    "expansion": ([node("Expand", ["x", "a"], ["y"])], {"x": X, "a": whole(5, 1, 1, 4)}, {}, {}, 18),
    "repeats": ([node("Tile", ["x", "a"], ["y"])], {"x": X, "a": whole(2, 1, 2)}, {}, {}, 18),
    "padding": ([node("Pad", ["x", "a"], ["y"])], {"x": X, "a": whole(0, 1, 0, 0, 0, 2)}, {}, {"x": NAMES}, 18),
    "padding of an axis": (
        [node("Pad", ["x", "a", "", "c"], ["y"], mode="edge")],
        {"x": X, "a": whole(1, 2)},
        {"c": whole(1)},
        {"x": NAMES},
        18,
    ),
    "negative padding": ([node("Pad", ["x", "a"], ["y"])], {"x": X}, {"a": whole(0, 0, -1, 0, 0, 2)}, {"x": THREE}, 18),
    "reflection": (
        [node("Pad", ["x", "a"], ["y"], mode="reflect")],
        {"x": X},
        {"a": whole(0, 1, 2, 0, 1, 1)},
        {"x": THREE},
        18,
    ),
    "bounds": ([node("Slice", ["x", "a", "b"], ["y"])], {"x": X, "a": whole(1), "b": whole(2)}, {}, {"x": NAMES}, 18),
    "axis of a slice": (
        [node("Slice", ["x", "a", "b", "c"], ["y"])],
        {"x": X, "a": whole(1), "b": whole(2), "c": whole(2)},
        {},
        {},
        18,
    ),
    "sizes of parts": ([node("Split", ["x", "a"], ["y", "z"], axis=1)], {"x": X, "a": whole(1, 2)}, {}, {}, 18),
    "parts": ([node("Split", ["x"], ["y", "z"], axis=1, num_outputs=2)], {"x": X}, {}, {"x": NAMES}, 18),
    "equal parts": ([node("Split", ["x"], ["y", "z"], axis=2)], {"x": X}, {}, {"x": THREE}, 13),
    "new axes": ([node("Unsqueeze", ["x", "a"], ["y"])], {"x": X, "a": whole(1, 0)}, {}, {}, 18),
    "axes that go": ([node("Squeeze", ["x", "a"], ["y"])], {"x": X[:1], "a": whole(0)}, {}, {}, 18),
    "axes of extent 1": (
        [node("Squeeze", ["x"], ["t"]), node("Neg", ["t"], ["y"])],
        {"x": X[:1]},
        {},
        {"x": NAMES},
        18,
    ),
    "shape of zeros": ([node("ConstantOfShape", ["a"], ["y"])], {"a": whole(2, 3)}, {}, {}, 18),
    "depth": ([node("OneHot", ["a", "b", "c"], ["y"])], {"a": whole(1, 2), "b": whole(4)}, {"c": scale(0, 1)}, {}, 18),
    "number of the largest": ([node("TopK", ["x", "a"], ["y", "z"])], {"x": X, "a": whole(2)}, {}, {"x": NAMES}, 18),
    "scales": ([node("Resize", ["x", "", "a"], ["y"])], {"x": IMAGE, "a": scale(1, 1, 2, 3)}, {}, {}, 18),
    "sizes": ([node("Resize", ["x", "", "", "a"], ["y"])], {"x": IMAGE, "a": whole(1, 2, 5, 7)}, {}, {}, 18),
    "scales of an older opset": (
        [node("Upsample", ["x", "a"], ["y"])],
        {"x": IMAGE, "a": scale(1, 1, 2, 2)},
        {},
        {},
        9,
    ),
    "constant to a length": (
        [
            node("Shape", ["x"], ["s"]),
            node("Slice", ["s", "o", "w"], ["d"]),
            node("Concat", ["t", "d"], ["e"], axis=0),
            node("Expand", ["k", "e"], ["y"]),
        ],
        {"x": X},
        {"o": whole(2), "w": whole(3), "t": whole(3), "k": scale(1, 2, 3)[:, None]},
        {"x": ("N", 3, "M")},
        18,
    ),
    "groups": (
        [node("GroupNormalization", ["x", "s", "s"], ["y"], num_groups=2)],
        {"x": X.reshape(2, 4, 3)},
        {"s": scale(1, 2, 3, 4)},
        {"x": ("N", 4, "L")},
        21,
    ),
    "groups that are deprecated": (
        [node("GroupNormalization", ["x", "s", "s"], ["y"], num_groups=2)],
        {"x": X.reshape(2, 4, 3)},
        {"s": scale(1, 2)},
        {},
        18,
    ),
    "depth to space": (
        [node("DepthToSpace", ["x"], ["y"], blocksize=2)],
        {"x": X.reshape(1, 8, 3, 1)},
        {},
        {"x": ("N", 8, "H", "W")},
        13,
    ),
    "space to depth": (
        [node("SpaceToDepth", ["x"], ["y"], blocksize=2)],
        {"x": X.reshape(1, 1, 6, 4)},
        {},
        {"x": ("N", 1, "H", "W")},
        13,
    ),
    "sum": ([node("Add", ["x", "z"], ["y"])], {"x": X, "z": X[:1]}, {}, {"x": THREE, "z": OTHERS}, 13),
    "product": (
        [node("MatMul", ["x", "z"], ["y"])],
        {"x": X, "z": X.reshape(2, 4, 3)},
        {},
        {"x": THREE, "z": OTHERS},
        13,
    ),
    "matrices": (
        [node("Gemm", ["x", "z"], ["y"])],
        {"x": X[0], "z": X[1].T.copy()},
        {},
        {"x": ("I", "J"), "z": ("D", "E")},
        13,
    ),
    "choice": (
        [node("Where", ["c", "x", "z"], ["y"])],
        {"c": X > 0, "x": X, "z": X[:1]},
        {},
        {"c": ("A", "I", "J"), "x": THREE, "z": OTHERS},
        13,
    ),
    "joined": ([node("Concat", ["x", "z"], ["y"], axis=1)], {"x": X, "z": X}, {}, {"x": THREE, "z": OTHERS}, 13),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_known_at_run_time_is_what_onnxruntime_knows(name: str) -> None:
    nodes, inputs, constants, shapes, opset = CASES[name]
    made = model(nodes, inputs, tuple(nodes[-1].output), constants, opset, shapes)
    graph = import_onnx(made)
    for level in (0, 2):
        found = gk.compile(graph, opt_level=level)(*inputs.values())
        for got, wanted in zip(found, run_onnxruntime(made, inputs), strict=True):
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_weights_need_not_be_inputs_in_old_files() -> None:
    made = model([node("Mul", ["x", "k"], ["y"])], {"x": X}, constants={"k": scale(2)}, opset=7)
    made.ir_version = 3
    np.testing.assert_array_equal(gk.compile(import_onnx(made))(X)[0], X * 2)


@pytest.mark.parametrize("of", [np.uint8, np.int8, np.int32, np.int16, np.float16, np.bool_])
@pytest.mark.parametrize("places", [np.int32, np.int64])
def test_elements_of_a_table_keep_their_type(of: Any, places: Any) -> None:
    table, i = np.arange(40).reshape(10, 4).astype(of), np.array([3, -1, 0], places)
    made = model([node("Gather", ["w", "i"], ["y"])], {"i": i}, constants={"w": table})
    (got,) = gk.compile(import_onnx(made), opt_level=2)(i)
    assert got.dtype == table.dtype
    np.testing.assert_array_equal(got, table[i])


OLD: list[tuple[NodeProto, dict[str, np.ndarray], int]] = [
    (node("Pad", ["x"], ["y"], pads=[0, 0, 1, 1, 0, 0, 2, 0], value=2.0), {}, 7),
    (node("Pad", ["x"], ["y"], pads=[0, 0, 1, 1, 0, 0, 1, 0], mode="reflect"), {}, 7),
    (node("Clip", ["x"], ["y"], min=0.2, max=0.6), {}, 7),
    (node("BatchNormalization", ["x", "s", "s", "s", "s"], ["y"]), {"s": scale(1, 2, 3)}, 7),
    (node("TopK", ["x"], ["y", "z"], k=2), {}, 7),
    (node("Dropout", ["x"], ["y", "mask"]), {}, 7),
    (node("Squeeze", ["x"], ["y"], axes=[0]), {}, 9),
    (node("Split", ["x"], ["y", "z"], axis=1, split=[1, 2]), {}, 9),
    (node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2]), {}, 7),
    (node("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), {}, 7),
]


@pytest.mark.parametrize("case", range(len(OLD)))
def test_operators_of_old_opsets(case: int) -> None:
    made, constants, opset = OLD[case]
    x = X.reshape(1, 3, 2, 4)
    of = model([made], {"x": x}, [made.output[0]], constants, opset, {"x": (1, 3, "H", 4)})
    (got,), (wanted, *_) = gk.compile(import_onnx(of), opt_level=2)(x), run_onnxruntime(of, {"x": x})
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
