"""Walking and rebuilding nests: the one place that knows which statements hold others."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kernelgen.nest import nodes as n
from kernelgen.nest.index import is_by_data, map_values, subtract

S = TypeVar("S", bound=n.Statement)
A = TypeVar("A", bound=n.For | n.If | n.Grid)

AROUND = (n.For, n.If, n.Grid)
"""Statements with a body."""
EditLoop = Callable[[n.For, tuple[n.For, ...]], n.For]
"""What becomes of a loop, given the loops around it, outermost first."""
WRITES = (n.Store, n.Accumulate)
"""Statements that write an element."""


def statements(root: n.Statement) -> Iterator[n.Statement]:
    """The statement and everything inside, in order."""
    waiting: list[n.Statement] = [root]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, n.Block):
            waiting.extend(reversed(part.statements))
        elif isinstance(part, AROUND):
            waiting.append(part.body)


Path = tuple[int, ...]
"""Where a statement stands: the positions, block by block, of the statements that hold it, and its own."""


def located(root: n.Block, path: Path = ()) -> Iterator[tuple[Path, n.Statement]]:
    """The statements that hold no others, in order, each with its place. One object may stand at several places."""
    for position, part in enumerate(root.statements):
        if isinstance(part, (*AROUND, n.Block)):
            yield from located(part if isinstance(part, n.Block) else part.body, (*path, position))
        else:
            yield (*path, position), part


def vector_loop_of(body: n.Block, before: tuple[type[n.Statement], ...] = (n.Let,)) -> n.For | None:
    """The vector loop that is the last statement of a block behind nothing but what may stand ``before`` it, else None."""
    last = body.statements[-1] if body.statements else None
    if not isinstance(last, n.For) or last.kind is not n.LoopKind.VECTOR:
        return None
    return last if all(isinstance(part, before) for part in body.statements[:-1]) else None


def loads(expr: n.Expr) -> Sequence[n.Load]:
    """All loads in an expression, those in indices of loads too."""
    return expr.loads


def subexpressions(expr: n.Expr) -> Iterator[n.Expr]:
    """The expression and all in it, outer ones first; not those in indices."""
    waiting = [expr]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, n.Call):
            waiting.extend(reversed(each.args))


def calls(expr: n.Expr) -> Iterator[n.Call]:
    """All calls in an expression, outer ones first; not those in indices."""
    return (each for each in subexpressions(expr) if isinstance(each, n.Call))


def calls_of(statement: n.Statement) -> Iterator[n.Call]:
    """The calls that a statement itself evaluates, not those in its indices or inside it."""
    if isinstance(statement, n.Let | n.Store | n.Accumulate):
        yield from calls(statement.value)


def loads_of(statement: n.Statement) -> Sequence[n.Load]:
    """The loads that a statement itself evaluates, not those of statements inside it."""
    if isinstance(statement, n.Let):
        return statement.value.loads
    return statement.value.loads + n.loads_in(statement.index) if isinstance(statement, WRITES) else ()


def stored_buffers(root: n.Statement) -> frozenset[str]:
    """The names of the buffers that are written anywhere inside."""
    return frozenset(s.buffer.name for s in statements(root) if isinstance(s, WRITES))


def accesses_of(statement: n.Statement) -> Iterator[tuple[n.Buffer, tuple[n.Index, ...]]]:
    """The buffers that a statement itself loads and then the one that it writes, each with the index it uses."""
    for load in loads_of(statement):
        yield load.buffer, load.index
    if isinstance(statement, WRITES):
        yield statement.buffer, statement.index


def accesses(root: n.Statement, name: str) -> Iterator[tuple[n.Statement, tuple[n.Index, ...]]]:
    """The statements that load or write a buffer, in textual order, each with the index it uses."""
    for statement in statements(root):
        for buffer, index in accesses_of(statement):
            if buffer.name == name:
                yield statement, index


def accesses_by_buffer(root: n.Statement) -> dict[str, list[tuple[n.Statement, tuple[n.Index, ...]]]]:
    """The same for all buffers, by name."""
    found: dict[str, list[tuple[n.Statement, tuple[n.Index, ...]]]] = {}
    for statement in statements(root):
        for buffer, index in accesses_of(statement):
            found.setdefault(buffer.name, []).append((statement, index))
    return found


Place = tuple[n.Buffer, tuple[n.Index, ...]]
"""An element: a buffer, and the index of an access."""

Redirect = Callable[[n.Buffer, tuple[n.Index, ...]], Place | None]
"""Where an element is now; None where it is."""


def redirect(root: n.Block, loaded: Redirect, written: Redirect) -> n.Block:
    """The block with its loads, and its stores and accumulations, led to other elements.

    Loads in indices are led first: ``loaded`` and ``written`` are asked with indices that are as they stay.
    """

    def load(expr: n.Expr) -> n.Expr:
        place = loaded(expr.buffer, expr.index) if isinstance(expr, n.Load) else None
        return n.Load(*place) if place else expr

    def write(part: n.Statement) -> n.Statement:
        if not isinstance(part, WRITES):
            return part
        place = written(part.buffer, part.index)
        return replace(part, buffer=place[0], index=place[1]) if place else part

    return map_statements(map_expressions(root, load), write)


@dataclass(frozen=True)
class Moved:
    """Where the elements of a buffer are now: in this one, addressed by ``lead`` and these dims of the index.

    ``bases`` says of dims that are not held from 0 on where that is.
    """

    buffer: n.Buffer
    dims: tuple[int, ...]
    lead: tuple[n.Index, ...] = ()
    bases: Mapping[int, n.Index] = field(default_factory=dict[int, n.Index])

    def at(self, index: tuple[n.Index, ...]) -> tuple[n.Index, ...]:
        """The new index of the element that had this one."""
        places = (subtract(index[dim], self.bases.get(dim, n.Num(0))) for dim in self.dims)
        return (*self.lead, *places)


def move(root: n.Block, moved: Mapping[str, Moved]) -> n.Block:
    """The block with every access and allocation of these buffers, by name, led to where their elements are now."""

    def place(buffer: n.Buffer, index: tuple[n.Index, ...]) -> Place | None:
        found = moved.get(buffer.name)
        return (found.buffer, found.at(index)) if found else None

    def made(part: n.Statement) -> n.Statement:
        found = moved.get(part.buffer.name) if isinstance(part, n.Alloc) else None
        return n.Alloc(found.buffer) if found else part

    return map_statements(redirect(root, place, place), made)


def replace_buffers(root: n.Block, buffers: Mapping[str, n.Buffer]) -> n.Block:
    """The block with other buffers of the same shape in place of these, by name."""
    return move(root, {name: Moved(buffer, tuple(range(len(buffer.shape)))) for name, buffer in buffers.items()})


def nested(loops: Sequence[n.For], body: n.Block) -> n.Block:
    """The loops in each other, the innermost around ``body``; what stands before the next loop in one of them stays.

    Without loops it is the body itself.
    """
    for place, loop in reversed(tuple(enumerate(loops))):
        before = loop.body.statements[:-1] if place < len(loops) - 1 else ()
        body = n.Block((replace(loop, body=n.Block((*before, *body.statements))),))
    return body


def map_blocks(root: n.Block, edit: Callable[[n.Block], n.Block]) -> n.Block:
    """Applies ``edit`` to every block, inner ones first; one of which all statements stay is the object that it was."""

    def inside(part: n.Statement) -> n.Statement:
        if isinstance(part, n.Block):
            return map_blocks(part, edit)
        return with_body(part, map_blocks(part.body, edit)) if isinstance(part, AROUND) else part

    made = edit(of_statements(root, [inside(part) for part in root.statements]))
    return root if _are_same(made.statements, root.statements) else made


def of_statements(block: n.Block, parts: Sequence[n.Statement]) -> n.Block:
    """A block of these statements: ``block`` where they are its own."""
    return block if _are_same(parts, block.statements) else n.Block(tuple(parts))


def with_body(part: A, body: n.Block) -> A:
    """The statement around another body; itself where that is its own."""
    return part if body is part.body else replace(part, body=body)


def without_body(loop: n.For) -> n.For:
    """What two loops of the same iterations have in common."""
    return replace(loop, body=n.Block())


def _are_same(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(map(operator.is_, some, others))


def map_loops(root: n.Block, kinds: Collection[n.LoopKind], edit: EditLoop, around: tuple[n.For, ...] = ()) -> n.Block:
    """Applies ``edit`` to every loop of ``root`` of these ``kinds``, inner ones first, and tells it the loops ``around``."""

    def inside(part: n.Statement) -> n.Statement:
        if isinstance(part, n.Block):
            return map_loops(part, kinds, edit, around)
        if not isinstance(part, AROUND):
            return part
        outer = (*around, part) if isinstance(part, n.For) else around
        made = with_body(part, map_loops(part.body, kinds, edit, outer))
        return edit(made, around) if isinstance(made, n.For) and made.kind in kinds else made

    return of_statements(root, [inside(part) for part in root.statements])


def map_statements(root: n.Block, edit: Callable[[n.Statement], n.Statement]) -> n.Block:
    """Rewrites every statement that holds no others, in place."""

    def block(inner: n.Block) -> n.Block:
        parts = [part if isinstance(part, (*AROUND, n.Block)) else edit(part) for part in inner.statements]
        return of_statements(inner, parts)

    return map_blocks(root, block)


def map_expressions(root: S, edit: Callable[[n.Expr], n.Expr]) -> S:
    """Rewrites every expression bottom-up; a statement stays one of its class, and the object where nothing changes."""
    match root:
        case n.Block(parts):
            made = [map_expressions(part, edit) for part in parts]
            return root if _are_same(made, parts) else replace(root, statements=tuple(made))
        case n.For() | n.If() | n.Grid():
            return with_body(root, map_expressions(root.body, edit))
        case n.Let(_, value):
            made = map_expression(value, edit)
            return root if made is value else replace(root, value=made)
        case n.Store() | n.Accumulate():
            index, value = _map_index(root.index, edit), map_expression(root.value, edit)
            same = index is root.index and value is root.value
            return root if same else replace(root, index=index, value=value)
        case _:
            return root


def map_expression(expr: n.Expr, edit: Callable[[n.Expr], n.Expr]) -> n.Expr:
    """Rewrites an expression bottom-up; what has no part that changes is edited as the object that it is."""
    if isinstance(expr, n.Call):
        args = tuple([map_expression(arg, edit) for arg in expr.args])
        expr = expr if _are_same(args, expr.args) else n.Call(expr.function, args, expr.dtype)
    elif isinstance(expr, n.Load):
        index = _map_index(expr.index, edit)
        expr = expr if index is expr.index else n.Load(expr.buffer, index)
    elif isinstance(expr, n.IndexValue):
        (place,) = _map_index((expr.index,), edit)
        expr = expr if place is expr.index else n.IndexValue(place, expr.dtype)
    return edit(expr)


def _map_index(index: tuple[n.Index, ...], edit: Callable[[n.Expr], n.Expr]) -> tuple[n.Index, ...]:
    if not is_by_data(*index):
        return index
    return tuple(map_values(each, lambda value: map_expression(value, edit)) for each in index)
