"""Grids that are padded to whole windows, cut into these and put together again, at sizes that only a run tells."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import NodeProto, helper

from graphkernel.frontends.onnx.importer import import_onnx
from tests.graphkernel.frontends.test_onnx_symbolic_extents import agrees, arrays
from tests.support.onnx_models import model

node = helper.make_node
LAST = -(2**63) + 1
CONSTANTS = {
    "heights": np.array(1), "widths": np.array(2), "window": np.array(4), "none": np.zeros(1, np.int64),
    "one": np.ones(1, np.int64), "sides": np.array([8]), "pairs": np.array([-1, 2]), "end": np.array([-1]),
    "beyond": np.array([LAST]), "whole": np.array([-1, 16, 3]), "channels": np.array([3]), "fours": np.array([4]),
}  # fmt: skip


def as_exporters_pad() -> list[NodeProto]:
    """``pad(x, (0, 0, 0, -w % 4, 0, -h % 4))``: amounts from the last axis on are turned into ONNX's order."""
    return [
        node("Shape", ["x"], ["shape"]),
        *(each for axis in ("heights", "widths") for each in missing(axis)),
        node("Concat", ["none", "none", "none", "widths_missing", "none", "heights_missing"], ["listed"], axis=0),
        node("Shape", ["listed"], ["count"]),
        node("Sub", ["sides", "count"], ["others"]),
        node("ConstantOfShape", ["others"], ["zeros"], value=helper.make_tensor("zero", 7, [1], [0])),
        node("Concat", ["listed", "zeros"], ["amounts"], axis=0),
        node("Reshape", ["amounts", "pairs"], ["rows"]),
        node("Slice", ["rows", "end", "beyond", "none", "end"], ["turned"]),
        node("Transpose", ["turned"], ["columns"], perm=[1, 0]),
        node("Reshape", ["columns", "end"], ["pads"]),
        node("Pad", ["x", "pads"], ["padded"]),
    ]


def missing(axis: str) -> list[NodeProto]:
    """How many places the last window lacks."""
    return [
        node("Gather", ["shape", axis], [axis + "_have"]),
        node("Mod", [axis + "_have", "window"], [axis + "_over"]),
        node("Sub", ["window", axis + "_over"], [axis + "_lacks"]),
        node("Mod", [axis + "_lacks", "window"], [axis + "_pad"]),
        node("Unsqueeze", [axis + "_pad", "none"], [axis + "_missing"]),
    ]


def cut_into_windows() -> list[NodeProto]:
    """``x.view(b, h // 4, 4, w // 4, 4, 3).transpose(2, 3).view(-1, 16, 3)``."""
    counts = [
        each
        for axis in ("heights", "widths")
        for each in (
            node("Gather", ["padded_shape", axis], [axis + "_now"]),
            node("Div", [axis + "_now", "window"], [axis + "_of"]),
            node("Unsqueeze", [axis + "_of", "none"], [axis + "_count"]),
        )
    ]
    return [
        node("Shape", ["padded"], ["padded_shape"]),
        *counts,
        node("Concat", ["end", "heights_count", "fours", "widths_count", "fours", "channels"], ["grid"], axis=0),
        node("Reshape", ["padded", "grid"], ["boxes"]),
        node("Transpose", ["boxes"], ["together"], perm=[0, 1, 3, 2, 4, 5]),
        node("Reshape", ["together", "whole"], ["windows"]),
        node("Softmax", ["windows"], ["y"], axis=1),
    ]


@pytest.mark.parametrize("sizes", [(1, 8, 8, 3), (2, 7, 9, 3), (3, 1, 4, 3)])
def test_a_grid_is_padded_to_whole_windows(sizes: tuple[int, ...]) -> None:
    x = arrays(sizes)
    nodes = [*as_exporters_pad(), *cut_into_windows()]
    made = model(nodes, {"x": x}, constants=CONSTANTS, opset=17, shapes={"x": ("N", "H", "W", 3)})
    graph = agrees(made, {"x": x})
    assert not any(found.defines for found in graph.operators)  # sizes are told before the run


def test_a_window_of_what_a_convolution_leaves() -> None:
    """Its extents are more than one product of symbols, and divide all the same."""
    x, nodes = arrays((2, 3, 13, 16)), [node("Conv", ["x", "w"], ["c"], strides=[2, 2], kernel_shape=[3, 3])]
    nodes += [
        node("Shape", ["c"], ["shape"]),
        node("Slice", ["shape", "two", "four"], ["grid"]),
        node("ReduceProd", ["grid"], ["places"], keepdims=1),
        node("Concat", ["end", "places", "halves"], ["target"], axis=0),
        node("Reshape", ["c", "target"], ["y"]),
    ]
    constants = {
        "w": arrays((4, 3, 3, 3)), "two": np.array([2]), "four": np.array([4]), "end": np.array([-1]), "halves": np.array([2]),
    }  # fmt: skip
    made = model(nodes, {"x": x}, constants=constants, opset=17, shapes={"x": ("N", 3, "H", "W")})
    agrees(made, {"x": x})
    assert str(import_onnx(made).outputs[0].type.shape[0]) == "2*N"


@pytest.mark.parametrize("length", [1, 3, 6, 9])
def test_a_bound_counts_from_whichever_end_the_sizes_say(length: int) -> None:
    """``table[5 - n : 4 + n]``, as positions relative to each other are cut: the first is negative for long inputs."""
    x, nodes = arrays((length, 4)), [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "none"], ["n"]),
        node("Sub", ["five", "n"], ["start"]),
        node("Add", ["four", "n"], ["stop"]),
        node("Slice", ["table", "start", "stop", "none"], ["rows"]),
        node("MatMul", ["x", "weights"], ["left"]),
        node("Transpose", ["rows"], ["right"], perm=[1, 0]),
        node("MatMul", ["left", "right"], ["y"]),
    ]  # fmt: skip
    constants = {
        "none": np.zeros(1, np.int64), "five": np.array([5]), "four": np.array([4]), "table": arrays((9, 4)),
        "weights": arrays((4, 4)),
    }  # fmt: skip
    graph = agrees(model(nodes, {"x": x}, constants=constants, opset=17, shapes={"x": ("N", 4)}), {"x": x})
    assert not any(found.defines for found in graph.operators)


def test_axes_that_are_not_cut_keep_their_extents() -> None:
    """Where the cut is told by data alone."""
    x = {"x": arrays((2, 7, 4)), "stop": np.array([5])}
    nodes = [node("Slice", ["x", "none", "stop", "one"], ["rows"]), node("Relu", ["rows"], ["y"])]
    made = model(nodes, x, constants={k: CONSTANTS[k] for k in ("none", "one")}, opset=17, shapes={"x": ("N", "T", 4)})
    graph = agrees(made, x)
    first, _, last = graph.outputs[0].type.shape
    assert (str(first), last) == ("N", 4)
