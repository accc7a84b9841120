"""Panels of products with constants: those of whole blocks, and what they leave of the columns in as few as can be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_examples import Writer, tensor

from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.nest.nodes import For, Space
from kernelgen.nest.walk import statements
from kernelgen.plan import CpuPlan, Plan, VectorUnit
from kernelgen.poly.model.register_cost import BlockRules, block_for, panel_widths
from kernelgen.tensor.dims import sym

SIXTEEN_REGISTERS = replace(CpuPlan(), unit=VectorUnit(registers=16, lanes=8), threads=1)


def product(rows: int, terms: int, columns: int) -> KernelDesc:
    w = Writer()
    a, b, c = tensor("a", rows, terms), tensor("b", terms, columns), tensor("c", columns)
    return w.desc(
        "product", (a, b, c), w.op("Add", w.op("MatMul", a, b, shape=(rows, columns)), c, shape=(rows, columns))
    )


def test_what_blocks_leave_is_one_panel_for_each_thread() -> None:
    assert panel_widths(256, 24, 8) == (24, 16, 8)
    assert panel_widths(512, 40, 8) == (40, 32, 8)
    assert panel_widths(512, 40, 8, threads=2) == (40, 16, 8)
    assert panel_widths(40, 24, 8) == (24, 8), "no tile of two vectors begins behind three"
    assert panel_widths(512, 24, 8) == (24, 8), "one vector is left"
    assert panel_widths(240, 24, 8) == (24, 8), "none is left"
    assert panel_widths(sym("n"), 24, 8) == (24, 8), "nobody knows how many are left"


@given(st.integers(1, 999), st.integers(1, 8), st.sampled_from((4, 8, 16)), st.integers(1, 4))
def test_widths_take_all_whole_vectors(columns: int, vectors: int, lanes: int, threads: int) -> None:
    left = columns
    for width in panel_widths(columns, vectors * lanes, lanes, threads):
        assert width % lanes == 0 < width <= vectors * lanes
        assert (columns - left) % width == 0 or left < width, "tiles are counted from the first column"
        left %= width
    assert left < lanes


def test_the_block_that_leaves_two_vectors_is_taken() -> None:
    """Two panels of one vector would wait for their sums: their blocks have four of them, where eight are under way."""
    assert block_for(784, 256, BlockRules(SIXTEEN_REGISTERS.unit)) == (4, 24)


def test_wide_blocks_wait_for_their_vectors() -> None:
    """2 x 40 would leave no single vector of 512 columns, but its five vectors come from the second cache for two rows."""
    assert block_for(784, 512, BlockRules(SIXTEEN_REGISTERS.unit)) == (4, 24)


def test_of_shares_that_take_equally_long_the_largest_is_taken() -> None:
    kernel = compile(product(784, 32, 256), constants=(1, 2), plan=Plan(SIXTEEN_REGISTERS))
    assert max(part.step for part in statements(kernel.nest.body) if isinstance(part, For)) == 392


@pytest.mark.parametrize(("columns", "panels"), [(40, [40]), (64, [24, 16]), (56, [24, 8]), (48, [24]), (67, [24, 16])])
def test_products_with_such_panels_are_right(columns: int, panels: list[int]) -> None:
    desc = product(32, 48, columns)
    kernel = compile(desc, constants=(1, 2), plan=Plan(SIXTEEN_REGISTERS))
    assert kernel.nest.preparation is not None
    made = {each.shape[-1] for each in kernel.nest.preparation.buffers if each.space is Space.OUTPUT}
    assert {width for width in made if isinstance(width, int) and width >= 8} == {*panels}
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(shape).astype(np.float32) for shape in ((32, 48), (48, columns), (columns,)))
    (found,) = kernel(*kernel.call_inputs([a, b, c]))
    sizes = abs(a).astype(np.float64) @ abs(b) + abs(c)
    assert np.all(abs(found - (a.astype(np.float64) @ b + c)) <= 52 * 2.0**-24 * sizes)
