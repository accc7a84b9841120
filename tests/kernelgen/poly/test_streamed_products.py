"""Products of operands that no cache holds read each of them once: tiles of rows, or of terms, lie around their panels."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, tensor

import kernelgen
from kernelgen.checker import check
from kernelgen.composite.description import KernelDesc
from kernelgen.plan import CpuPlan, LoopPlan, Plan

LONG = 4096


def product(rows: int, terms: int, columns: int, *, by_terms: bool) -> KernelDesc:
    """``x w``, where ``x`` lies by terms or by rows."""
    w = Writer()
    shape = (terms, rows) if by_terms else (rows, terms)
    x, y = tensor("x", *shape), tensor("w", terms, columns)
    result = w.op("MatMul", x, y, shape=(rows, columns), transpose_a=by_terms, transpose_b=False)
    return w.desc("product", (x, y), result)


def tiles_of(desc: KernelDesc, threads: int = 1) -> tuple[LoopPlan, ...]:
    """The loops around those of the blocks, which are five."""
    plan = kernelgen.compile(desc, plan=Plan(CpuPlan(threads=threads))).plan
    assert plan.bands
    return plan.bands[0].pieces[0].loops[:-5]


def test_rows_that_no_cache_holds_pass_all_panels_in_tiles() -> None:
    (tile,) = tiles_of(product(LONG, 96, 64, by_terms=False))
    assert tile.member == 0
    assert tile.tile is not None
    assert LONG % tile.tile == 0


@pytest.mark.parametrize(("threads", "share"), [(1, 48), (2, 24)])
def test_terms_of_a_small_result_pass_once_for_the_rows_of_a_thread(threads: int, share: int) -> None:
    rows, terms = tiles_of(product(48, LONG, 64, by_terms=True), threads)
    assert (rows.member, rows.tile, terms.member) == (0, share, 2)
    assert terms.tile is not None
    assert LONG % terms.tile == 0


@pytest.mark.parametrize(
    ("rows", "terms", "columns", "by_terms"),
    [
        pytest.param(256, 96, 64, False, id="operands stay in a cache"),
        pytest.param(LONG, 96, 32, False, id="there is one panel"),
        pytest.param(4099, 96, 64, False, id="no tiles are equal"),
        pytest.param(256, LONG, 1024, True, id="results do not stay"),
    ],
)
def test_other_products_have_no_tiles_around_their_panels(rows: int, terms: int, columns: int, by_terms: bool) -> None:
    assert not tiles_of(product(rows, terms, columns, by_terms=by_terms))


@pytest.mark.parametrize(("rows", "terms", "by_terms"), [(LONG, 96, False), (48, LONG, True), (48, LONG, False)])
@pytest.mark.parametrize("threads", [1, 2])
def test_tiles_change_no_result(rows: int, terms: int, by_terms: bool, threads: int) -> None:
    """Integers, whose sums are exact in any order."""
    desc, rng = product(rows, terms, 64, by_terms=by_terms), np.random.default_rng(0)
    x, w = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((rows, terms), (terms, 64)))
    kernel = kernelgen.compile(desc, plan=Plan(CpuPlan(threads=threads)))
    assert tiles_of(desc, threads)
    np.testing.assert_array_equal(kernel(np.ascontiguousarray(x.T) if by_terms else x, w)[0], x @ w)


@pytest.mark.parametrize(("rows", "terms", "by_terms"), [(LONG, 96, False), (48, LONG, True)])
def test_the_independent_checker_finds_nothing_wrong_with_tiles(rows: int, terms: int, by_terms: bool) -> None:
    desc = product(rows, terms, 64, by_terms=by_terms)
    assert check(kernelgen.compile(desc).lowered.nest, desc).fault is None
