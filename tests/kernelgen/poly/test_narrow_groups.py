"""Convolutions of groups that fill a vector or a part of one: lanes are channels of several groups, and sums are the same."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import kernelgen
from kernelgen.canonical.groups_in_lanes import groups_in_lanes
from kernelgen.checker import check
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.vocabulary import WORDS
from kernelgen.tensor.text import parse

OPERATORS = {word.name: word for word in WORDS}
ROWS, COLUMNS = 7, 19


def convolution(
    groups: int, inner: int, outer: int, size: int = 3, stride: int = 1, dilation: int = 1, down: int = ROWS
) -> KernelDesc:
    """``groups`` of ``inner`` channels of an image of ``down`` rows, each with ``outer`` results."""
    reach = (size - 1) * dilation
    pad = reach // 2
    rows, columns = ((extent + 2 * pad - reach - 1) // stride + 1 for extent in (down, COLUMNS))
    results = groups * outer
    text = f"""graph convolution(x: f32[1, {down}, {COLUMNS}, {groups * inner}], w: f32[{size}, {size}, {inner}, {results}]) {{
  y: f32[1, {rows}, {columns}, {results}] = Conv2D(x, w, dilation=({dilation}, {dilation}), format="NHWC", group={groups}, \
pad=({pad}, {pad}, {pad}, {pad}), stride=({stride}, {stride}))
  return y = y
}}"""
    return KernelDesc(parse(text, OPERATORS))


def of_numpy(x: np.ndarray, w: np.ndarray, groups: int, stride: int, dilation: int) -> np.ndarray:
    """Windows of the padded image, group by group."""
    size, _, inner, outer = w.shape
    reach = (size - 1) * dilation
    padded = np.pad(x[0], ((reach // 2, reach // 2), (reach // 2, reach // 2), (0, 0)))
    windows = sliding_window_view(padded, (reach + 1, reach + 1), (0, 1))[::stride, ::stride, :, ::dilation, ::dilation]
    parts = windows.reshape(*windows.shape[:2], groups, inner, size, size)
    return np.einsum("yxgcab,abcgo->yxgo", parts, w.reshape(size, size, inner, groups, outer // groups)).reshape(
        1, *windows.shape[:2], outer
    )


def numbers(desc: KernelDesc) -> list[np.ndarray]:
    """Integers, whose sums are exact in any order."""
    rng = np.random.default_rng(0)
    return [
        rng.integers(-4, 5, [int(dim) for dim in each.shape if isinstance(dim, int)]).astype(np.float32)
        for each in desc.graph.inputs
    ]


GROUPS = [
    pytest.param(8, 4, 4, id="four groups of four are sixteen lanes"),
    pytest.param(8, 2, 2, id="eight groups of two"),
    pytest.param(4, 8, 8, id="two groups of eight"),
    pytest.param(3, 16, 16, id="a group is a vector"),
    pytest.param(5, 4, 4, id="channels are left over"),
    pytest.param(7, 2, 2, id="fewer channels than lanes"),
    pytest.param(8, 8, 4, id="twice as many channels as results"),
    pytest.param(4, 32, 8, id="four times as many"),
    pytest.param(4, 40, 8, id="five times as many, which is no narrow group"),
    pytest.param(8, 2, 4, id="fewer channels than results"),
    pytest.param(4, 12, 12, id="groups that fill no vector"),
]


@pytest.mark.parametrize(("groups", "inner", "outer"), GROUPS)
def test_sums_are_those_of_numpy(groups: int, inner: int, outer: int) -> None:
    agrees(groups, inner, outer)


@pytest.mark.parametrize(("groups", "inner", "outer"), [(8, 4, 4), (4, 16, 8), (3, 16, 16)])
@pytest.mark.parametrize(("size", "stride", "dilation"), [(3, 2, 1), (3, 1, 2), (5, 1, 1)])
def test_windows_may_be_of_any_kind(groups: int, inner: int, outer: int, size: int, stride: int, dilation: int) -> None:
    agrees(groups, inner, outer, size, stride, dilation)


def agrees(groups: int, inner: int, outer: int, size: int = 3, stride: int = 1, dilation: int = 1) -> None:
    desc = convolution(groups, inner, outer, size, stride, dilation)
    x, w = numbers(desc)
    kernel = kernelgen.compile(desc, constants=(1,))
    np.testing.assert_array_equal(kernel(*kernel.call_inputs([x, w]))[0], of_numpy(x, w, groups, stride, dilation))


@pytest.mark.parametrize(("groups", "inner", "outer"), GROUPS)
def test_the_independent_checker_finds_nothing_wrong(groups: int, inner: int, outer: int) -> None:
    """Of three rows, of which one meets no border: the loops are those of more, and the checker runs more of them whole."""
    desc = convolution(groups, inner, outer, down=3)
    assert check(kernelgen.compile(desc).lowered.nest, desc).fault is None


@pytest.mark.parametrize(("groups", "channels"), [(8, 4), (4, 8), (16, 2)])
def test_nothing_is_gathered(groups: int, channels: int) -> None:
    kernel = kernelgen.compile(convolution(groups, channels, channels), constants=(1,))
    assert "masked.gather" not in str(kernel.source)


def loops_of_results(rows: int, columns: int, channels: int) -> list[str]:
    """The variables of the loops that have a tile of channels or of neighbours, outermost first."""
    text = f"""graph depthwise(x: f32[1, {rows}, {columns}, {channels}], w: f32[3, 3, 1, {channels}]) {{
  y: f32[1, {rows}, {columns}, {channels}] = Conv2D(x, w, dilation=(1, 1), format="NHWC", group={channels}, pad=(1, 1, 1, 1), \
stride=(1, 1))
  return y = y
}}"""
    plan = kernelgen.compile(KernelDesc(parse(text, OPERATORS)), constants=(1,)).plan
    assert plan.bands
    members = [loop.member for loop in plan.bands[0].pieces[0].loops if loop.tile is not None]
    return ["channels" if member == max(members) else "neighbours" for member in members]


def test_an_image_that_passes_the_caches_is_read_with_all_its_channels() -> None:
    assert loops_of_results(112, 112, 96) == ["neighbours", "channels"]


def test_an_image_that_a_cache_holds_keeps_the_weights_of_a_vector() -> None:
    assert loops_of_results(28, 28, 96) == ["channels", "neighbours"]


def test_groups_that_fill_vectors_are_marked_once() -> None:
    desc = convolution(8, 4, 4)
    marked = groups_in_lanes(desc)
    assert marked is not desc
    assert groups_in_lanes(marked) is marked
    wide = convolution(4, 12, 12)
    assert groups_in_lanes(wide) is wide
