"""What changes from one iteration of a loop to the next, and what is the same in all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen.nest import nodes as n
from kernelgen.nest.index import references, variables
from kernelgen.nest.walk import statements, stored_buffers


def invariant_parts(loop: n.For) -> list[n.Expr]:
    """The largest expressions that every iteration computes and that are the same in all: worth computing before the loop."""
    bindings = frozenset(s.name for s in statements(loop.body) if isinstance(s, n.Let))
    varying = _Varying(loop.var, bindings, _written(loop))
    roots = (root for statement in unconditional(loop.body) for root in expressions_of(statement))
    return [part for root in roots for part in varying.invariant_parts(root)]


def computed_in(loop: n.For) -> list[n.Expr]:
    """Every expression that iterations compute each for itself, those below them too: the loop without its invariant parts."""
    fixed = frozenset(invariant_parts(loop))
    roots = (root for statement in statements(loop.body) for root in expressions_of(statement))
    return [part for root in roots for part in _outside(root, fixed)]


def expressions_of(statement: n.Statement) -> tuple[n.Expr, ...]:
    """The expressions that a statement evaluates itself."""
    return (statement.value,) if isinstance(statement, n.Let | n.Store | n.Accumulate) else ()


def _outside(expr: n.Expr, fixed: frozenset[n.Expr]) -> Iterator[n.Expr]:
    if expr in fixed:
        return
    yield expr
    if isinstance(expr, n.Call):
        for argument in expr.args:
            yield from _outside(argument, fixed)


def _written(loop: n.For) -> frozenset[str]:
    """Buffers whose content changes in the loop; a local made inside is another one in every iteration."""
    return stored_buffers(loop) | {s.buffer.name for s in statements(loop.body) if isinstance(s, n.Alloc)}


def unconditional(statement: n.Statement) -> Iterator[n.Statement]:
    """What runs in every iteration: a guarded load may be out of bounds elsewhere."""
    if isinstance(statement, n.Block):
        for inner in statement.statements:
            yield from unconditional(inner)
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
