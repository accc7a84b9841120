"""Faults to plant into finished nests: each is a way in which a pass of the generator could be wrong.

A fault is an edit of one statement; :func:`planted` gives a nest for every place where it applies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Block,
    Buffer,
    Call,
    Compare,
    Expr,
    For,
    If,
    Index,
    IndexBinary,
    IndexOp,
    Let,
    Literal,
    Load,
    LoopKind,
    Nest,
    Num,
    Space,
    Statement,
    Store,
    Var,
)
from kernelgen.nest.walk import map_expression, statements

Edit = Callable[[Statement, Nest], Iterator[tuple[Statement, ...]]]
ONE = Num(1)


def planted(nest: Nest, edit: Edit) -> Iterator[Nest]:
    """The nest with the fault in one place, for every place."""
    for body in _edited(nest.body, edit, nest):
        yield replace(nest, body=body)


def _edited(block: Block, edit: Edit, nest: Nest) -> Iterator[Block]:
    for place, part in enumerate(block.statements):
        before, after = block.statements[:place], block.statements[place + 1 :]
        for changed in edit(part, nest):
            yield Block((*before, *changed, *after))
        if isinstance(part, For | If):
            for body in _edited(part.body, edit, nest):
                yield Block((*before, replace(part, body=body), *after))


# ---------------------------------------------------------------- accesses


def _in_loads(part: Statement, change: Callable[[Load], Load]) -> Iterator[tuple[Statement, ...]]:
    if isinstance(part, Let | Store | Accumulate):

        def edit(expr: Expr) -> Expr:
            return change(expr) if isinstance(expr, Load) else expr

        value = map_expression(part.value, edit)
        if value != part.value:
            yield (replace(part, value=value),)


def shifted_load(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    def shift(load: Load) -> Load:
        return replace(load, index=(*load.index[:-1], ix.add(load.index[-1], ONE))) if load.index else load

    yield from _in_loads(part, shift)


def swapped_load(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    yield from _in_loads(part, lambda load: replace(load, index=load.index[::-1]))


def constant_load(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    """Every iteration reads the first element: a broadcast that is none."""
    yield from _in_loads(part, lambda load: replace(load, index=(Num(0),) * len(load.index)))


def shifted_store(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    if isinstance(part, Store | Accumulate) and part.index:
        yield (replace(part, index=(*part.index[:-1], ix.add(part.index[-1], ONE))),)


def store_to_an_input(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    source = next((b for b in nest.buffers if b.space is Space.INPUT), None)
    if isinstance(part, Store) and source is not None and source.dtype == part.buffer.dtype:
        yield (part, Store(source, (Num(0),) * len(source.shape), part.value))


# ---------------------------------------------------------------- values


def other_function(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    others = {"add": "sub", "sub": "add", "mul": "add", "div": "mul", "exp": "expm1", "neg": "abs"}

    def edit(expr: Expr) -> Expr:
        return (
            replace(expr, function=others[expr.function])
            if isinstance(expr, Call) and expr.function in others
            else expr
        )

    if isinstance(part, Let | Store | Accumulate):
        value = map_expression(part.value, edit)
        if value != part.value:
            yield (replace(part, value=value),)


def other_reduction(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    if isinstance(part, Accumulate):
        yield (replace(part, function="minimum" if part.function == "add" else "add"),)


def repeated_accumulation(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    if isinstance(part, Accumulate) and part.function == "add":
        yield (part, part)


# ---------------------------------------------------------------- initialisation


def _is_start(part: Statement, nest: Nest) -> bool:
    accumulated = {s.buffer.name for s in statements(nest.body) if isinstance(s, Accumulate)}
    return isinstance(part, Store) and isinstance(part.value, Literal) and part.buffer.name in accumulated


def no_start(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    if _is_start(part, nest):
        yield ()


def wrong_start(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    if isinstance(part, Store) and _is_start(part, nest) and isinstance(part.value, Literal):
        yield (replace(part, value=replace(part.value, value=3.0)),)


def start_in_every_iteration(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    if isinstance(part, Accumulate):
        yield (Store(part.buffer, part.index, Literal(0.0, part.buffer.dtype)), part)


def stored_not_accumulated(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    if isinstance(part, Accumulate):
        yield (Store(part.buffer, part.index, part.value),)


# ---------------------------------------------------------------- schedule and tiling


def lost_last_iteration(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    if isinstance(part, For) and part.step == 1:
        yield (replace(part, upper=ix.subtract(part.upper, ONE)),)


def lost_first_iteration(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    if isinstance(part, For):
        yield (replace(part, lower=ix.add(part.lower, ONE)),)


def one_iteration_too_many(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    """A tile too many is empty, so only loops over elements count."""
    if isinstance(part, For) and part.step == 1:
        yield (replace(part, upper=ix.add(part.upper, ONE)),)


def doubled_step(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    if isinstance(part, For):
        yield (replace(part, step=part.step * 2),)


def tile_without_its_end(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    """``min(N, c + 64)`` becomes ``c + 64``."""
    if isinstance(part, For) and isinstance(part.upper, IndexBinary) and part.upper.op is IndexOp.MIN:
        bound, tile = part.upper.left, part.upper.right
        yield (replace(part, upper=tile if isinstance(bound, Num) else bound),)


def overlapping_tiles(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    """A loop over tiles that advances by less than its tiles are long."""
    if isinstance(part, For) and part.step > 1:
        yield (replace(part, step=part.step // 2),)


def phases_exchanged(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    if isinstance(part, For):
        for inner in _exchanged(part.body):
            yield (replace(part, body=inner),)


def _exchanged(block: Block) -> Iterator[Block]:
    """The first two loops of a block in the other order; the second one needs what the first one made."""
    loops = [k for k, inner in enumerate(block.statements) if isinstance(inner, For)]
    if len(loops) > 1:
        parts = list(block.statements)
        parts[loops[0]], parts[loops[1]] = parts[loops[1]], parts[loops[0]]
        yield Block(tuple(parts))


def guarded(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    """Only part of the iterations of a loop do what all should do."""
    if isinstance(part, For):
        condition = Compare("<=", ix.add(part.lower, ONE), Var(part.var))
        yield (replace(part, body=Block((If((condition,), part.body),))),)


# ---------------------------------------------------------------- marks


def reduction_in_parallel(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    """A loop whose iterations accumulate into one element is marked parallel."""
    if isinstance(part, For) and part.kind is not LoopKind.PARALLEL:
        for inner in statements(part.body):
            local = {s.buffer.name for s in statements(part.body) if isinstance(s, Alloc)}
            if (
                isinstance(inner, Accumulate)
                and inner.buffer.name not in local
                and not _mentions(inner.index, part.var)
            ):
                yield (replace(part, kind=LoopKind.PARALLEL),)
                return


def running_sum_in_a_vector(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    """A vector loop whose iterations read what others have stored."""
    if isinstance(part, For) and part.kind is LoopKind.VECTOR:
        target = next((s for s in statements(part.body) if isinstance(s, Store) and _mentions(s.index, part.var)), None)
        if target is not None:
            before = tuple(ix.substitute(i, {part.var: part.lower}) for i in target.index)
            add = Call("add", (target.value, Load(target.buffer, before)), target.buffer.dtype)
            later = If((Compare("<", part.lower, Var(part.var)),), Block((replace(target, value=add),)))
            yield (replace(part, body=Block((*part.body.statements, later))),)


def _mentions(index: tuple[Index, ...], variable: str) -> bool:
    return any(variable in ix.variables(i) for i in index)


# ---------------------------------------------------------------- storage


def shrunk_local(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    """All accesses of a local go to its first element, as if a dim were constant that is not."""
    if isinstance(part, For):
        for alloc in [s for s in part.body.statements if isinstance(s, Alloc) and s.buffer.shape]:
            yield (replace(part, body=_redirected(part.body, alloc.buffer, alloc.buffer, (Num(0),))),)


def _redirected(body: Block, old: Buffer, new: Buffer, index: tuple[Index, ...]) -> Block:
    def edit(expr: Expr) -> Expr:
        return Load(new, index) if isinstance(expr, Load) and expr.buffer == old else expr

    def one(part: Statement) -> Statement:
        if isinstance(part, For | If):
            return replace(part, body=Block(tuple(map(one, part.body.statements))))
        if isinstance(part, Let | Store | Accumulate):
            part = replace(part, value=map_expression(part.value, edit))
        if isinstance(part, Store | Accumulate) and part.buffer == old:
            return replace(part, buffer=new, index=index)
        return part

    return Block(tuple(map(one, body.statements)))


def local_of_all_iterations(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    """A local of a parallel iteration becomes one of all of them."""
    if isinstance(part, For) and part.kind is LoopKind.PARALLEL:
        allocs = tuple(s for s in part.body.statements if isinstance(s, Alloc))
        rest = tuple(s for s in part.body.statements if not isinstance(s, Alloc))
        if allocs:
            yield (*allocs, replace(part, body=Block(rest)))


def local_in_a_live_output(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    """A temporary is kept in an element of an output that is in use."""
    target = next((b for b in nest.buffers if b.space is Space.OUTPUT), None)
    if isinstance(part, For) and target is not None:
        for alloc in [s for s in part.body.statements if isinstance(s, Alloc)]:
            if alloc.buffer.dtype == target.dtype:
                where = (Num(0),) * len(target.shape)
                body = _redirected(part.body, alloc.buffer, target, where)
                yield (replace(part, body=Block(tuple(s for s in body.statements if s != alloc))),)


FAULTS: Mapping[str, Edit] = {
    edit.__name__: edit
    for edit in (
        shifted_load, swapped_load, constant_load, shifted_store, store_to_an_input,
        other_function, other_reduction, repeated_accumulation,
        no_start, wrong_start, start_in_every_iteration, stored_not_accumulated,
        lost_last_iteration, lost_first_iteration, one_iteration_too_many, doubled_step, tile_without_its_end,
        overlapping_tiles, phases_exchanged, guarded,
        reduction_in_parallel, running_sum_in_a_vector,
        shrunk_local, local_of_all_iterations, local_in_a_live_output,
    )
}  # fmt: skip


# ---------------------------------------------------------------- places that data decides


def _in_values(part: Statement, change: Callable[[Expr], Expr]) -> Iterator[tuple[Statement, ...]]:
    if isinstance(part, Let | Store | Accumulate):
        value = map_expression(part.value, change)
        if value != part.value:
            yield (replace(part, value=value),)


def dropped_guard(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    """What a place outside of the tensor holds is used all the same."""
    yield from _in_values(
        part, lambda e: e.args[1] if isinstance(e, Call) and e.function == "select" and _is_guard(e.args[0]) else e
    )


def _is_guard(condition: Expr) -> bool:
    return isinstance(condition, Call) and condition.function == "logical_and"


def guard_off_by_one(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    """``v < 7`` becomes ``v <= 7``: one place more counts as inside."""
    yield from _in_values(
        part, lambda e: replace(e, function="less_equal") if isinstance(e, Call) and e.function == "less" else e
    )


def place_of_another_element(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    """An access that data decides goes to the element before it."""

    def moved(index: Index) -> Index:
        return ix.maximum(ix.subtract(index, ONE), Num(0)) if any(True for _ in ix.values(index)) else index

    if isinstance(part, Store | Accumulate):
        index = tuple(map(moved, part.index))
        if index != part.index:
            yield (replace(part, index=index),)
    yield from _in_loads(part, lambda load: replace(load, index=tuple(map(moved, load.index))))


def other_choice(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    """A select with its branches exchanged."""
    yield from _in_values(
        part,
        lambda e: (
            replace(e, args=(e.args[0], e.args[2], e.args[1])) if isinstance(e, Call) and e.function == "select" else e
        ),
    )


def last_of_equals(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    """The position of an extreme is the last one in place of the first."""
    if isinstance(part, Accumulate) and part.buffer.dtype.is_integer and part.function == "minimum":
        other = map_expression(
            part.value, lambda e: replace(e, value=-1) if isinstance(e, Literal) and e.value == 2**31 - 1 else e
        )
        yield (replace(part, function="maximum", value=other),)


def other_part(part: Statement, nest: Nest) -> Iterator[tuple[Statement, ...]]:
    """The imaginary part of a complex number in place of the real one."""

    def moved(load: Load) -> Load:
        last = load.index[-1] if load.index else None
        return replace(load, index=(*load.index[:-1], Num(1))) if last == Num(0) else load

    yield from _in_loads(part, moved)


DATA_FAULTS: Mapping[str, Edit] = {
    edit.__name__: edit
    for edit in (
        dropped_guard, guard_off_by_one, place_of_another_element, other_choice, last_of_equals, other_part,
    )
}  # fmt: skip
"""Faults of operators whose places data decides, of positions of extremes and of complex numbers."""
