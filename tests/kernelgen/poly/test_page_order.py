"""Rows that change places in memory: of the loops over them the one that touches fewer pages is inside."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.nest.nodes import For, LoopKind, Prefetch
from kernelgen.nest.walk import statements
from kernelgen.plan import Plan
from kernelgen.stages import lower
from kernelgen.tensor.dims import Dim, sym
from kernelgen.transforms.cpu.prefetching.hints import LARGE_BYTES

HEADS, WIDTH = 12, 64
LARGE = LARGE_BYTES // (HEADS * WIDTH * 4) + 1


def moved(*shape: Dim, order: tuple[int, ...]) -> KernelDesc:
    """``-x`` with its axes in another order."""
    writer, x = Writer(), tensor("x", *shape)
    result = tuple(shape[axis] for axis in order)
    turned = writer.op("Transpose", x, shape=result, perm=order)
    return writer.desc("moved", (x,), writer.op("Neg", turned, shape=result))


def extents(desc: KernelDesc) -> list[str]:
    """The upper bounds of the loops, outer ones first."""
    loops = [part for part in statements(lower(desc, Plan()).nest.body) if isinstance(part, For)]
    assert loops[-1].kind is LoopKind.VECTOR
    return [str(getattr(loop.upper, "value", loop.upper)) for loop in loops]


def test_the_loop_inside_reads_rows_that_lie_behind_each_other() -> None:
    assert extents(moved(LARGE, HEADS, WIDTH, order=(1, 0, 2))) == [str(LARGE), str(HEADS), str(WIDTH)]


def test_loops_around_keep_their_place() -> None:
    half = LARGE // 2 + 1
    assert extents(moved(2, half, HEADS, WIDTH, order=(0, 2, 1, 3))) == ["2", str(half), str(HEADS), str(WIDTH)]


@pytest.mark.parametrize(
    ("desc", "found"),
    [
        (moved(128, HEADS, WIDTH, order=(1, 0, 2)), [str(HEADS), "128", str(WIDTH)]),
        (moved(HEADS, LARGE, WIDTH, order=(1, 0, 2)), [str(LARGE), str(HEADS), str(WIDTH)]),
    ],
    ids=["a cache holds it", "the inner one touches fewer as it is"],
)
def test_other_loops_stay(desc: KernelDesc, found: list[str]) -> None:
    assert extents(desc) == found


def test_an_open_size_keeps_the_order_of_what_is_written() -> None:
    nest = lower(moved(sym("n"), HEADS, WIDTH, order=(1, 0, 2)), Plan()).nest
    outer, *_ = (part for part in statements(nest.body) if isinstance(part, For))
    assert getattr(outer.upper, "value", None) == HEADS


@pytest.mark.parametrize("shape", [(LARGE, HEADS, WIDTH), (HEADS, LARGE, WIDTH), (LARGE, HEADS, 65)])
def test_elements_are_where_they_belong(shape: tuple[int, ...]) -> None:
    desc = moved(*shape, order=(1, 0, 2))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    np.testing.assert_array_equal(kernelgen.compile(desc)(x)[0], -x.transpose(1, 0, 2))


@pytest.mark.parametrize(("shape", "asks"), [((LARGE, HEADS, WIDTH), True), ((HEADS, LARGE, WIDTH), False)])
def test_a_page_ahead_is_asked_for_where_rows_lie_behind_each_other(shape: tuple[int, ...], asks: bool) -> None:
    parts = statements(lower(moved(*shape, order=(1, 0, 2)), Plan()).nest.body)
    assert any(isinstance(part, Prefetch) for part in parts) is asks
