"""Blocks of the rows that one product hands on to another, so that a block of all that lies between them stays in a cache.

    S[i, j]: s[i, j] += q[i, k] * k[j, k]                   S[b, i, j, k]: ...      b = floor(i / length)
    M[i, j]: m[i] max= s[i, j]; E: e, l; ...         ->     M[b, i, j]: ...
    P[i, d]: o[i, d] += e[i, j] * v[j, d]                   P[b, i, d, j]: ...

Statements that count blocks may run inside one loop over them (:mod:`kernelgen.poly.grouping.shared_loops`), batches outside.
Legality: ``{ S[i] -> S[floor(i / length), i] }`` is a bijection of the domain, and says nothing about an order.
What gains: rows that the first product has, that everything on the way addresses what it writes by, and that the second one
reads as its rows. Products with constants are left alone: their columns come in panels that all rows pass, and a block of rows
would ask for each panel again.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Iterator as Iterable
from dataclasses import replace

from kernelgen.nest.index import variables
from kernelgen.nest.nodes import Buffer, Space, Var
from kernelgen.poly.grouping.computed_rows import computed_rows
from kernelgen.poly.model.equal_axes import AxisClasses, Place, axis_classes
from kernelgen.poly.model.product_recognition import is_product, kept_names, moves
from kernelgen.poly.model.scop import Blocks, Iterator, Scop, Statement

UNIT = 8
"""Rows that registers hold at once, of which blocks are multiples."""


def block_rows(scop: Scop, rows: int) -> Scop:
    """The scop with statements between two products over blocks of about so many ``rows``; the same object where none are."""
    products = [s for s in scop.statements if is_product(s)]
    if len(products) < 2 or any(read.buffer.name in scop.constants for s in products for read in s.reads):
        return scop
    classes = axis_classes(scop)
    blocked: dict[str, tuple[Statement, ...]] = {}
    made: list[Buffer] = []
    for first in products:
        axis = next((a for a in _rows_of(first, classes) if first.name not in blocked), None)
        chain = [] if axis is None else list(_chain(scop, first, axis, classes))
        if axis is None or not any(axis in _rows_of(s, classes) for s in chain[1:]):
            continue
        blocked |= {s.name: (_over_blocks(s, _position(s, axis, classes), rows),) for s in chain}
        if not isinstance(first.iterators[_position(first, axis, classes)].extent, int):
            continue
        found = computed_rows(blocked[first.name][0], _addressed_last(first), _row_names(first))
        if found is not None:
            made.append(found.buffer)
            blocked[first.name] = (found.maker, found.product)
    if not blocked:
        return scop
    statements = tuple(part for s in _others_first(scop, blocked) for part in blocked.get(s.name, (s,)))
    handing = frozenset(s.name for s in products if s.name in blocked)
    return replace(scop, buffers=(*scop.buffers, *made), statements=statements, handing=handing)


def _others_first(scop: Scop, blocked: Collection[str]) -> list[Statement]:
    """The statements, those without blocks in front of blocks that they have nothing to do with, which may then share loops."""
    found: list[Statement] = []
    for statement in scop.statements:
        place = len(found)
        while statement.name not in blocked and place and not _meet(statement, found[place - 1]):
            place -= 1
        passed = [number for number in range(place, len(found)) if found[number].name in blocked]
        found.insert(passed[0] if passed else len(found), statement)
    return found


def _meet(one: Statement, other: Statement) -> bool:
    """Whether both touch a buffer that one of them writes."""
    written = {access.buffer.name for statement in (one, other) for access in statement.writes}
    return not written.isdisjoint(one.touched & other.touched)


def _rows_of(statement: Statement, classes: AxisClasses) -> tuple[Place, ...]:
    """The rows of a product: kept axes that what moves along its columns lacks."""
    names = _row_names(statement) if is_product(statement) else frozenset[str]()
    axes = _axes(statement, classes)
    found = [axis for it, axis in zip(statement.iterators, axes, strict=True) if it.name in names]
    return tuple(axis for axis in found if axes.count(axis) == 1)


def _row_names(statement: Statement) -> frozenset[str]:
    columns = [moves(read) for read in statement.reads if _addressed_last(statement) in moves(read)]
    names = frozenset(kept_names(statement)) if columns else frozenset[str]()
    return names.difference(*columns)


def _addressed_last(statement: Statement) -> str:
    """The iterator of the columns of what a product accumulates."""
    last = statement.accumulations[-1].index[-1:]
    return next(iter(sorted(variables(last[0]))), "") if last else ""


def _chain(scop: Scop, first: Statement, axis: Place, classes: AxisClasses) -> Iterable[Statement]:
    """The product and what it hands rows to, directly or not."""
    handed = {write.buffer.name for write in first.writes if write.buffer.space is Space.WORKSPACE}
    yield first
    for statement in scop.statements[scop.statements.index(first) + 1 :]:
        if any(read.buffer.name in handed for read in statement.reads) and _stays(statement, axis, classes):
            handed |= {write.buffer.name for write in statement.writes}
            yield statement


def _stays(statement: Statement, axis: Place, classes: AxisClasses) -> bool:
    """Whether the axis occurs once in its box and addresses all that it writes."""
    axes = _axes(statement, classes)
    if statement.ordered or axes.count(axis) != 1 or any(it.blocks is not None for it in statement.iterators):
        return False
    name = Var(statement.iterators[axes.index(axis)].name)
    return all(name in write.index for write in statement.writes)


def _over_blocks(statement: Statement, position: int, rows: int) -> Statement:
    """The statement over blocks of an axis; as it is where a symbol says how long the axis is."""
    axis = statement.iterators[position]
    if not isinstance(axis.extent, int):
        return statement
    length, count = _blocks(axis.extent, rows)
    block = Iterator(f"{axis.name}_block", count, Blocks(length, axis.extent, axis.name))
    before, after = statement.iterators[:position], statement.iterators[position:]
    return replace(statement, iterators=(*before, block, *after))


def _blocks(extent: int, rows: int) -> tuple[int, int]:
    """The length of a block and how many there are."""
    length = -(-extent // max(1, round(extent / rows)))
    length = min(-(-length // UNIT) * UNIT, extent)
    return length, -(-extent // length)


def _position(statement: Statement, axis: Place, classes: AxisClasses) -> int:
    return _axes(statement, classes).index(axis)


def _axes(statement: Statement, classes: AxisClasses) -> list[Place]:
    return [classes.find(("statement", statement.name, k)) for k in range(len(statement.iterators))]
