"""Convolutions with channels last and constant weights: results over sizes, strides, padding and groups, and their loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_examples import Writer, tensor
from operator_kernels import one

from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.kernel import Kernel
from kernelgen.nest.index import variables
from kernelgen.nest.nodes import Accumulate, For, Load, LoopKind, Num, Space
from kernelgen.nest.text import show
from kernelgen.nest.walk import calls_of, loads_of, statements
from kernelgen.plan import CpuPlan, Plan
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.types import Attrs, TensorType, dtype

F = "float32"
Shape = tuple[int, ...]


def convolution(image: Shape, weights: Shape, **attrs: object) -> KernelDesc:
    """A convolution of a graph in NHWC."""
    found = Attrs.of(format="NHWC", **attrs)
    types = tuple(TensorType(shape, dtype(F)) for shape in (image, weights))
    (result,) = CONV2D.infer(types, found)
    plain: dict[str, Any] = dict(found)
    return one("Conv2D", [(F, image), (F, weights)], [(F, result.shape)], **plain)


def agrees(desc: KernelDesc, plan: Plan | None = None) -> Kernel:
    """A kernel whose weights are constant; it gives what the operator means."""
    kernel = compile(desc, "cpu", constants=[1], plan=plan)
    random = np.random.default_rng(5)
    arrays = [random.standard_normal(tuple(map(int, map(str, v.shape))), np.float32) for v in desc.graph.inputs]
    (node,) = desc.operators
    wanted = CONV2D.meaning(*(a.astype(np.float64) for a in arrays), attrs=node.attrs)
    (found,) = kernel(*kernel.call_inputs(arrays))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    return kernel


@st.composite
def convolutions(draw: st.DrawFn) -> KernelDesc:
    """Windows, strides, dilations, margins and groups of all kinds."""
    window = draw(st.sampled_from([(1, 1), (3, 3), (2, 3), (1, 5), (5, 5), (7, 7), (3, 1)]))
    stride, dilation = (draw(st.sampled_from([(1, 1), (2, 2), (2, 1), (1, 3)])) for _ in range(2))
    spans = [d * (k - 1) + 1 for k, d in zip(window, dilation, strict=True)]
    pads = tuple(draw(st.integers(0, span - 1)) for span in spans for _ in range(2))
    extents = [draw(st.integers(max(1, span - pads[2 * k] - pads[2 * k + 1]), 33)) for k, span in enumerate(spans)]
    groups = draw(st.sampled_from([1, 1, 2, 8]))
    inner, outer = draw(st.integers(1, 20)), draw(st.sampled_from([1, 3, 16, 40]))
    if draw(st.booleans()):
        groups, inner, outer = draw(st.sampled_from([5, 16, 24, 40])), 1, 1
    image = (draw(st.integers(1, 2)), *extents, inner * groups)
    attrs = {"stride": stride, "dilation": dilation, "pad": pads, "group": groups}
    return convolution(image, (*window, inner, outer * groups), **attrs)


@settings(max_examples=12, deadline=None)
@given(convolutions())
def test_convolutions_with_constant_weights_agree(desc: KernelDesc) -> None:
    agrees(desc)


@pytest.mark.parametrize(("window", "stride", "extent"), [(3, 1, 56), (3, 2, 56), (5, 1, 14), (7, 1, 28), (3, 1, 7)])
def test_windows_of_channels_ask_nowhere_whether_they_are_inside(window: int, stride: int, extent: int) -> None:
    margin = window // 2
    attrs = {"stride": (stride, stride), "pad": (margin,) * 4, "group": 32}
    kernel = agrees(convolution((1, extent, extent, 32), (window, window, 1, 32), **attrs))
    inside = list(statements(kernel.nest.body))
    assert any(isinstance(part, Accumulate) for part in inside)
    assert not [call for part in inside for call in calls_of(part) if call.function == "select"]
    assert {loop.var for loop in inside if isinstance(loop, For) and loop.kind is LoopKind.PARALLEL} == {"c0"}


def test_neighbours_share_what_they_load() -> None:
    kernel = agrees(convolution((1, 4, 4, 16), (3, 3, 1, 16), pad=(1, 1, 1, 1), group=16))
    assert GOLDEN in show(kernel.nest)


GOLDEN = """\
    for c2 in max(0 - (c0 - 1), 0)..min(4 - (c0 - 1), 3) {
"""


@pytest.mark.parametrize(("window", "channels"), [(3, 3), (7, 3), (5, 1)])
def test_images_of_few_channels_are_not_copied(window: int, channels: int) -> None:
    attrs = {"stride": (2, 2), "pad": (window // 2,) * 4}
    kernel = agrees(convolution((1, 40, 40, channels), (window, window, channels, 32), **attrs))
    inside = list(statements(kernel.nest.body))
    assert not [call for part in inside for call in calls_of(part) if call.function == "select"]
    assert {buffer.name for buffer in kernel.nest.buffers if buffer.space is Space.WORKSPACE} == set()


def test_results_of_a_group_lie_together() -> None:
    kernel = agrees(convolution((1, 6, 20, 128), (3, 3, 32, 128), pad=(1, 1, 1, 1), group=4), Plan(CpuPlan()))
    assert "prepared0: f32[4, 3, 3, 32, 32]" in show(kernel.nest)


def test_what_follows_a_row_of_windows_shares_its_loop() -> None:
    writer = Writer()
    x, w, b = tensor("x", 1, 12, 12, 32), tensor("w", 3, 3, 32, 32), tensor("b", 32)
    y = writer.op("Conv2D", x, w, shape=(1, 12, 12, 32), pad=[1, 1, 1, 1], format="NHWC")
    z = writer.op("Add", y, b, shape=(1, 12, 12, 32))
    kernel = compile(writer.desc("biased", (x, w, b), z), "cpu", constants=[1, 2])
    rows = [part for part in kernel.nest.body.statements if isinstance(part, For)]
    assert [loop.kind for loop in rows] == [LoopKind.PARALLEL] * 2  # the padded copy, and all else
    random = np.random.default_rng(1)
    arrays = [random.standard_normal(shape, np.float32) for shape in ((1, 12, 12, 32), (3, 3, 32, 32), (32,))]
    (found,) = kernel(*kernel.call_inputs(arrays))
    wanted = CONV2D.meaning(*arrays[:2], attrs=Attrs.of(pad=(1, 1, 1, 1), format="NHWC")) + arrays[2]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("stride", [1, 2])
def test_all_rows_of_an_image_pass_a_panel_of_many_weights_before_the_next(stride: int) -> None:
    kernel = agrees(convolution((1, 5, 6, 128), (3, 3, 128, 136), stride=(stride, stride), pad=(1, 1, 1, 1)))
    outer = [part for part in kernel.nest.body.statements if isinstance(part, For)]
    panels = {
        (loop.var, load.index[0]) for loop in outer for load in loads_of_all(loop) if load.buffer.name == "prepared0"
    }
    ((var, panel),) = panels
    assert {var} == variables(panel), "the outermost loop is over panels"
    assert "into cache 2" in show(kernel.nest), "the next panel is asked for"


def loads_of_all(loop: For) -> list[Load]:
    """What statements inside of a loop load."""
    return [load for part in statements(loop.body) for load in loads_of(part)]


def test_a_mean_of_all_rows_reads_them_as_they_lie() -> None:
    attrs: dict[str, Any] = {"pool_type": "avg", "everywhere": True, "data_layout": "NHWC"}
    kernel = compile(one("Pool2D", [(F, (1, 7, 7, 64))], [(F, (1, 1, 1, 64))], **attrs), "cpu")
    x = np.random.default_rng(2).standard_normal((1, 7, 7, 64), np.float32)
    (found,) = kernel(x)
    np.testing.assert_allclose(found.reshape(1, 64), x.mean((1, 2)), rtol=1e-5, atol=1e-5)
    vectors = [p for p in statements(kernel.nest.body) if isinstance(p, For) and p.kind is LoopKind.VECTOR]
    assert {str(loop.upper) for loop in vectors} == {str(Num(64))}


def test_weights_and_rows_that_are_not_known_agree() -> None:
    """Nothing is prepared: the same loops read the weights as they lie."""
    desc = convolution((2, 9, 30, 24), (3, 3, 1, 24), pad=(1, 1, 1, 1), group=24)
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape, np.float32) for shape in ((2, 9, 30, 24), (3, 3, 1, 24)))
    wanted = CONV2D.meaning(x, w, attrs=desc.operators[0].attrs)
    (found,) = compile(desc, "cpu")(x, w)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
