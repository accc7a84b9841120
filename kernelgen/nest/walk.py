"""Walking and rebuilding nests: the one place that knows which statements hold others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from kernelgen.nest.index import map_values, values
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Block,
    Buffer,
    Call,
    Expr,
    For,
    Grid,
    If,
    Index,
    IndexValue,
    Let,
    Load,
    LoopKind,
    Statement,
    Store,
)

S = TypeVar("S", bound=Statement)


def statements(root: Statement) -> Iterator[Statement]:
    """The statement and everything inside, in order."""
    yield root
    if isinstance(root, Block):
        for part in root.statements:
            yield from statements(part)
    elif isinstance(root, For | If | Grid):
        yield from statements(root.body)


Path = tuple[int, ...]
"""Where a statement stands: the positions, block by block, of the statements that hold it, and its own."""


def located(root: Block, path: Path = ()) -> Iterator[tuple[Path, Statement]]:
    """The statements that hold no others, in order, each with its place. One object may stand at several places."""
    for position, part in enumerate(root.statements):
        if isinstance(part, For | If | Grid | Block):
            yield from located(part if isinstance(part, Block) else part.body, (*path, position))
        else:
            yield (*path, position), part


def vector_loop_of(body: Block) -> For | None:
    """The vector loop that is the last statement of a block behind nothing but bindings, else None."""
    last = body.statements[-1] if body.statements else None
    if not isinstance(last, For) or last.kind is not LoopKind.VECTOR:
        return None
    return last if all(isinstance(part, Let) for part in body.statements[:-1]) else None


def loads(expr: Expr) -> Iterator[Load]:
    """All loads in an expression, those in indices of loads too."""
    if isinstance(expr, Load):
        yield expr
        yield from loads_in(expr.index)
    elif isinstance(expr, Call):
        for arg in expr.args:
            yield from loads(arg)
    elif isinstance(expr, IndexValue):
        yield from loads_in((expr.index,))


def subexpressions(expr: Expr) -> Iterator[Expr]:
    """The expression and all in it, outer ones first; not those in indices."""
    waiting = [expr]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, Call):
            waiting.extend(reversed(each.args))


def calls(expr: Expr) -> Iterator[Call]:
    """All calls in an expression, outer ones first; not those in indices."""
    return (each for each in subexpressions(expr) if isinstance(each, Call))


def calls_of(statement: Statement) -> Iterator[Call]:
    """The calls that a statement itself evaluates, not those in its indices or inside it."""
    if isinstance(statement, Let | Store | Accumulate):
        yield from calls(statement.value)


def loads_in(index: Sequence[Index]) -> Iterator[Load]:
    """The loads that decide where an access goes."""
    for each in index:
        for value in values(each):
            yield from loads(value)


def loads_of(statement: Statement) -> Iterator[Load]:
    """The loads that a statement itself evaluates, not those of statements inside it."""
    if isinstance(statement, Let | Store | Accumulate):
        yield from loads(statement.value)
    if isinstance(statement, Store | Accumulate):
        yield from loads_in(statement.index)


def stored_buffers(root: Statement) -> frozenset[str]:
    """The names of the buffers that are written anywhere inside."""
    return frozenset(s.buffer.name for s in statements(root) if isinstance(s, Store | Accumulate))


def accesses_of(statement: Statement) -> Iterator[tuple[Buffer, tuple[Index, ...]]]:
    """The buffers that a statement itself loads and then the one that it writes, each with the index it uses."""
    for load in loads_of(statement):
        yield load.buffer, load.index
    if isinstance(statement, Store | Accumulate):
        yield statement.buffer, statement.index


def accesses(root: Statement, name: str) -> Iterator[tuple[Statement, tuple[Index, ...]]]:
    """The statements that load or write a buffer, in textual order, each with the index it uses."""
    for statement in statements(root):
        for buffer, index in accesses_of(statement):
            if buffer.name == name:
                yield statement, index


def accesses_by_buffer(root: Statement) -> dict[str, list[tuple[Statement, tuple[Index, ...]]]]:
    """The same for all buffers, by name."""
    found: dict[str, list[tuple[Statement, tuple[Index, ...]]]] = {}
    for statement in statements(root):
        for buffer, index in accesses_of(statement):
            found.setdefault(buffer.name, []).append((statement, index))
    return found


Place = tuple[Buffer, tuple[Index, ...]]
"""An element: a buffer, and the index of an access."""

Redirect = Callable[[Buffer, tuple[Index, ...]], Place | None]
"""Where an element is now; None where it is."""


def redirect(root: Block, loaded: Redirect, written: Redirect) -> Block:
    """The block with its loads, and its stores and accumulations, led to other elements.

    Loads in indices are led first: ``loaded`` and ``written`` are asked with indices that are as they stay.
    """

    def load(expr: Expr) -> Expr:
        place = loaded(expr.buffer, expr.index) if isinstance(expr, Load) else None
        return Load(*place) if place else expr

    def write(part: Statement) -> Statement:
        if not isinstance(part, Store | Accumulate):
            return part
        place = written(part.buffer, part.index)
        return replace(part, buffer=place[0], index=place[1]) if place else part

    return map_statements(map_expressions(root, load), write)


@dataclass(frozen=True)
class Moved:
    """Where the elements of a buffer are now: in this one, addressed by ``lead`` and these dims of the index."""

    buffer: Buffer
    dims: tuple[int, ...]
    lead: tuple[Index, ...] = ()

    def at(self, index: tuple[Index, ...]) -> tuple[Index, ...]:
        """The new index of the element that had this one."""
        return (*self.lead, *(index[dim] for dim in self.dims))


def move(root: Block, moved: Mapping[str, Moved]) -> Block:
    """The block with every access and allocation of these buffers, by name, led to where their elements are now."""

    def place(buffer: Buffer, index: tuple[Index, ...]) -> Place | None:
        found = moved.get(buffer.name)
        return (found.buffer, found.at(index)) if found else None

    def made(part: Statement) -> Statement:
        found = moved.get(part.buffer.name) if isinstance(part, Alloc) else None
        return Alloc(found.buffer) if found else part

    return map_statements(redirect(root, place, place), made)


def replace_buffers(root: Block, buffers: Mapping[str, Buffer]) -> Block:
    """The block with other buffers of the same shape in place of these, by name."""
    return move(root, {name: Moved(buffer, tuple(range(len(buffer.shape)))) for name, buffer in buffers.items()})


def nested(loops: Sequence[For], body: Block) -> Block:
    """The loops in each other, the innermost around ``body``; what stands before the next loop in one of them stays.

    Without loops it is the body itself.
    """
    for place, loop in reversed(tuple(enumerate(loops))):
        before = loop.body.statements[:-1] if place < len(loops) - 1 else ()
        body = Block((replace(loop, body=Block((*before, *body.statements))),))
    return body


def map_blocks(root: Block, edit: Callable[[Block], Block]) -> Block:
    """Applies ``edit`` to every block, inner ones first."""
    parts: list[Statement] = []
    for part in root.statements:
        if isinstance(part, For | If | Grid):
            parts.append(replace(part, body=map_blocks(part.body, edit)))
        elif isinstance(part, Block):
            parts.append(map_blocks(part, edit))
        else:
            parts.append(part)
    return edit(Block(tuple(parts)))


def map_statements(root: Block, edit: Callable[[Statement], Statement]) -> Block:
    """Rewrites every statement that holds no others, in place."""

    def block(inner: Block) -> Block:
        parts = (part if isinstance(part, For | If | Grid | Block) else edit(part) for part in inner.statements)
        return Block(tuple(parts))

    return map_blocks(root, block)


def map_expressions(root: S, edit: Callable[[Expr], Expr]) -> S:
    """Rewrites every expression bottom-up; a statement stays one of its class."""
    match root:
        case Block(parts):
            return replace(root, statements=tuple(map_expressions(part, edit) for part in parts))
        case For() | If() | Grid():
            return replace(root, body=map_expressions(root.body, edit))
        case Let(_, value):
            return replace(root, value=map_expression(value, edit))
        case Store() | Accumulate():
            return replace(root, index=_map_index(root.index, edit), value=map_expression(root.value, edit))
        case _:
            return root


def map_expression(expr: Expr, edit: Callable[[Expr], Expr]) -> Expr:
    """Rewrites an expression bottom-up."""
    if isinstance(expr, Call):
        expr = replace(expr, args=tuple(map_expression(arg, edit) for arg in expr.args))
    elif isinstance(expr, Load):
        expr = replace(expr, index=_map_index(expr.index, edit))
    elif isinstance(expr, IndexValue):
        expr = replace(expr, index=_map_index((expr.index,), edit)[0])
    return edit(expr)


def _map_index(index: tuple[Index, ...], edit: Callable[[Expr], Expr]) -> tuple[Index, ...]:
    return tuple(map_values(each, lambda value: map_expression(value, edit)) for each in index)
