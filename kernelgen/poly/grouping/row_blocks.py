"""Blocks of the rows that one product hands on to another, so that a block of all that lies between them stays in a cache.

    S[i, j]: s[i, j] += q[i, k] * k[j, k]                   S[b, i, j, k]: ...      b = floor(i / length)
    M[i, j]: m[i] max= s[i, j]; E: e, l; ...         ->     M[b, i, j]: ...
    P[i, d]: o[i, d] += e[i, j] * v[j, d]                   P[b, i, d, j]: ...

Statements that count blocks may run inside one loop over them (:mod:`kernelgen.poly.grouping.shared_loops`), batches outside.
Legality: ``{ S[i] -> S[floor(i / length), i] }`` is a bijection of the domain, and says nothing about an order.
What gains: rows that the first product has, that everything on the way addresses what it writes by, and that the second one
reads as its rows. Products with constants are left alone: their columns come in panels that all rows pass, and a block of rows
would ask for each panel again. Unless one computes its rows: then those of a block are computed at once for all panels.

    P[n, i, j]: y[n, i, j] += (x[n, i, k] * s[n, k]) * w[k, j]   ->   R[b, n, i, k]: r[n, i, k] = x[n, i, k] * s[n, k]
                                                                      P[b, n, i, j, k]: y[n, i, j] += r[n, i, k] * w[k, j]
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Iterator as Iterable
from dataclasses import replace
from math import inf

from kernelgen.nest.index import variables
from kernelgen.nest.nodes import Buffer, Space, Var
from kernelgen.plan import CpuPlan
from kernelgen.poly.grouping.computed_rows import computed_rows
from kernelgen.poly.model.equal_axes import AxisClasses, Place, axis_classes
from kernelgen.poly.model.product_recognition import is_product, kept_names, moves
from kernelgen.poly.model.register_cost import LEAST_SHARE, OTHERS_CYCLES, BlockRules, row_time, rows_time
from kernelgen.poly.model.scop import Blocks, Iterator, Scop, Statement
from kernelgen.poly.model.window_recognition import passes_panels_once
from kernelgen.tensor.dims import Dim

UNIT = 8
"""Rows that registers hold at once, of which blocks are multiples."""

WORTH = 0.9
"""Of the time without blocks, which they have to save: threads that each have one piece find more in their caches."""

MOST_SHARE = 160
"""Rows that are dealt to threads as one block at most: of more, few blocks are left to even out what threads take."""


def block_rows(scop: Scop, plan: CpuPlan) -> Scop:
    """The ``scop`` with statements between products in blocks of about ``plan.handed`` rows; the same object where none are."""
    rows = plan.handed
    products = [s for s in scop.statements if is_product(s)]
    if any(read.buffer.name in scop.constants for s in products for read in s.reads):
        return _with_constants(scop, products[0], plan) if len(products) == 1 else scop
    if len(products) < 2:
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


def _with_constants(scop: Scop, product: Statement, plan: CpuPlan) -> Scop:
    """The scop with a ``product`` of pixels and constants over blocks of rows: of computed ones, or where blocks are faster."""
    found = _with_rows(scop, product, plan)
    return _dealt(scop, product, plan) if found is scop else found


def _dealt(scop: Scop, product: Statement, plan: CpuPlan) -> Scop:
    """The scop with a ``product`` over blocks of rows, where they take less time than panels that all rows pass."""
    classes = axis_classes(scop)
    axes = _rows_of(product, classes)
    if len(axes) != 1 or passes_panels_once(product, scop.constants):
        return scop
    names = {it.name: it.extent for it in product.iterators}
    rows, columns = product.iterators[_position(product, axes[0], classes)].extent, names.get(_addressed_last(product))
    length = dealt_length(rows, columns, plan) if isinstance(rows, int) and isinstance(columns, int) else None
    if length is None:
        return scop
    chain = _chain(scop, product, axes[0], classes)
    blocked = {s.name: _in_blocks(s, _position(s, axes[0], classes), length) for s in chain}
    statements = tuple(blocked.get(s.name, s) for s in scop.statements)
    return replace(scop, statements=statements, handing=frozenset({product.name}))


def dealt_length(rows: int, columns: int, plan: CpuPlan) -> int | None:
    """The length of blocks, the last of which may be shorter, of so many ``rows`` of ``columns`` that take least time on the
    thread of a ``plan`` that has most of them.

    None where threads take little more with equal shares of the rows, or with panels that all rows pass. What threads do not
    share each of them reads, most of it from the cores of others: all panels where rows are dealt, all rows where panels are.
    """
    rules, threads = BlockRules(plan.unit), plan.threads
    reading = OTHERS_CYCLES * (threads - 1) / threads

    def time(length: int) -> float:
        blocks = -(-rows // length)
        return -(-blocks // threads) * length * row_time(length, columns, rules) + reading * columns

    equal = (rows // count for count in range(threads, rows // LEAST_SHARE + 1, threads) if rows % count == 0)
    shares = min((rows / threads * row_time(share, columns, rules) + reading * columns for share in equal), default=inf)
    panels = rows_time(rows, columns, plan.unit, threads) + reading * rows
    best = min(range(LEAST_SHARE, MOST_SHARE + 1, UNIT), key=lambda length: (time(length), -length))
    return best if time(best) < WORTH * min(shares, panels) else None


def _with_rows(scop: Scop, product: Statement, plan: CpuPlan) -> Scop:
    """The scop with what a ``product`` of pixels and constants computes of its rows in a statement of its own."""
    classes = axis_classes(scop)
    axes = _rows_of(product, classes)
    found = computed_rows(product, _addressed_last(product), _row_names(product)) if _sums_once(product) else None
    if found is None or not axes:
        return scop
    blocked: dict[str, tuple[Statement, ...]] = {product.name: (found.maker, found.product)}
    extent = product.iterators[_position(product, axes[-1], classes)].extent
    length = _even_length(extent, plan.handed)
    if length is not None and extent != length:
        for statement in _chain(scop, product, axes[-1], classes):
            row = statement.iterators[_position(statement, axes[-1], classes)]
            parts = blocked.get(statement.name, (statement,))
            blocked[statement.name] = tuple(_in_blocks(part, part.iterators.index(row), length) for part in parts)
    statements = tuple(part for s in scop.statements for part in blocked.get(s.name, (s,)))
    return replace(
        scop, buffers=(*scop.buffers, found.buffer), statements=statements, handing=frozenset({product.name})
    )


def _sums_once(product: Statement) -> bool:
    """Whether a single iterator is summed over, so that each element of its rows is computed once."""
    return len(product.iterators) == len(kept_names(product)) + 1


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
    axes = classes.axes_of(statement)
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
    axes = classes.axes_of(statement)
    if statement.ordered or axes.count(axis) != 1 or any(it.blocks is not None for it in statement.iterators):
        return False
    name = Var(statement.iterators[axes.index(axis)].name)
    return all(name in write.index for write in statement.writes)


def _over_blocks(statement: Statement, position: int, rows: int) -> Statement:
    """The statement over blocks of an axis; as it is where a symbol says how long the axis is."""
    extent = statement.iterators[position].extent
    return statement if not isinstance(extent, int) else _in_blocks(statement, position, _length(extent, rows))


def _in_blocks(statement: Statement, position: int, length: int) -> Statement:
    """The statement over blocks of this length of an axis of known extent."""
    axis = statement.iterators[position]
    assert isinstance(axis.extent, int), "as asked before"
    block = Iterator(f"{axis.name}_block", -(-axis.extent // length), Blocks(length, axis.extent, axis.name))
    before, after = statement.iterators[:position], statement.iterators[position:]
    return replace(statement, iterators=(*before, block, *after))


def _length(extent: int, rows: int) -> int:
    """The rows of a block: about as many as wanted."""
    length = -(-extent // max(1, round(extent / rows)))
    return min(-(-length // UNIT) * UNIT, extent)


def _even_length(extent: Dim, rows: int) -> int | None:
    """The rows of equal blocks: up to twice as many as wanted, or half; None where the extent has no such divisor."""
    if not isinstance(extent, int):
        return None
    return next((length for length in range(2 * rows, rows // 2 - 1, -1) if extent % length == 0), None)


def _position(statement: Statement, axis: Place, classes: AxisClasses) -> int:
    return classes.axes_of(statement).index(axis)
