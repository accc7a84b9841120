"""Other indices in place of variables, everywhere inside of a statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    Accumulate,
    AsyncCopy,
    Bind,
    Block,
    Combine,
    Compare,
    Copy,
    For,
    If,
    Index,
    Let,
    LoadFragments,
    MultiplyFragments,
    Statement,
    Store,
)

Values = Mapping[str, Index]


def substituted(root: Statement, values: Values) -> Statement:
    """The statement with the values in place of its variables, which nothing inside binds anew."""
    match root:
        case Block():
            return substituted_block(root, values)
        case For(_, lower, upper, body):
            lower, upper = ix.substitute(lower, values), ix.substitute(upper, values)
            return replace(root, lower=lower, upper=upper, body=substituted_block(body, values))
        case If(conditions, body):
            return replace(root, conditions=_where(conditions, values), body=substituted_block(body, values))
        case Let(_, value):
            return replace(root, value=ix.substitute_in(value, values))
        case Store(_, index, value) | Accumulate(_, index, _, value):
            return replace(root, index=_at(index, values), value=ix.substitute_in(value, values))
        case _:
            return _of_grid(root, values)


def substituted_block(block: Block, values: Values) -> Block:
    """The same for a block."""
    return Block(tuple(substituted(part, values) for part in block.statements))


def _of_grid(part: Statement, values: Values) -> Statement:
    match part:
        case Bind(_, index):
            return replace(part, index=ix.substitute(index, values))
        case Combine(_, index):
            return replace(part, index=_at(index, values))
        case AsyncCopy(_, to, _, start, _, conditions):
            moved = _where(conditions, values)
            return replace(part, to=_at(to, values), start=_at(start, values), conditions=moved)
        case Copy(_, to, _, start) | LoadFragments(_, to, _, start):
            return replace(part, to=_at(to, values), start=_at(start, values))
        case MultiplyFragments(_, to, _, left, _, right):
            return replace(part, to=_at(to, values), left_at=_at(left, values), right_at=_at(right, values))
        case _:
            return part


def _at(index: tuple[Index, ...], values: Values) -> tuple[Index, ...]:
    return tuple(ix.substitute(each, values) for each in index)


def _where(conditions: tuple[Compare, ...], values: Values) -> tuple[Compare, ...]:
    return tuple(
        replace(c, left=ix.substitute(c.left, values), right=ix.substitute(c.right, values)) for c in conditions
    )
