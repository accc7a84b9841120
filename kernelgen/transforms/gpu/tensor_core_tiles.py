"""The arithmetic of a product's tile by tensor cores: each warp holds a rectangle of 16 x 8 matrices of results.

    for step in 0..depth by 16:
      fragments a[m] = left[half, rows 16 m..., step...]          ldmatrix: four 8 x 8 matrices by one instruction
      fragments b[n] = right[half, columns 8 n..., step...]
      multiply results[m, n] += a[m] x b[n]                        mma.sync m16n8k16, added up in float32

Which lane holds which element is that of the PTX ISA, "matrix fragments for mma.m16n8k16": with group = lane / 4 and
member = lane % 4, numbers 2 r and 2 r + 1 of a result are row group + 8 r, columns 2 member and one more. An operand that
lies along the terms of the sum is read as it is, one that lies along its side is transposed by the same instruction.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.machines.gpu.device import WARP
from kernelgen.nest import index as ix
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.nodes import (
    THREAD_INDICES,
    Alloc,
    Bind,
    Buffer,
    Index,
    LoadFragments,
    MultiplyFragments,
    Num,
    Space,
    Statement,
    Store,
    Var,
)
from kernelgen.tensor.dtypes import FLOAT32, UINT32, DType
from kernelgen.transforms.gpu.register_tiles import Finish
from kernelgen.transforms.gpu.shared_tiles import LANE, Panel, unrolled

ROWS, COLUMNS, TERMS = 16, 8, 16
"""Of one instruction."""

MATRIX = 8
"""The side of the matrices that ``ldmatrix`` loads."""

OWN, DOWN, ACROSS, STEP = "own", "warp_down", "warp_across", "step"
GROUP, MEMBER = "group", "member"


@dataclass(frozen=True)
class WarpTiles:
    """``down`` x ``across`` warps, each with ``rows`` x ``columns`` instructions' results; operands are ``dtype``."""

    name: str
    down: int
    across: int
    rows: int
    columns: int
    dtype: DType

    @property
    def threads(self) -> int:
        """In a block."""
        return WARP * self.down * self.across

    @property
    def results(self) -> Buffer:
        """A lane's share of the results of its warp."""
        return Buffer(f"{self.name}_results", FLOAT32, (self.rows, self.columns, 4), Space.PRIVATE)

    def begin(self) -> list[Statement]:
        """Coordinates of the warp and the lane; results are 0."""
        x = Var(THREAD_INDICES[0])
        zero = Store(self.results, (Var("m"), Var("n"), Var(LANE)), neutral_element("add", FLOAT32))
        return [
            Bind(DOWN, ix.floor_divide(x, Num(WARP * self.across))),
            Bind(ACROSS, ix.modulo(ix.floor_divide(x, Num(WARP)), Num(self.across))),
            Bind(OWN, ix.modulo(x, Num(WARP))),
            Alloc(self.results),
            unrolled("m", self.rows, unrolled("n", self.columns, unrolled(LANE, 4, zero))),
        ]

    def multiply(self, left: Panel, right: Panel, half: Index) -> list[Statement]:
        """Adds up the products of one tile."""
        a = Buffer(f"{self.name}_a", UINT32, (self.rows, 4), Space.PRIVATE)
        b = Buffer(f"{self.name}_b", UINT32, (self.columns, 2), Space.PRIVATE)
        at = (Var("m"), Var("n"), Num(0))
        product = MultiplyFragments(self.results, at, a, (Var("m"), Num(0)), b, (Var("n"), Num(0)), self.dtype)
        body = [
            Alloc(a),
            Alloc(b),
            unrolled("m", self.rows, self._left(a, left, half)),
            unrolled("n", self.columns // 2, self._right(b, right, half)),
            unrolled("m", self.rows, unrolled("n", self.columns, product)),
        ]
        return [unrolled(STEP, left.depth // TERMS, *body)]

    def finish(self, do: Finish) -> list[Statement]:
        """Gives each pair of neighbouring results to ``do``."""
        places = [Bind(GROUP, ix.floor_divide(Var(OWN), Num(4))), Bind(MEMBER, ix.modulo(Var(OWN), Num(4)))]
        row = ix.add(_tile(DOWN, self.rows, "m", ROWS), ix.add(ix.multiply(Var("pair"), Num(MATRIX)), Var(GROUP)))
        column = ix.add(_tile(ACROSS, self.columns, "n", COLUMNS), ix.multiply(Var(MEMBER), Num(2)))
        place = (Var("m"), Var("n"), ix.add(ix.multiply(Var("pair"), Num(2)), Var(LANE)))
        pairs = unrolled("pair", 2, *do(row, column, place, 2))
        return [*places, unrolled("m", self.rows, unrolled("n", self.columns, pairs))]

    def _left(self, a: Buffer, panel: Panel, half: Index) -> Statement:
        """Matrices of rows 0..8 and 8..16, of terms 0..8, then of terms 8..16; each lane points at one row of one matrix."""
        return _load(a, (Var("m"), Num(0)), panel, half, _tile(DOWN, self.rows, "m", ROWS), terms_first=False)

    def _right(self, b: Buffer, panel: Panel, half: Index) -> Statement:
        """Matrices of terms 0..8 and 8..16, of columns 0..8, then of columns 8..16."""
        number = ix.add(ix.multiply(Var(ACROSS), Num(self.columns * COLUMNS)), ix.multiply(Var("n"), Num(2 * COLUMNS)))
        return _load(b, (ix.multiply(Var("n"), Num(2)), Num(0)), panel, half, number, terms_first=True)


def _load(
    target: Buffer, to: tuple[Index, ...], panel: Panel, half: Index, number: Index, terms_first: bool
) -> LoadFragments:
    """Four matrices of 16 numbers of a side by 16 terms; the second one is further along the terms, or along the side."""
    matrix, row = ix.floor_divide(Var(OWN), Num(MATRIX)), ix.modulo(Var(OWN), Num(MATRIX))
    second, fourth = ix.modulo(matrix, Num(2)), ix.floor_divide(matrix, Num(2))
    term_step, number_step = (second, fourth) if terms_first else (fourth, second)
    term = ix.add(ix.multiply(Var(STEP), Num(TERMS)), ix.multiply(term_step, Num(MATRIX)))
    number = ix.add(number, ix.multiply(number_step, Num(MATRIX)))
    if panel.term_inner:
        number = ix.add(number, row)
    else:
        term = ix.add(term, row)
    return LoadFragments(target, to, panel.shared, panel.place(half, number, term), 4, not panel.term_inner)


def _tile(coordinate: str, count: int, number: str, size: int) -> Index:
    """The first row or column of a warp's instruction."""
    return ix.add(ix.multiply(Var(coordinate), Num(count * size)), ix.multiply(Var(number), Num(size)))
