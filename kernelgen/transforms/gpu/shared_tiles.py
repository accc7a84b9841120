"""Brings the tile of one operand of a product into shared memory: global memory, registers, shared memory.

    left1_next[turn, 0..4] = f(a[number, term...])        while the last tile is multiplied
    left1[half, term, number...] = left1_next[turn, ...]  then, behind the last barrier

Threads go along the direction in which the operand lies in memory, so that neighbours load neighbours, 16 bytes each where
rows are aligned. What lies outside of the operand is 0, which adds nothing. Two halves of the shared array take turns: one
is filled while the other one is read, so that one barrier for each tile is enough. Rows of the shared array have 16 bytes
more than they need, so that equal places of neighbouring rows fall into different banks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelgen.machines.gpu.device import WIDEST_ACCESS
from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.walk import loads, map_expression
from kernelgen.transforms.gpu.delinearise import digits, iterations
from kernelgen.transforms.gpu.product_recognition import is_contiguous

SPOT, NUMBER, TERM, TURN, LANE = "spot", "number", "term", "turn", "lane"


def unrolled(var: str, count: int, *body: n.Statement) -> n.For:
    """A loop whose iterations are written out."""
    return n.For(var, n.Num(0), n.Num(count), n.Block(body), n.LoopKind.UNROLL)


@dataclass(frozen=True)
class Panel:
    """``extent`` numbers of a side (rows or columns of the product) by ``depth`` terms of the sum, loaded by all threads.

    ``start`` is the first number of the tile. The shared array is ``[half, number, term]`` where ``term_inner``, else
    ``[half, term, number]``.
    """

    name: str
    value: n.Expr
    side: tuple[n.For, ...]
    sums: tuple[n.For, ...]
    extent: int
    depth: int
    threads: int
    start: n.Index
    term_inner: bool
    stages: int = 2

    @property
    def along_terms(self) -> bool:
        """Whether neighbouring threads take neighbouring terms, not neighbouring numbers of the side."""
        return lies_along_terms(self.value, self.side, self.sums)

    @property
    def fast(self) -> n.For:
        """The loop along which neighbouring threads load."""
        return (self.sums if self.along_terms else self.side)[-1]

    @property
    def shared(self) -> n.Buffer:
        """Both halves, with padded rows."""
        pad = WIDEST_ACCESS // self.value.dtype.itemsize
        shape = (self.extent, self.depth + pad) if self.term_inner else (self.depth, self.extent + pad)
        return n.Buffer(self.name, self.value.dtype, (self.stages, *shape), n.Space.SHARED)

    @property
    def staged(self) -> n.Buffer:
        """What a thread has loaded of the next tile."""
        return n.Buffer(f"{self.name}_next", self.value.dtype, (self.turns, self.width), n.Space.PRIVATE)

    @property
    def width(self) -> int:
        """Neighbours that a thread loads at once: 16 bytes where all that moves along them is aligned."""
        fast, moving = self.fast, self._moving(self.fast.var)
        count = WIDEST_ACCESS // max(each.dtype.itemsize for each in (self.value, *moving))
        if not isinstance(fast.upper, n.Num) or not moving:
            return 1
        while fast.upper.value % count or not all(_is_aligned(load, fast.var, count) for load in moving):
            if count == 1:
                break
            count //= 2
        return count

    @property
    def turns(self) -> int:
        """How often a thread loads."""
        return -(-self.extent * self.depth // (self.threads * self.width))

    def place(self, half: n.Index, number: n.Index, term: n.Index) -> tuple[n.Index, n.Index, n.Index]:
        """The index of an element in the shared array."""
        return (half, number, term) if self.term_inner else (half, term, number)

    def allocations(self) -> list[n.Statement]:
        """The arrays for tiles that come through registers."""
        return [n.Alloc(self.shared), n.Alloc(self.staged), *map(n.Alloc, self._runs().values())]

    def fetch(self, first: n.Index) -> n.Statement:
        """Loads the tile whose first term is ``first`` into registers."""
        number, term = self._spot()
        zero = neutral_element("add", self.value.dtype)
        cleared = unrolled(LANE, self.width, n.Store(self.staged, (n.Var(TURN), n.Var(LANE)), zero))
        inside = n.If(self._inside(), n.Block((*self._places(), *self._loaded())))
        return self._turns(
            n.Bind(NUMBER, ix.add(self.start, number)), n.Bind(TERM, ix.add(first, term)), cleared, inside
        )

    @property
    def is_direct(self) -> bool:
        """Whether runs of 16 bytes go to shared memory as they are."""
        is_whole = self.width * self.value.dtype.itemsize == WIDEST_ACCESS
        return is_whole and isinstance(self.value, n.Load) and self.along_terms == self.term_inner

    def start_copies(self, stage: n.Index, first: n.Index) -> n.Statement:
        """Lets the tile whose first term is ``first`` go to a part of the shared array by itself."""
        assert isinstance(self.value, n.Load)
        number, term = self._spot()
        at: dict[str, n.Index] = {NUMBER: ix.add(self.start, number), TERM: ix.add(first, term)}
        inside = tuple(replace(c, left=ix.substitute(c.left, at)) for c in self._inside() if c.left != n.Var(SPOT))
        places = {bind.var: ix.substitute(bind.index, at) for bind in self._places()}
        start = tuple(ix.substitute(place, places) for place in self.value.index)
        to = self.place(stage, number, term)
        move: n.Statement = n.AsyncCopy(self.shared, to, self.value.buffer, start, self.width, inside)
        if self._is_uneven():
            move = n.If((n.Compare("<", n.Var(SPOT), n.Num(self.extent * self.depth)),), n.Block((move,)))
        return self._turns(move)

    def put(self, half: n.Index) -> n.Statement:
        """Stores it from the registers into a half of the shared array."""
        number, term = self._spot()
        if self.width > 1 and self.along_terms == self.term_inner:
            move: n.Statement = n.Copy(
                self.shared,
                self.place(half, n.Var(NUMBER), n.Var(TERM)),
                self.staged,
                (n.Var(TURN), n.Num(0)),
                self.width,
            )
        else:
            lane = n.Num(0) if self.width == 1 else n.Var(LANE)
            if self.along_terms:
                to = self.place(half, n.Var(NUMBER), ix.add(n.Var(TERM), lane))
            else:
                to = self.place(half, ix.add(n.Var(NUMBER), lane), n.Var(TERM))
            move = n.Store(self.shared, to, n.Load(self.staged, (n.Var(TURN), lane)))
            move = move if self.width == 1 else unrolled(LANE, self.width, move)
        if self._is_uneven():
            move = n.If((n.Compare("<", n.Var(SPOT), n.Num(self.extent * self.depth)),), n.Block((move,)))
        return self._turns(n.Bind(NUMBER, number), n.Bind(TERM, term), move)

    def _moving(self, variable: str) -> list[n.Load]:
        """What the value loads along a variable."""
        found = dict.fromkeys(loads(self.value))
        return [load for load in found if any(variable in ix.variables(i) for i in load.index)]

    def _turns(self, *body: n.Statement) -> n.Statement:
        own = ix.multiply(
            ix.add(ix.multiply(n.Var(TURN), n.Num(self.threads)), n.Var(n.THREAD_INDICES[0])), n.Num(self.width)
        )
        return unrolled(TURN, self.turns, n.Bind(SPOT, own), *body)

    def _spot(self) -> tuple[n.Index, n.Index]:
        """The number and the term of a thread's first element, counted from the tile's."""
        row = n.Num(self.depth if self.along_terms else self.extent)
        slow, fast = ix.floor_divide(n.Var(SPOT), row), ix.modulo(n.Var(SPOT), row)
        if not self.along_terms:
            return fast, slow
        return (self._apart(slow) if self.term_inner and self.width > 1 else slow), fast

    def _apart(self, row: n.Index) -> n.Index:
        """Rows in the order 0, 4, 1, 5, 2, 6, 3, 7: two of 64 bytes, four rows of 80 apart, fill all banks together."""
        eight = ix.multiply(ix.floor_divide(row, n.Num(8)), n.Num(8))
        four = ix.multiply(ix.modulo(row, n.Num(2)), n.Num(4))
        return ix.add(ix.add(eight, four), ix.modulo(ix.floor_divide(row, n.Num(2)), n.Num(4)))

    def _is_uneven(self) -> bool:
        return self.turns * self.threads * self.width != self.extent * self.depth

    def _inside(self) -> tuple[n.Compare, ...]:
        """A run of neighbours is inside as a whole: their number divides the extent."""
        conditions = [n.Compare("<", n.Var(TERM), iterations(self.sums))]
        count = iterations(self.side)
        if not (isinstance(count, n.Num) and count.value % self.extent == 0):
            conditions.append(n.Compare("<", n.Var(NUMBER), count))
        if self._is_uneven():
            conditions.append(n.Compare("<", n.Var(SPOT), n.Num(self.extent * self.depth)))
        return tuple(conditions)

    def _places(self) -> list[n.Bind]:
        pairs = [*zip(self.side, digits(n.Var(NUMBER), self.side), strict=True)]
        pairs += zip(self.sums, digits(n.Var(TERM), self.sums), strict=True)
        return [n.Bind(loop.var, place) for loop, place in pairs]

    def _loaded(self) -> list[n.Statement]:
        """The value of a run, into the registers."""
        if self.width == 1:
            return [n.Store(self.staged, (n.Var(TURN), n.Num(0)), self.value)]
        if isinstance(self.value, n.Load):
            return [n.Copy(self.staged, (n.Var(TURN), n.Num(0)), self.value.buffer, self.value.index, self.width)]
        moves = [n.Copy(run, (n.Num(0),), load.buffer, load.index, self.width) for load, run in self._runs().items()]
        held = {**self._runs()}
        value = map_expression(
            self.value, lambda e: n.Load(held[e], (n.Var(LANE),)) if isinstance(e, n.Load) and e in held else e
        )
        value = ix.substitute_in(value, {self.fast.var: ix.add(n.Var(self.fast.var), n.Var(LANE))})
        return [*moves, unrolled(LANE, self.width, n.Store(self.staged, (n.Var(TURN), n.Var(LANE)), value))]

    def _runs(self) -> dict[n.Load, n.Buffer]:
        """What is computed with goes through registers of its own, by run; none where the value is one load."""
        if self.width == 1 or isinstance(self.value, n.Load):
            return {}
        moving = self._moving(self.fast.var)
        shape = (self.width,)
        return {
            load: n.Buffer(f"{self.name}_run{k}", load.dtype, shape, n.Space.PRIVATE) for k, load in enumerate(moving)
        }


def lies_along_terms(value: n.Expr, side: Sequence[n.For], sums: Sequence[n.For]) -> bool:
    """Whether the factor ``value`` is contiguous along the terms of the sum, whose loops are ``sums``, or along
    nothing; ``side`` are the loops of its rows or columns.
    """
    return not any(is_contiguous(load, side[-1].var) for load in loads(value)) or any(
        is_contiguous(load, sums[-1].var) for load in loads(value)
    )


def _is_aligned(load: n.Load, variable: str, count: int) -> bool:
    """Whether runs of ``count`` neighbours, or of a part of them, start at multiples of their size."""
    if not load.index or load.index[-1] != n.Var(variable) or any(variable in ix.variables(i) for i in load.index[:-1]):
        return False
    row = load.buffer.shape[-1]
    return len(load.index) == 1 or (isinstance(row, int) and row % count == 0)
