"""What a vector loop computes before it starts: invariant expressions, and the invariant parts of addresses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen.nest import nodes as n
from kernelgen.nest.index import references, stride, variables
from kernelgen.nest.walk import loads_of, statements, stored_buffers
from kernelgen.targets.cpu.loops.vector_plan import expressions_of
from kernelgen.targets.cpu.statements import access
from kernelgen.targets.cpu.statements.expressions import expression
from kernelgen.targets.cpu.text.scope import Frame, Known
from kernelgen.targets.cpu.text.values import Value


def known_before(frame: Frame, loop: n.For, lanes: int) -> Known:
    """Evaluates, in front of ``loop`` in ``frame``, everything invariant that it computes in each iteration; values
    are splatted to the ``lanes``.
    """
    bindings = frozenset(s.name for s in statements(loop.body) if isinstance(s, n.Let))
    varying = _Varying(loop.var, bindings, _written(loop))
    values: dict[n.Expr, Value] = {}
    for statement in _unconditional(loop.body):
        for root in expressions_of(statement):
            for expr in varying.invariant_parts(root):
                if expr not in values:
                    values[expr] = expression(frame, expr).splat(lanes)
    return Known(values, _row_pointers(frame, loop))


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


def _written(loop: n.For) -> frozenset[str]:
    """Buffers whose content changes in the loop; a local made inside is another one in every iteration."""
    return stored_buffers(loop) | {s.buffer.name for s in statements(loop.body) if isinstance(s, n.Alloc)}


def _unconditional(statement: n.Statement) -> Iterator[n.Statement]:
    """What runs in every iteration: a guarded load may be out of bounds elsewhere."""
    if isinstance(statement, n.Block):
        for inner in statement.statements:
            yield from _unconditional(inner)
    elif not isinstance(statement, n.If):
        yield statement


@dataclass(frozen=True)
class _Varying:
    """What changes from iteration to iteration: the loop variable, bindings made in the loop, buffers written in it."""

    variable: str
    bindings: frozenset[str]
    buffers: frozenset[str]

    def invariant_parts(self, root: n.Expr) -> list[n.Expr]:
        """The largest sub-expressions worth computing before the loop."""
        parts, is_invariant = self._parts(root)
        return [root] if is_invariant and not isinstance(root, n.Literal | n.Ref) else parts

    def _parts(self, expr: n.Expr) -> tuple[list[n.Expr], bool]:
        """The largest invariant operands below, and whether the expression is invariant as a whole."""
        if not isinstance(expr, n.Call):
            return [], self._is_fixed(expr)
        below = [(argument, *self._parts(argument)) for argument in expr.args]
        if all(is_invariant for _, _, is_invariant in below):
            return [], True
        found: list[n.Expr] = []
        for argument, parts, is_invariant in below:
            found += [argument] if is_invariant and not isinstance(argument, n.Literal | n.Ref) else parts
        return found, False

    def _is_fixed(self, leaf: n.Expr) -> bool:
        match leaf:
            case n.Ref(name):
                return name not in self.bindings
            case n.Load(buffer, index):
                moves = any(self.variable in variables(i) or references(i) & self.bindings for i in index)
                return buffer.name not in self.buffers and not moves
            case n.IndexValue(index):
                return self.variable not in variables(index)
            case _:
                return True
