"""Moves neighbours with one instruction: a thread takes several iterations of a contiguous loop at once.

    bind j = f                              bind first = f * 4
    y[i, j] = x[i, j] + b[i]                copy 4: wide0[0] = x[i, first]
                                     ->     unroll for lane in 0..4:
                                              bind j = first + lane
                                              wide1[lane] = wide0[lane] + b[i]
                                            copy 4: y[i, first] = wide1[0]

Legality: iterations are independent, so that all their loads may come before all their stores; a buffer that an iteration
loads after it has stored to it is left alone, and so is everything then. Buffers start at multiples of 256 bytes; a place
is aligned when the loop's variable alone addresses the innermost dim, whose extent the number of neighbours divides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelgen.machines.gpu.device import WIDEST_ACCESS
from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.ranges import is_multiple
from kernelgen.nest.walk import Place, loads_of, redirect

MOST = 8
"""Elements of one access, however narrow they are: each is a value of its own in the thread's program."""
FIRST, LANE = "first", "lane"
GLOBAL = (n.Space.INPUT, n.Space.OUTPUT, n.Space.INOUT, n.Space.WORKSPACE)


def neighbours(bodies: Sequence[n.Block], variable: Sequence[str], extent: n.Index, lower: n.Index, groups: int) -> int:
    """How many iterations of the innermost loop (``variable`` in each body) a thread takes at once: a power of two.

    They divide the extent and the first iteration's number, their elements are at most 16 bytes, and at least ``groups``
    groups of them are left of ``extent``; 1 where nothing is contiguous.
    """
    if not isinstance(extent, n.Num) or not all(map(_is_simple, bodies)):
        return 1
    sizes = [
        buffer.dtype.itemsize
        for body, name in zip(bodies, variable, strict=True)
        for buffer in _moved(body, name, None)
    ]
    count = min(WIDEST_ACCESS // max(sizes), MOST) if sizes else 1
    while count > 1 and (extent.value % count or extent.value // count < groups or not is_multiple(lower, count)):
        count //= 2
    return count


def together(body: n.Block, variable: str, extent: n.Index) -> int:
    """How many iterations a thread takes at once where that divides the unknown extent of the innermost loop."""
    sizes = [buffer.dtype.itemsize for buffer in _moved(body, variable, extent)] if _is_simple(body) else []
    return min(WIDEST_ACCESS // max(sizes), MOST) if sizes else 1


def moves_rows(body: n.Block, variable: str, extent: n.Index) -> bool:
    """Whether a row of several is moved, which is aligned only where the unknown extent is a multiple of the neighbours."""
    loads, stores = _aligned(body, variable, 2, extent)
    return any(len(index) > 1 for _, index in (*loads, *stores))


def widened(
    body: n.Block, variable: str, first: n.Index, count: int, numbers: Iterator[int], multiple: n.Index | None = None
) -> list[n.Statement]:
    """``count`` iterations from ``first`` on, with copies before and behind them; ``numbers`` name their arrays.

    ``multiple`` is an extent that is known to be a multiple of ``count`` here.
    """
    loads, stores = _aligned(body, variable, count, multiple)
    at: dict[str, n.Index] = {variable: n.Var(FIRST)}
    before: list[n.Statement] = [n.Bind(FIRST, first)]
    behind: list[n.Statement] = []
    held: dict[Place, Place] = {}
    for buffer, index in loads:
        wide = n.Buffer(f"wide{next(numbers)}", buffer.dtype, (count,), n.Space.PRIVATE)
        held[buffer, index] = wide, (n.Var(LANE),)
        before += [n.Alloc(wide), n.Copy(wide, (n.Num(0),), buffer, _at(index, at), count)]
    kept: dict[Place, Place] = {}
    for buffer, index in stores:
        wide = n.Buffer(f"wide{next(numbers)}", buffer.dtype, (count,), n.Space.PRIVATE)
        kept[buffer, index] = wide, (n.Var(LANE),)
        before.append(n.Alloc(wide))
        behind.append(n.Copy(buffer, _at(index, at), wide, (n.Num(0),), count))
    led = redirect(body, lambda *place: held.get(place), lambda *place: kept.get(place))
    inner = n.Block((n.Bind(variable, ix.add(n.Var(FIRST), n.Var(LANE))), *led.statements))
    return [*before, n.For(LANE, n.Num(0), n.Num(count), inner, n.LoopKind.UNROLL), *behind]


def _at(index: tuple[n.Index, ...], values: dict[str, n.Index]) -> tuple[n.Index, ...]:
    return tuple(ix.substitute(i, values) for i in index)


def _is_simple(body: n.Block) -> bool:
    """Bindings and writes alone, and nothing is loaded that was stored before."""
    written: set[str] = set()
    for part in body.statements:
        if not isinstance(part, n.Let | n.Store | n.Accumulate):
            return False
        if any(load.buffer.name in written for load in loads_of(part) if load.buffer.space in GLOBAL):
            return False
        if isinstance(part, n.Store | n.Accumulate):
            written.add(part.buffer.name)
    return True


def _moved(body: n.Block, variable: str, multiple: n.Index | None) -> Iterator[n.Buffer]:
    """The buffers that are moved by copies of some length."""
    loads, stores = _aligned(body, variable, 2, multiple)
    yield from (buffer for buffer, _ in (*loads, *stores))


def _aligned(body: n.Block, variable: str, count: int, multiple: n.Index | None) -> tuple[list[Place], list[Place]]:
    """The loads and the stores whose elements lie side by side at aligned places."""
    loads: dict[Place, None] = {}
    stores: dict[Place, None] = {}
    for part in body.statements:
        for load in loads_of(part):
            if _is_aligned(load.buffer, load.index, variable, count, multiple):
                loads[load.buffer, load.index] = None
        if isinstance(part, n.Store) and _is_aligned(part.buffer, part.index, variable, count, multiple):
            stores[part.buffer, part.index] = None
    twice = [place for place in stores if sum(1 for other in stores if other[0] == place[0]) > 1]
    return list(loads), [place for place in stores if place not in twice]


def _is_aligned(
    buffer: n.Buffer, index: tuple[n.Index, ...], variable: str, count: int, multiple: n.Index | None
) -> bool:
    if buffer.space not in GLOBAL or not index or index[-1] != n.Var(variable):
        return False
    if any(variable in ix.variables(i) or ix.is_by_data(i) for i in index[:-1]):
        return False
    row = buffer.shape[-1]
    return len(index) == 1 or (row % count == 0 if isinstance(row, int) else ix.from_dim(row) == multiple)
