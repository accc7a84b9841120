"""The loops of matrix products, over blocks of results that stay in registers.

    lanes are columns            parallel j by 32; i by 8; k; vector j; i unrolled
    rows that no block covers    parallel j in strips; k; vector j; i unrolled: the other operand is read once for all of them
    lanes are terms of the sum   parallel j by 4; i by 4; vector k; i, j unrolled
    of sizes that are open       the first one, then the last one for what no whole block covers

Members are numbers of a band's; ``rest`` are the loops outside, ``sums`` the members of the reduction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kernelgen.nest.marks import VECTOR
from kernelgen.plan import LoopPlan, PiecePlan, WholeTiles
from kernelgen.poly.model.register_cost import Block
from kernelgen.tensor.dims import Dim, Sym

MOST_FEW = 4
"""The most rows that are taken at once where no block fits and their number is not known."""


def pieces_along_columns(
    row: int, column: int, rest: tuple[LoopPlan, ...], sums: Sequence[int], extent: Dim, block: Block, strip: int
) -> tuple[PiecePlan, ...]:
    """Whole blocks; the columns beside them; the rows below them. ``extent`` is the number of rows.

    ``strip`` columns of all rows that are left over stay in the first cache.
    """
    rows, columns = block
    inner = (*map(LoopPlan, sums), LoopPlan(column, mark=VECTOR))
    unrolled = (*inner, LoopPlan(row, unroll=True))
    whole = WholeTiles(row, rows)
    below = (*rest, LoopPlan(column, strip))
    if isinstance(extent, Sym):
        few = tuple(PiecePlan((*below, LoopPlan(row, n), *unrolled), (WholeTiles(row, n),)) for n in few_rows(rows))
        last = PiecePlan((*below, LoopPlan(row), *inner))
    else:
        few = ()
        last = PiecePlan((*below, *unrolled) if extent % rows > 1 else (*below, LoopPlan(row), *inner))
    return (
        PiecePlan(
            (*rest, LoopPlan(column, columns), LoopPlan(row, rows), *unrolled), (whole, WholeTiles(column, columns))
        ),
        PiecePlan((*rest, LoopPlan(row, rows), *unrolled), (whole,)),
        *few,
        last,
    )


def few_rows(rows: int) -> tuple[int, ...]:
    """How many rows below the blocks are taken at once: a divisor, so that such a tile begins where the last block ends.

    Tiles of 4 behind blocks of 6 start in the middle of what is left: { 4t : t } and { 6b : b } meet every 12 rows only.
    """
    divisors = [few for few in range(2, MOST_FEW + 1) if rows % few == 0 and few < rows]
    return (max(divisors),) if divisors else ()


def pieces_along_sum(
    row: int, column: int, rest: tuple[LoopPlan, ...], sums: Sequence[int], block: Block
) -> tuple[PiecePlan, ...]:
    """Whole blocks of single results; the columns beside them; the rows below them."""
    rows, columns = block
    *outer, last = sums
    inner = (*map(LoopPlan, outer), LoopPlan(last, mark=VECTOR))
    both = (LoopPlan(row, unroll=True), LoopPlan(column, unroll=True))
    whole = WholeTiles(row, rows)
    return (
        PiecePlan(
            (*rest, LoopPlan(column, columns), LoopPlan(row, rows), *inner, *both), (whole, WholeTiles(column, columns))
        ),
        PiecePlan((*rest, LoopPlan(row, rows), LoopPlan(column), *inner, LoopPlan(row, unroll=True)), (whole,)),
        PiecePlan((*rest, LoopPlan(row), LoopPlan(column), *inner)),
    )


def pieces_turned(
    row: int, column: int, rest: tuple[LoopPlan, ...], sums: Sequence[int], block: Block, points: Block
) -> tuple[PiecePlan, ...]:
    """Sizes that are open, where lanes are terms as memory lies: whole blocks get panels, which turn round what they hold.

    What is beside and below them is in single results, by whole rows of blocks first, so that every piece is a rectangle.
    """
    rows, columns = block
    whole = WholeTiles(row, rows)
    inner = (*map(LoopPlan, sums), LoopPlan(column, mark=VECTOR), LoopPlan(row, unroll=True))
    first = PiecePlan(
        (*rest, LoopPlan(column, columns), LoopPlan(row, rows), *inner), (whole, WholeTiles(column, columns))
    )
    single = pieces_along_sum(row, column, rest, sums, points)
    beside = tuple(replace(piece, whole=(whole, *_columns(piece, column))) for piece in single[:2])
    return (first, *beside, *single)


def _columns(piece: PiecePlan, column: int) -> Iterator[WholeTiles]:
    return (tiles for tiles in piece.whole if tiles.member == column)
