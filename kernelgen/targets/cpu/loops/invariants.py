"""What a vector loop computes before it starts: invariant expressions, and the invariant parts of addresses."""

from __future__ import annotations

from collections.abc import Iterator

from kernelgen.nest import nodes as n
from kernelgen.nest.index import stride
from kernelgen.nest.walk import loads_of, statements
from kernelgen.targets.cpu.loops.varying import invariant_parts, unconditional
from kernelgen.targets.cpu.statements import access, strided
from kernelgen.targets.cpu.statements.expressions import expression
from kernelgen.targets.cpu.text.scope import Frame, Known
from kernelgen.targets.cpu.text.values import Value


def known_before(frame: Frame, loop: n.For, lanes: int) -> Known:
    """Evaluates, in front of ``loop`` in ``frame``, everything invariant that it computes in each iteration; values
    are splatted to the ``lanes``.
    """
    values: dict[n.Expr, Value] = {}
    for expr in invariant_parts(loop):
        if expr not in values:
            values[expr] = expression(frame, expr).splat(lanes)
    return Known(values, _row_pointers(frame, loop), strided.by_line(_apart(loop, lanes)))


def _apart(loop: n.For, lanes: int) -> Iterator[tuple[str, n.Index]]:
    """What every iteration loads that is a few elements behind what the one before, or the group before, loads."""
    for load in (load for statement in unconditional(loop.body) for load in loads_of(statement)):
        flat = access.flat_index(load.buffer, load.index)
        if strided.step_of(flat, loop.var, lanes) is not None:
            yield load.buffer.name, flat


def _row_pointers(frame: Frame, loop: n.For) -> dict[tuple[str, n.Index], str]:
    """Pointers to where each access would be if the loop variable were 0."""
    pointers: dict[tuple[str, n.Index], str] = {}
    for each in _accesses(loop):
        flat = access.flat_index(each.buffer, each.index)
        if each.buffer.name not in frame.memory or stride(flat, loop.var) in (None, 0):
            continue
        key = access.row_key(each.buffer, flat, loop.var)
        if key not in pointers:
            pointers[key] = access.row_pointer(frame, frame.memory[each.buffer.name], key[1])
    return pointers


def _accesses(loop: n.For) -> Iterator[n.Load | n.Store | n.Accumulate]:
    for statement in statements(loop.body):
        yield from loads_of(statement)
        if isinstance(statement, n.Store | n.Accumulate):
            yield statement
