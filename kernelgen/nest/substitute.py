"""Other indices in place of variables, other names for bindings, and values in place of bindings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.walk import map_expression, map_expressions, map_statements, statements

S = TypeVar("S", bound=n.Statement)

Values = Mapping[str, n.Index]
Edit = Callable[[n.Index], n.Index]


def substituted(root: S, values: Values) -> S:
    """The statement, and all inside, with the values in place of its variables, which nothing inside binds anew."""
    return map_indices(root, lambda index: ix.substitute(index, values))


def map_indices(root: S, edit: Edit) -> S:
    """The statement, and all inside, with every index edited: places of accesses, bounds, conditions, and values.

    ``edit`` is given whole indices, and edits scalars that decide them itself.
    """
    match root:
        case n.Block(parts):
            return replace(root, statements=tuple(map_indices(part, edit) for part in parts))
        case n.For(_, lower, upper, body):
            return replace(root, lower=edit(lower), upper=edit(upper), body=map_indices(body, edit))
        case n.If(conditions, body):
            return replace(root, conditions=_where(conditions, edit), body=map_indices(body, edit))
        case n.Let(_, value):
            return replace(root, value=_value(value, edit))
        case n.Prefetch(_, place):
            return replace(root, place=edit(place))
        case n.Store(_, index, value) | n.Accumulate(_, index, _, value):
            return replace(root, index=tuple(map(edit, index)), value=_value(value, edit))
        case _:
            return _of_grid(root, edit)


def renamed(root: n.Block, suffix: str) -> n.Block:
    """The block with a suffix at the names of all that it binds: a name is bound once in a nest.

    let a = x[i]; y[i] = a + b      ->      let a_2 = x[i]; y[i] = a_2 + b
    """
    names = frozenset(part.name for part in statements(root) if isinstance(part, n.Let))
    if not names or not suffix:
        return root

    def reference(expr: n.Expr) -> n.Expr:
        return replace(expr, name=expr.name + suffix) if isinstance(expr, n.Ref) and expr.name in names else expr

    def binding(part: n.Statement) -> n.Statement:
        return replace(part, name=part.name + suffix) if isinstance(part, n.Let) else part

    return map_statements(map_expressions(root, reference), binding)


def written_out(expr: n.Expr, bound: Mapping[str, n.Expr]) -> n.Expr:
    """The expression with the values of these bindings, by name, in place of their names, and so on in those values.

    a + b, where a is x[i] and b is a * 2      ->      x[i] + x[i] * 2
    """

    def value(each: n.Expr) -> n.Expr:
        return written_out(bound[each.name], bound) if isinstance(each, n.Ref) and each.name in bound else each

    return map_expression(expr, value)


def _value(expr: n.Expr, edit: Edit) -> n.Expr:
    match expr:
        case n.Load(buffer, index):
            return n.Load(buffer, tuple(map(edit, index)))
        case n.IndexValue(index, dtype):
            return n.IndexValue(edit(index), dtype)
        case n.Call(function, args, dtype):
            return n.Call(function, tuple(_value(arg, edit) for arg in args), dtype)
        case _:
            return expr


def _of_grid(part: S, edit: Edit) -> S:
    match part:
        case n.Bind(_, index):
            return replace(part, index=edit(index))
        case n.Combine(_, index):
            return replace(part, index=tuple(map(edit, index)))
        case n.AsyncCopy(_, to, _, start, _, conditions):
            moved = _where(conditions, edit)
            return replace(part, to=tuple(map(edit, to)), start=tuple(map(edit, start)), conditions=moved)
        case n.Copy(_, to, _, start) | n.LoadFragments(_, to, _, start):
            return replace(part, to=tuple(map(edit, to)), start=tuple(map(edit, start)))
        case n.MultiplyFragments(_, to, _, left, _, right):
            to, left, right = (tuple(map(edit, index)) for index in (to, left, right))
            return replace(part, to=to, left_at=left, right_at=right)
        case _:
            return part


def _where(conditions: tuple[n.Compare, ...], edit: Edit) -> tuple[n.Compare, ...]:
    return tuple(n.Compare(c.op, edit(c.left), edit(c.right)) for c in conditions)
