"""Shares a column's reduction among the rows of a block of threads.

    block j in 0..N over threads              block of 32 columns, 32 x 8 threads
      p = 0                                     place = bx * 32 + tx;  j = min(place, N - 1);  p = 0
      for i in 0..M: p += x[i, j]      ->       for i in ty..M step 8: p += x[i, j]
      y[j] = p                                  slices[ty, tx] = p;  sync
                                                p = slices[0, tx];  p += slices[1, tx];  ...
                                                if ty == 0 and place < N: y[j] = p

Legality: the loop does nothing but accumulate into elements of the thread that start from the neutral element, and store to
memory that the launch does not read, each iteration to elements of its own; a reduction may take its terms in any order.
Everything else is computed alike by all rows, and stored by the first one. Threads without a column take the last one, so
that all come to the barrier; they store nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelgen.machines.gpu.device import WARP, GpuMachine
from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.walk import loads_of, map_blocks, statements
from kernelgen.transforms.gpu.delinearise import ITEM, block_loops, digits, divides, iterations, trips

MOST = 32
"""Rows of threads in a block."""

FEWEST = 4
"""Rows of threads, below which the sum is not split."""
TERMS = 4
"""Terms that a row of threads takes at least."""

UNKNOWN = 512
"""What a loop of unknown length is taken for."""

PLACE, SLICE = "place", "slice"
SEEN = (n.Space.OUTPUT, n.Space.INOUT, n.Space.WORKSPACE)


def sliced(grid: n.Grid, device: GpuMachine) -> n.Grid | None:
    """The grid with rows of threads; None where threads are enough, or have more to do than such reductions."""
    loops, inner = block_loops(grid.body)
    if grid.threads[0] > 1 or not loops or not _is_plain(inner):
        return None
    reductions = [part for part in inner.statements if isinstance(part, n.For)]
    results = [result for part in reductions for result in _results(part)]
    total = iterations(loops)
    rows = min((_rows(part, total, results, device) for part in reductions), default=1)
    if rows < FEWEST or not _starts_are_neutral(inner, results):
        return None
    return _Slicer(tuple(loops), inner, total, rows).grid(grid)


Result = tuple[n.Buffer, str]


def _is_plain(body: n.Block) -> bool:
    """Bindings, the thread's own elements, loops that only accumulate into them, and stores that nothing reads."""
    stored = [part.buffer.name for part in statements(body) if isinstance(part, n.Store) and not _is_own(part.buffer)]
    for part in body.statements:
        if isinstance(part, n.For):
            if _results(part) == [] or part.kind not in (n.LoopKind.SERIAL, n.LoopKind.UNROLL):
                return False
        elif isinstance(part, n.Alloc | n.Store):
            if isinstance(part, n.Alloc) and not _is_own(part.buffer):
                return False
        elif not isinstance(part, n.Let):
            return False
    return not any(load.buffer.name in stored for part in statements(body) for load in loads_of(part))


def _is_own(buffer: n.Buffer) -> bool:
    return buffer.space is n.Space.PRIVATE and not buffer.shape


def _results(loop: n.For) -> list[Result]:
    """What a loop accumulates into, if it does nothing else but store elements of each iteration's own; else nothing."""
    found: dict[Result, None] = {}
    moving = {part.var for part in statements(loop.body) if isinstance(part, n.For)}
    for part in statements(loop.body):
        if isinstance(part, n.Accumulate) and _is_own(part.buffer):
            found[part.buffer, part.function] = None
        elif not isinstance(part, n.Block | n.Let | n.For | n.If) and not (
            isinstance(part, n.Store) and _is_apart(part, loop, moving)
        ):
            return []
    names = [buffer.name for buffer, _ in found]
    read = any(load.buffer.name in names for part in statements(loop.body) for load in loads_of(part))
    return [] if read or len(set(names)) < len(names) else list(found)


def _is_apart(part: n.Store, loop: n.For, moving: set[str]) -> bool:
    """Whether no two iterations of the loop store to one element: a dim of its index moves with the loop alone."""
    return part.buffer.space in SEEN and any(
        ix.stride(i, loop.var) not in (0, None) and not ix.variables(i) & moving for i in part.index
    )


def _starts_are_neutral(body: n.Block, results: Sequence[Result]) -> bool:
    """Whether each result starts from the neutral element, and is accumulated by one loop."""
    for buffer, function in results:
        stores = [part for part in statements(body) if isinstance(part, n.Store) and part.buffer == buffer]
        if [part.value for part in stores] != [neutral_element(function, buffer.dtype)]:
            return False
    return len({buffer.name for buffer, _ in results}) == len(results)


def _rows(loop: n.For, total: n.Index, results: Sequence[Result], device: GpuMachine) -> int:
    """How many rows of threads share the loop, a power of two: no more than the device runs at once."""
    enough = device.processors * device.resident
    count = trips(loop)
    terms = count.value if isinstance(count, n.Num) else UNKNOWN
    size = sum(buffer.dtype.itemsize for buffer, _ in results) * WARP
    columns = total.value if isinstance(total, n.Num) else WARP * UNKNOWN
    blocks = -(-columns // WARP)
    rows = 1
    while (
        rows < MOST
        and terms >= 2 * TERMS * rows
        and blocks * WARP * rows < enough
        and 2 * rows * size <= device.tile_bytes
    ):
        rows *= 2
    return rows


@dataclass(frozen=True)
class _Slicer:
    loops: tuple[n.For, ...]
    inner: n.Block
    total: n.Index
    rows: int

    def grid(self, grid: n.Grid) -> n.Grid:
        """A block for 32 neighbouring columns."""
        x, number = n.Var(n.THREAD_INDICES[0]), n.Var(n.BLOCK_INDEX)
        blocks = ix.floor_divide(ix.add(self.total, n.Num(WARP - 1)), n.Num(WARP))
        last = ix.subtract(self.total, n.Num(1))
        place = n.Var(PLACE)
        binds = [
            n.Bind(PLACE, ix.add(ix.multiply(number, n.Num(WARP)), x)),
            n.Bind(ITEM, place if divides(WARP, self.total) else ix.minimum(place, last)),
        ]
        values = zip(self.loops, digits(n.Var(ITEM), self.loops), strict=True)
        parts: list[n.Statement] = [*binds, *(n.Bind(loop.var, value) for loop, value in values)]
        for part in self.inner.statements:
            parts += self.reduction(part) if isinstance(part, n.For) else [self.guarded(part)]
        return replace(grid, blocks=blocks, threads=(WARP, self.rows), body=n.Block(tuple(parts)))

    def guarded(self, part: n.Statement) -> n.Statement:
        """A store to what others see is done by the first row."""
        first = n.Compare("==", n.Var(n.THREAD_INDICES[1]), n.Num(0))
        return self.stored(part, (first,))

    def stored(self, part: n.Statement, conditions: tuple[n.Compare, ...] = ()) -> n.Statement:
        """A store to what others see, by threads that have a column."""
        if not isinstance(part, n.Store) or part.buffer.space is n.Space.PRIVATE:
            return part
        if not divides(WARP, self.total):
            conditions = (*conditions, n.Compare("<", n.Var(PLACE), self.total))
        return n.If(conditions, n.Block((part,))) if conditions else part

    def reduction(self, loop: n.For) -> list[n.Statement]:
        """The iterations of this row of threads, and the combination of all rows."""
        x, y = map(n.Var, n.THREAD_INDICES)
        lower = ix.add(ix.multiply(y, n.Num(loop.step)), loop.lower)
        body = map_blocks(loop.body, lambda block: n.Block(tuple(map(self.stored, block.statements))))
        own = replace(loop, lower=lower, step=loop.step * self.rows, kind=n.LoopKind.SERIAL, body=body)
        parts: list[n.Statement] = [own]
        meeting: list[n.Statement] = []
        for buffer, function in _results(loop):
            slices = n.Buffer(f"{buffer.name}_slices", buffer.dtype, (self.rows, WARP), n.Space.SHARED)
            parts += [n.Alloc(slices), n.Store(slices, (y, x), n.Load(buffer, ()))]
            more = n.Accumulate(buffer, (), function, n.Load(slices, (n.Var(SLICE), x)))
            meeting.append(n.Store(buffer, (), n.Load(slices, (n.Num(0), x))))
            meeting.append(n.For(SLICE, n.Num(1), n.Num(self.rows), n.Block((more,)), n.LoopKind.UNROLL))
        return [*parts, n.Sync(), *meeting]
