"""Takes several rows of a column reduction at once where their number is not known or divides badly.

    for i in 0..N:                         for i in 0..N / 8 * 8 step 8:
      vector for j:                          vector for j:
        s[j] += x[i, j]            ->          s[j] += x[i, j]; s[j] += x[i + 1, j]; ... s[j] += x[i + 7, j]
                                           for i in N / 8 * 8..N:
                                             vector for j: s[j] += x[i, j]

:func:`kernelgen.transforms.common.merge_accumulations.merge_accumulations` then adds the rows up in registers, so that the
partial results are
touched once for eight rows. Mapping does the same for rows whose number it can divide. A block of results that stays in
locals is left alone: its sums keep the processor busy as they are, and each takes one instruction a term.
Legality: the two loops together run the same instances, and the body only binds values and accumulates into buffers that
it does not load, so that any order of instances is as good: a reduction promises that. Which is Allen and Kennedy's
unroll-and-jam.
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.ranges import range_of
from kernelgen.nest.substitute import renamed, substituted
from kernelgen.nest.walk import loads_of, map_blocks
from kernelgen.transforms.common.merge_accumulations import adds_bytes

MANY = 4
"""Held results whose sums fill each other's latencies."""

MAX_TERMS = 16
"""Of one jammed body: where rows accumulate into several elements, fewer of them are taken at once."""


def jam_rows(nest: n.Nest, rows: int) -> n.Nest:
    """The nest with such loops taken apart, at most so many rows at once."""
    return replace(nest, body=map_blocks(nest.body, lambda block: _block(block, rows)))


def _block(block: n.Block, most: int) -> n.Block:
    parts: list[n.Statement] = []
    for part in block.statements:
        if isinstance(part, n.For) and (columns := _columns(part, most)) is not None:
            parts += jammed(part, columns, _count(columns, most))
        else:
            parts.append(part)
    return n.Block(tuple(parts))


def _columns(rows: n.For, most: int) -> n.For | None:
    """The vector loop of a loop over rows of which sums may be taken together, else None."""
    columns = columns_of(rows)
    if columns is None or not has_rows(rows, 2 * _count(columns, most)):
        return None
    return columns if _only_accumulates(columns.body, rows.var) else None


def columns_of(rows: n.For) -> n.For | None:
    """The vector loop that is all of a loop over rows, and as long for each; else None."""
    body = rows.body.statements
    if rows.kind is not n.LoopKind.SERIAL or rows.step != 1 or len(body) != 1:
        return None
    (columns,) = body
    if not isinstance(columns, n.For) or columns.kind is not n.LoopKind.VECTOR:
        return None
    return None if rows.var in ix.variables(columns.lower) | ix.variables(columns.upper) else columns


def has_rows(rows: n.For, count: int) -> bool:
    """Whether a loop may have so many iterations, for all that its bounds say."""
    first, last = range_of(rows.lower, {}).low, range_of(rows.upper, {}).high
    trips = ix.subtract(rows.upper, rows.lower)
    known = trips.value if isinstance(trips, n.Num) else None if first is None or last is None else last - first
    return known is None or known >= count


def _only_accumulates(body: n.Block, row: str) -> bool:
    """Bindings and accumulations alone, none into what is loaded and all into elements that the rows share."""
    sums = [s for s in body.statements if isinstance(s, n.Accumulate)]
    if len({s.buffer for s in sums if s.buffer.space is n.Space.LOCAL}) >= MANY or any(map(adds_bytes, sums)):
        return False
    if not 0 < len(sums) <= MAX_TERMS // 2 or not all(isinstance(s, n.Let | n.Accumulate) for s in body.statements):
        return False
    loaded = {load.buffer.name for s in body.statements for load in loads_of(s)}
    return all(
        s.buffer.name not in loaded and not any(row in ix.variables(i) or ix.references(i) for i in s.index)
        for s in sums
    )


def _count(columns: n.For, most: int) -> int:
    """The rows to take at once."""
    sums = sum(isinstance(part, n.Accumulate) for part in columns.body.statements)
    return min(most, 1 << (MAX_TERMS // max(1, sums)).bit_length() >> 1)


def jammed(rows: n.For, columns: n.For, count: int) -> tuple[n.For, n.For]:
    """The loop over so many ``rows`` at once, the copies of what its vector loop ``columns`` holds one behind the other, and
    the loop over the rest. A loop whose bounds cross, as that of a tile behind the last row, has none of both."""
    trips = ix.subtract(rows.upper, rows.lower)
    several = trips if isinstance(trips, n.Num | n.Var) else ix.maximum(trips, n.Num(0))
    whole = ix.multiply(ix.floor_divide(several, n.Num(count)), n.Num(count))
    middle = ix.add(whole, rows.lower)
    copies = [
        s
        for number in range(count)
        for s in _row(columns.body, rows.var, ix.add(n.Var(rows.var), n.Num(number)), number)
    ]
    together = replace(rows, upper=middle, step=count, body=n.Block((replace(columns, body=n.Block(tuple(copies))),)))
    rest = renamed(columns.body, f"_row{count}")
    return together, replace(rows, lower=middle, body=n.Block((replace(columns, body=rest),)))


def _row(body: n.Block, variable: str, place: n.Index, number: int) -> tuple[n.Statement, ...]:
    """The body at another row, its bindings named anew."""
    return renamed(substituted(body, {variable: place}), f"_row{number}" if number else "").statements
