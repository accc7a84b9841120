"""Models with symbolic extents have the shapes and numbers that onnxruntime has, for many values of the symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, helper

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx
from tests.support.onnx_models import model, run_onnxruntime

pytestmark = pytest.mark.usefixtures("shared_kernels")

node = helper.make_node
Arrays = Mapping[str, Any]


def arrays(shape: Sequence[int], of: Any = np.float32) -> np.ndarray:
    random = np.random.default_rng(sum(shape))
    return (
        random.standard_normal(shape).astype(of)
        if np.dtype(of).kind == "f"
        else random.integers(0, 9, shape).astype(of)
    )


def agrees(made: ModelProto, inputs: Arrays, level: int = 2) -> gk.Graph:
    """Loaded and compiled once, the model gives what onnxruntime gives."""
    graph = import_onnx(made)
    assert (
        gk.parse(
            str(graph), {data.digest: data.array for n in graph.nodes if (data := n.data) and data.array is not None}
        )
        == graph
    )
    found = gk.compile(graph, opt_level=level)(*inputs.values())
    for got, wanted in zip(found, run_onnxruntime(made, inputs), strict=True):
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=1e-5)
    return graph


def windows(name: str, seed: int) -> tuple[NodeProto, dict[str, np.ndarray], int]:
    """A random operator with windows that onnxruntime takes, its weights, and how many spatial axes it has."""
    random = Random(f"{name}{seed}")
    rank = random.randint(1, 2)

    def each(low: int, high: int, count: int = rank) -> list[int]:
        return [random.randint(low, high) for _ in range(count)]

    automatic = random.choice(["NOTSET", "NOTSET", "SAME_UPPER", "VALID"])
    is_same, kernel = automatic == "SAME_UPPER", each(1, 3)
    strides = [random.randint(1, most if is_same else 3) for most in kernel]
    attributes: dict[str, Any] = {"strides": strides, "kernel_shape": kernel}
    if automatic == "NOTSET":
        attributes["pads"] = [random.randint(0, kernel[axis % rank] - 1) for axis in range(2 * rank)]
    else:
        attributes["auto_pad"] = automatic
    if name != "ConvTranspose" and not is_same:
        attributes["dilations"] = each(1, 2)
    if name in ("MaxPool", "AveragePool"):
        attributes["ceil_mode"] = random.randint(0, 1)
        return node(name, ["x"], ["y"], **attributes), {}, rank
    channels = (3, 2) if name == "ConvTranspose" else (2, 3)
    of = np.uint8 if name == "ConvInteger" else np.float32
    return node(name, ["x", "w"], ["y"], **attributes), {"w": arrays((*channels, *kernel), of)}, rank


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["Conv", "ConvTranspose", "ConvInteger", "MaxPool", "AveragePool"])
def test_windows(name: str, seed: int) -> None:
    made, constants, rank = windows(name, seed)
    names = ("N", 3, *("H", "W")[:rank])
    of = np.uint8 if name == "ConvInteger" else np.float32
    for sizes in ((1, 3, *(7, 8)[:rank]), (2, 3, *(12, 9)[:rank])):
        x = arrays(sizes, of)
        agrees(model([made], {"x": x}, constants=constants, opset=19, shapes={"x": names}), {"x": x})


POOL: dict[str, Any] = {"kernel_shape": [5], "strides": [2]}
PADDED = node("Pad", ["e", "pads"], ["p"])
FEW_WINDOWS: Mapping[str, Sequence[NodeProto]] = {
    "a kernel behind windows": [node("MaxPool", ["x"], ["m"], **POOL), node("Exp", ["m"], ["y"])],
    "a kernel between two": [
        node("MaxPool", ["x"], ["m"], **POOL), node("Add", ["m", "bias"], ["e"]), PADDED,
        node("MaxPool", ["p"], ["q"], kernel_shape=[3], strides=[2]), node("Sin", ["q"], ["y"]),
    ],
    "means behind what is larger": [
        node("Resize", ["x", "", "scales"], ["r"]), node("AveragePool", ["r"], ["e"], **POOL), PADDED,
        node("Conv", ["p", "w"], ["q"], strides=[2]), node("Relu", ["q"], ["y"]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", FEW_WINDOWS)
def test_as_many_windows_as_there_are_may_be_none(name: str) -> None:
    constants = {
        "pads": np.array([0, 0, 1, 0, 0, 2]), "bias": arrays((3, 1)), "scales": np.array([1, 1, 1.5], np.float32),
        "w": arrays((2, 3, 3)),
    }  # fmt: skip
    made = model(FEW_WINDOWS[name], {"x": arrays((1, 3, 9))}, constants=constants, shapes={"x": (1, 3, "L")})
    graph = import_onnx(made)
    compiled = gk.compile(graph)
    counts: set[int] = set()
    for extent in range(3, 12):  # below there is less than no window, which onnxruntime refuses
        x = arrays((1, 3, extent))
        wanted = run_onnxruntime(made, {"x": x})[0]
        for found in (compiled(x)[0], np.asarray(gk.evaluate(graph, [x])[0])):
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-5)
        counts.add(wanted.shape[2])
    assert len(counts) > 2


def test_two_ways_to_one_extent_are_one_symbol() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["a"], strides=[2, 2], pads=[1, 1, 1, 1]), node("Conv", ["x", "v"], ["b"], strides=[2, 2]),
        node("Add", ["a", "b"], ["c"]), node("Relu", ["c"], ["d"]),
        node("MaxPool", ["d"], ["e"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Exp", ["e"], ["y"]),
    ]  # fmt: skip
    constants = {"w": arrays((4, 3, 3, 3)), "v": arrays((4, 3, 1, 1))}
    for sizes in ((1, 3, 9, 10), (2, 3, 16, 5)):
        x = arrays(sizes) / 10
        graph = agrees(model(nodes, {"x": x}, constants=constants, shapes={"x": ("N", 3, "H", "W")}), {"x": x})
        assert [found.op.name for found in graph.operators] == ["Conv2D", "Conv2D", "Add", "ReLU", "MaxPool", "Exp"]
        assert len(graph.derived) == 4


RESIZES: list[tuple[NodeProto, dict[str, np.ndarray], int]] = [
    (node("Resize", ["x", "", "s"], ["y"]), {"s": np.array([1, 1, 2, 2], np.float32)}, 13),
    (node("Resize", ["x", "", "s"], ["y"], mode="linear"), {"s": np.array([1, 1, 0.5, 1.5], np.float32)}, 13),
    (node("Resize", ["x", "", "s"], ["y"], axes=[2, 3]), {"s": np.array([0.25, 3], np.float32)}, 18),
    (node("Resize", ["x", "", "", "s"], ["y"]), {"s": np.array([2, 3, 5, 7])}, 13),
    (node("Resize", ["x", "", "", "s"], ["y"], axes=[3]), {"s": np.array([7])}, 18),
    (node("Resize", ["x", "s"], ["y"]), {"s": np.array([1, 1, 2, 1], np.float32)}, 10),
    (node("Upsample", ["x"], ["y"], scales=[1.0, 1.0, 2.0, 3.0]), {}, 7),
    (node("Upsample", ["x", "s"], ["y"], mode="linear"), {"s": np.array([1, 1, 2, 2], np.float32)}, 9),
]


@pytest.mark.parametrize("case", range(len(RESIZES)))
def test_resizing(case: int) -> None:
    made, constants, opset = RESIZES[case]
    x = arrays((2, 3, 5, 6))
    agrees(model([made], {"x": x}, constants=constants, opset=opset, shapes={"x": (2, 3, "H", "W")}), {"x": x})


def test_a_short_time_fourier_transform_has_half_of_the_spectrum() -> None:
    constants = {"step": np.array(4), "w": np.hanning(16).astype(np.float32), "n": np.array(16)}
    for shape in ((2, 100, 1), ("B", "L", 1)):
        for operands in (["x", "step", "w"], ["x", "step", "", "n"]):
            x = arrays((2, 100, 1))
            agrees(model([node("STFT", operands, ["y"])], {"x": x}, constants=constants, shapes={"x": shape}), {"x": x})


FAR = [2**63 - 1, 2**31 - 1, 10**9, -(2**63), -(2**31), -(10**9)]


@pytest.mark.parametrize("seed", range(30))
def test_slices_mean_what_onnxruntime_means(seed: int) -> None:
    random = Random(seed)
    step = random.choice([1, 1, 2, 3, -1, -2, 2**31])
    start, stop = (random.choice([*range(-9, 10), *FAR]) for _ in range(2))
    constants = {
        "b": np.array([start]),
        "e": np.array([stop]),
        "a": np.array([random.choice([1, -2])]),
        "s": np.array([step]),
    }
    nodes = [node("Slice", ["x", "b", "e", "a", "s"], ["c"]), node("Neg", ["c"], ["y"])]
    for columns in (1, 2, 5, 8, 12):
        x = arrays((3, columns, 2))
        for shape in (x.shape, ("N", "M", 2), (3, "M", "M")):
            if shape != (3, "M", "M") or columns == 2:
                agrees(model(nodes, {"x": x}, constants=constants, shapes={"x": shape}), {"x": x})


@pytest.mark.parametrize(
    ("starts", "ends"), [((-(2**63),), (5,)), ((0,), (2**63 - 1,)), ((-3,), (10**9,)), ((2,), (-1,))]
)
def test_slices_of_older_opsets(starts: Sequence[int], ends: Sequence[int]) -> None:
    x = arrays((2, 6))
    made = node("Slice", ["x"], ["y"], starts=starts, ends=ends, axes=[1])
    for shape in (x.shape, ("N", "M")):
        agrees(model([made], {"x": x}, opset=9, shapes={"x": shape}), {"x": x})


def sliced_by_length(*more: NodeProto) -> list[NodeProto]:
    """A table cut to the length of x, and what is done with it."""
    return [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["n"]), node("Unsqueeze", ["n", "zero"], ["e"]),
            node("Slice", ["table", "zero", "e", "zero"], ["t"]), *more]  # fmt: skip


TABLE = {"table": arrays((10, 4)), "one": np.array(1), "zero": np.array([0])}


def test_a_table_that_is_cut_to_a_length_is_as_long_where_that_is_needed() -> None:
    """Positions of a transformer: added to as many rows, they fuse."""
    nodes = sliced_by_length(node("Add", ["x", "t"], ["y"]))
    for rows in (3, 10):
        x = arrays((2, rows, 4))
        graph = agrees(model(nodes, {"x": x}, constants=TABLE, shapes={"x": ("B", "S", 4)}), {"x": x})
        assert graph.derived == ()
        assert "Add" in [found.op.name for found in graph.operators]


def test_a_table_that_is_cut_to_a_length_is_cut_elsewhere() -> None:
    nodes = sliced_by_length(node("Identity", ["t"], ["y"]))
    for rows in (3, 10, 12):
        x = arrays((2, rows, 4))
        agrees(model(nodes, {"x": x}, constants=TABLE, shapes={"x": ("B", "S", 4)}), {"x": x})


def test_a_part_of_a_long_operand_broadcasts_where_it_is_one_element() -> None:
    nodes = [node("Slice", ["x", "zero", "eight", "one"], ["c"]), node("Add", ["c", "k"], ["y"])]
    constants = {"zero": np.array([0]), "eight": np.array([8]), "one": np.array([1]), "k": arrays((8,))}
    for columns in (1, 8, 20):
        x = arrays((2, columns))
        agrees(model(nodes, {"x": x}, constants=constants, shapes={"x": ("N", "M")}), {"x": x})


@pytest.mark.parametrize("name", ["MaxPool", "AveragePool"])
def test_a_window_larger_than_what_it_is_put_on(name: str) -> None:
    made = node(name, ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
    for sizes in ((1, 3, 1, 4), (1, 3, 5, 1)):
        x = arrays(sizes)
        agrees(model([made], {"x": x}, shapes={"x": ("N", 3, "H", "W")}), {"x": x}, level=0)


def of_length(*more: NodeProto) -> list[NodeProto]:
    """Shape arithmetic over the second extent, and as many zeros as it gives."""
    return [
        node("Shape", ["x"], ["s"]), node("Slice", ["s", "one", "two"], ["n"]), *more,
        node("ConstantOfShape", ["m"], ["z"]), node("Cos", ["z"], ["y"]),
    ]  # fmt: skip


ARITHMETIC = {
    "half": [node("Div", ["n", "two"], ["m"])],
    "rest": [node("Mod", ["n", "three"], ["m"])],
    "at most": [node("Min", ["n", "three"], ["m"])],
    "at least": [node("Max", ["n", "three", "two"], ["m"])],
    "rounded up to a multiple": [
        node("Add", ["n", "two"], ["a"]), node("Div", ["a", "three"], ["b"]), node("Mul", ["b", "three"], ["m"]),
    ],
    "what a multiple lacks": [
        node("Neg", ["n"], ["a"]), node("Mod", ["a", "three"], ["m"]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", ARITHMETIC)
def test_shape_arithmetic_gives_extents(name: str) -> None:
    constants = {"one": np.array([1]), "two": np.array([2]), "three": np.array([3])}
    for columns in (1, 4, 7):
        x = arrays((2, columns))
        agrees(
            model(of_length(*ARITHMETIC[name]), {"x": x}, constants=constants, shapes={"x": ("N", "M")}), {"x": x}, 0
        )
