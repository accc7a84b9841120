"""Joins a product with what follows it element by element: bias, activation, residual, cast.

    block i: block j: c[i, j] = 0; for k: c[i, j] += ...         block i: block j:
    block i: block j: y[i, j] = tanh(c[i, j] + b[j])      ->       c[i, j] = 0; for k: c[i, j] += ...
                                                                   y[i, j] = tanh(c[i, j] + b[j])

Legality. Both nests run over the same rectangle. Every buffer that one of them writes and the other one touches is
addressed in both by the loop variables, all of them, in the same way: so iteration x of the second nest depends on
iteration x of the first one alone. Whether statements of the second one then belong to the same thread does not matter.
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    Accumulate,
    Block,
    For,
    If,
    Index,
    Let,
    LoopKind,
    Nest,
    Statement,
    Store,
    Var,
)
from kernelgen.nest.walk import accesses_by_buffer, statements, stored_buffers


def join_tails(nest: Nest) -> Nest:
    """The nest, before it is cut into grids, with such nests in one."""
    parts: list[Statement] = []
    for part in nest.body.statements:
        joined = _joined(parts[-1], part) if parts else None
        parts[-1:] = [joined] if joined is not None else [*parts[-1:], part]
    return replace(nest, body=Block(tuple(parts)))


def _joined(first: Statement, second: Statement) -> For | None:
    """Both as one nest; None where they do not fit."""
    if not isinstance(first, For) or not isinstance(second, For):
        return None
    loops, body = _block_loops(first)
    others, tail = _block_loops(second)
    if not _has_sum(body) or not _is_plain(tail) or len(loops) != len(others):
        return None
    if any(_bounds(a) != _bounds(b) for a, b in zip(loops, others, strict=True)):
        return None
    names: dict[str, Index] = {b.var: Var(a.var) for a, b in zip(loops, others, strict=True)}
    renamed = _renamed(tail, names)
    if not _meet_in_one_iteration(body, renamed, [loop.var for loop in loops]):
        return None
    return _around(loops, Block((*body.statements, *renamed.statements)))


def _block_loops(loop: For) -> tuple[list[For], Block]:
    loops = [loop] if loop.kind is LoopKind.BLOCK else []
    body = loop.body
    while loops and len(body.statements) == 1 and isinstance(part := body.statements[0], For):
        if part.kind is not LoopKind.BLOCK:
            break
        loops.append(part)
        body = part.body
    return loops, body


def _has_sum(body: Block) -> bool:
    """Whether it is a sum in a thread, perhaps with a tail already."""
    loops = [part for part in statements(body) if isinstance(part, For)]
    return any(isinstance(part, Accumulate) for part in statements(body)) and all(
        loop.kind in (LoopKind.SERIAL, LoopKind.UNROLL) for loop in loops
    ) and bool(loops)  # fmt: skip


def _is_plain(body: Block) -> bool:
    return all(isinstance(part, Let | Store | Accumulate | If | Block) for part in statements(body))


def _bounds(loop: For) -> tuple[Index, Index, int]:
    return loop.lower, loop.upper, loop.step


def _renamed(body: Block, names: dict[str, Index]) -> Block:
    """The body with other loop variables."""
    return Block(tuple(_renamed_part(part, names) for part in body.statements))


def _renamed_part(part: Statement, names: dict[str, Index]) -> Statement:
    match part:
        case Let(_, value):
            return replace(part, value=ix.substitute_in(value, names))
        case Store(_, index, value) | Accumulate(_, index, _, value):
            places = tuple(ix.substitute(i, names) for i in index)
            return replace(part, index=places, value=ix.substitute_in(value, names))
        case If(conditions, body):
            sides = ((ix.substitute(c.left, names), ix.substitute(c.right, names)) for c in conditions)
            changed = tuple(replace(c, left=a, right=b) for c, (a, b) in zip(conditions, sides, strict=True))
            return If(changed, _renamed(body, names))
        case Block():
            return _renamed(part, names)
        case _:
            return part


def _meet_in_one_iteration(first: Block, second: Block, variables: list[str]) -> bool:
    """Whether what one writes and the other one touches is addressed alike, by all variables."""
    written = stored_buffers(first) | stored_buffers(second)
    before, after = accesses_by_buffer(first), accesses_by_buffer(second)
    for name in sorted(written & before.keys() & after.keys()):
        places = {index for _, index in (*before[name], *after[name])}
        plain = {i.name for index in places for i in index if isinstance(i, Var)}
        if len(places) != 1 or not set(variables) <= plain:
            return False
    return bool(written & before.keys() & after.keys())


def _around(loops: list[For], body: Block) -> For:
    found = body
    for loop in reversed(loops):
        found = Block((replace(loop, body=found),))
    (only,) = found.statements
    assert isinstance(only, For)
    return only
