"""Walking and rebuilding nests: the one place that knows which statements hold others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kernelgen.nest.index import map_values, values
from kernelgen.nest.nodes import (
    Accumulate,
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


def statements(root: Statement) -> Iterator[Statement]:
    """The statement and everything inside, in order."""
    yield root
    if isinstance(root, Block):
        for part in root.statements:
            yield from statements(part)
    elif isinstance(root, For | If | Grid):
        yield from statements(root.body)


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


def calls(expr: Expr) -> Iterator[Call]:
    """All calls in an expression, outer ones first; not those in indices."""
    if isinstance(expr, Call):
        yield expr
        for arg in expr.args:
            yield from calls(arg)


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


@dataclass(frozen=True)
class Moved:
    """Where the elements of a buffer are now: in this one, addressed by ``lead`` and these dims of the index."""

    buffer: Buffer
    dims: tuple[int, ...]
    lead: tuple[Index, ...] = ()

    def at(self, index: tuple[Index, ...]) -> tuple[Index, ...]:
        """The new index of the element that had this one."""
        return (*self.lead, *(index[dim] for dim in self.dims))


def map_accesses(root: Block, name: str, buffer: Buffer, dims: Sequence[int]) -> Block:
    """The block with every access of a buffer led to another one, at the given dims of its index."""
    return move(root, {name: Moved(buffer, tuple(dims))})


def move(root: Block, moved: Mapping[str, Moved]) -> Block:
    """The block with every access of these buffers, by name, led to where their elements are now."""

    def load(expr: Expr) -> Expr:
        place = moved.get(expr.buffer.name) if isinstance(expr, Load) else None
        return Load(place.buffer, place.at(expr.index)) if isinstance(expr, Load) and place else expr

    def write(block: Block) -> Block:
        return Block(tuple(_moved(part, moved) for part in block.statements))

    mapped = map_expressions(root, load)
    return map_blocks(mapped, write) if isinstance(mapped, Block) else root


def _moved(part: Statement, moved: Mapping[str, Moved]) -> Statement:
    place = moved.get(part.buffer.name) if isinstance(part, Store | Accumulate) else None
    if isinstance(part, Store | Accumulate) and place:
        return replace(part, buffer=place.buffer, index=place.at(part.index))
    return part


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


def map_expressions(root: Statement, edit: Callable[[Expr], Expr]) -> Statement:
    """Rewrites every expression bottom-up."""
    match root:
        case Block(parts):
            return Block(tuple(map_expressions(part, edit) for part in parts))
        case For() | If() | Grid():
            body = map_expressions(root.body, edit)
            return replace(root, body=body) if isinstance(body, Block) else root
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
