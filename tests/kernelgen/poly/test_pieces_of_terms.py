"""Products of few rows with a constant of many terms: a piece of the terms passes all panels before the next piece."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, tensor

from kernelgen.checker import check
from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.kernel import Kernel
from kernelgen.nest.nodes import Prefetch
from kernelgen.nest.walk import statements
from kernelgen.plan import CpuPlan, LoopPlan, Plan

ROWS, TERMS, COLUMNS = 128, 8192, 96


def product(rows: int, terms: int, columns: int) -> KernelDesc:
    """``x w + r``, whose ``w`` is constant."""
    w = Writer()
    x, y, r = tensor("x", rows, terms), tensor("w", terms, columns), tensor("r", rows, columns)
    result = w.op("MatMul", x, y, shape=(rows, columns), transpose_a=False, transpose_b=False)
    return w.desc("product", (x, y, r), w.op("Add", result, r, shape=(rows, columns)))


def compiled(rows: int, terms: int, columns: int, threads: int = 1) -> Kernel:
    return compile(product(rows, terms, columns), plan=Plan(CpuPlan(threads=threads)), constants=[1])


def pieces_of_terms(kernel: Kernel) -> list[LoopPlan]:
    """The loops over terms that are around others over terms."""
    assert kernel.plan.bands
    loops = kernel.plan.bands[0].pieces[0].loops
    return [loop for loop in loops if loop.member == 2][:-1]


@pytest.mark.parametrize("columns", [COLUMNS, COLUMNS + 16], ids=["whole panels", "columns left over"])
@pytest.mark.parametrize("threads", [1, 2])
def test_pieces_are_equal_and_results_are_those_of_numpy(columns: int, threads: int) -> None:
    kernel = compiled(ROWS, TERMS, columns, threads)
    (piece,) = pieces_of_terms(kernel)
    assert piece.tile is not None
    assert TERMS % piece.tile == 0
    assert check(kernel.lowered.nest, product(ROWS, TERMS, columns)).fault is None
    rng = np.random.default_rng(0)
    x, w, r = (rng.standard_normal(shape, np.float32) for shape in ((ROWS, TERMS), (TERMS, columns), (ROWS, columns)))
    (found,) = kernel(x, r, *kernel.prepare(w))
    expected = x.astype(np.float64) @ w + r
    # The error of a sum grows with the magnitudes that it adds up.
    bound = np.finfo(np.float32).eps * (np.abs(x).astype(np.float64) @ np.abs(w) + np.abs(r))
    assert (np.abs(found - expected) <= 8 * bound).all()


def test_rows_of_a_block_that_leave_the_first_cache_are_taken_in_pieces() -> None:
    (piece,) = pieces_of_terms(compiled(64, 3072, COLUMNS))
    assert piece.tile is not None
    assert 8 * 4 * piece.tile <= 48 << 10 < 8 * 4 * 3072


def test_panels_ask_for_what_their_piece_reads_next() -> None:
    nest = compiled(ROWS, TERMS, COLUMNS).nest
    assert [part for part in statements(nest.body) if isinstance(part, Prefetch)]


@pytest.mark.parametrize(
    ("rows", "terms", "columns"),
    [
        pytest.param(ROWS, 1024, COLUMNS, id="all terms find room"),
        pytest.param(8, TERMS, COLUMNS, id="one block of rows reads each panel once"),
        pytest.param(197, TERMS, COLUMNS, id="rows left over would read the constant once more"),
        pytest.param(ROWS, 8191, COLUMNS, id="no pieces are equal"),
    ],
)
def test_other_products_pass_a_panel_with_all_terms(rows: int, terms: int, columns: int) -> None:
    assert not pieces_of_terms(compiled(rows, terms, columns))
