"""Other indices in place of variables, other names for bindings, and values in place of bindings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    Accumulate,
    AsyncCopy,
    Bind,
    Block,
    Call,
    Combine,
    Compare,
    Copy,
    Expr,
    For,
    If,
    Index,
    IndexValue,
    Let,
    Load,
    LoadFragments,
    MultiplyFragments,
    Ref,
    Statement,
    Store,
)
from kernelgen.nest.walk import map_expression, map_expressions, map_statements, statements

S = TypeVar("S", bound=Statement)

Values = Mapping[str, Index]
Edit = Callable[[Index], Index]


def substituted(root: S, values: Values) -> S:
    """The statement, and all inside, with the values in place of its variables, which nothing inside binds anew."""
    return map_indices(root, lambda index: ix.substitute(index, values))


def map_indices(root: S, edit: Edit) -> S:
    """The statement, and all inside, with every index edited: places of accesses, bounds, conditions, and values.

    ``edit`` is given whole indices, and edits scalars that decide them itself.
    """
    match root:
        case Block(parts):
            return replace(root, statements=tuple(map_indices(part, edit) for part in parts))
        case For(_, lower, upper, body):
            return replace(root, lower=edit(lower), upper=edit(upper), body=map_indices(body, edit))
        case If(conditions, body):
            return replace(root, conditions=_where(conditions, edit), body=map_indices(body, edit))
        case Let(_, value):
            return replace(root, value=_value(value, edit))
        case Store(_, index, value) | Accumulate(_, index, _, value):
            return replace(root, index=tuple(map(edit, index)), value=_value(value, edit))
        case _:
            return _of_grid(root, edit)


def renamed(root: Block, suffix: str) -> Block:
    """The block with a suffix at the names of all that it binds: a name is bound once in a nest.

    let a = x[i]; y[i] = a + b      ->      let a_2 = x[i]; y[i] = a_2 + b
    """
    names = frozenset(part.name for part in statements(root) if isinstance(part, Let))
    if not names or not suffix:
        return root

    def reference(expr: Expr) -> Expr:
        return replace(expr, name=expr.name + suffix) if isinstance(expr, Ref) and expr.name in names else expr

    def binding(part: Statement) -> Statement:
        return replace(part, name=part.name + suffix) if isinstance(part, Let) else part

    return map_statements(map_expressions(root, reference), binding)


def written_out(expr: Expr, bound: Mapping[str, Expr]) -> Expr:
    """The expression with the values of these bindings, by name, in place of their names, and so on in those values.

    a + b, where a is x[i] and b is a * 2      ->      x[i] + x[i] * 2
    """

    def value(each: Expr) -> Expr:
        return written_out(bound[each.name], bound) if isinstance(each, Ref) and each.name in bound else each

    return map_expression(expr, value)


def _value(expr: Expr, edit: Edit) -> Expr:
    match expr:
        case Load(buffer, index):
            return Load(buffer, tuple(map(edit, index)))
        case IndexValue(index, dtype):
            return IndexValue(edit(index), dtype)
        case Call(function, args, dtype):
            return Call(function, tuple(_value(arg, edit) for arg in args), dtype)
        case _:
            return expr


def _of_grid(part: S, edit: Edit) -> S:
    match part:
        case Bind(_, index):
            return replace(part, index=edit(index))
        case Combine(_, index):
            return replace(part, index=tuple(map(edit, index)))
        case AsyncCopy(_, to, _, start, _, conditions):
            moved = _where(conditions, edit)
            return replace(part, to=tuple(map(edit, to)), start=tuple(map(edit, start)), conditions=moved)
        case Copy(_, to, _, start) | LoadFragments(_, to, _, start):
            return replace(part, to=tuple(map(edit, to)), start=tuple(map(edit, start)))
        case MultiplyFragments(_, to, _, left, _, right):
            to, left, right = (tuple(map(edit, index)) for index in (to, left, right))
            return replace(part, to=to, left_at=left, right_at=right)
        case _:
            return part


def _where(conditions: tuple[Compare, ...], edit: Edit) -> tuple[Compare, ...]:
    return tuple(Compare(c.op, edit(c.left), edit(c.right)) for c in conditions)
