"""Walking and rebuilding nests: the one place that knows which statements hold others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from kernelgen.nest.index import map_values, values
from kernelgen.nest.nodes import (
    Accumulate,
    Block,
    Buffer,
    Call,
    Expr,
    For,
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
    elif isinstance(root, For | If):
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


def accesses(root: Statement, name: str) -> Iterator[tuple[Statement, tuple[Index, ...]]]:
    """The statements that load or write a buffer, in textual order, each with the index it uses."""
    for statement in statements(root):
        for load in loads_of(statement):
            if load.buffer.name == name:
                yield statement, load.index
        if isinstance(statement, Store | Accumulate) and statement.buffer.name == name:
            yield statement, statement.index


def map_accesses(root: Block, name: str, buffer: Buffer, dims: Sequence[int]) -> Block:
    """The block with every access of a buffer led to another one, at the given dims of its index."""

    def load(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer.name == name:
            return Load(buffer, tuple(expr.index[dim] for dim in dims))
        return expr

    def write(block: Block) -> Block:
        return Block(tuple(_moved(part, name, buffer, dims) for part in block.statements))

    mapped = map_expressions(root, load)
    return map_blocks(mapped, write) if isinstance(mapped, Block) else root


def _moved(part: Statement, name: str, buffer: Buffer, dims: Sequence[int]) -> Statement:
    if isinstance(part, Store | Accumulate) and part.buffer.name == name:
        return replace(part, buffer=buffer, index=tuple(part.index[dim] for dim in dims))
    return part


def map_blocks(root: Block, edit: Callable[[Block], Block]) -> Block:
    """Applies ``edit`` to every block, inner ones first."""
    parts: list[Statement] = []
    for part in root.statements:
        if isinstance(part, For | If):
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
        case For() | If():
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
