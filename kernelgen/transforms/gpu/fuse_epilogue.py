"""Joins a product with what follows it element by element: bias, activation, residual, cast.

    block i: block j: c[i, j] = 0; for k: c[i, j] += ...         block i: block j:
    block i: block j: y[i, j] = tanh(c[i, j] + b[j])      ->       c[i, j] = 0; for k: c[i, j] += ...
                                                                   y[i, j] = tanh(c[i, j] + b[j])

Where the product's results are stored in squares, ``c[j / 16, i / 16, i mod 16, j mod 16]``, what follows has a loop for each
dim of ``c``; its variables are then quotients and rests of the product's.

Legality. Both nests run over the same rectangle, or there is a bijection between the two: the index at which the product
stores. Every buffer that one of them writes and the other one touches is addressed in both by the loop variables, all of
them, in the same way: so iteration x of the second nest depends on iteration x of the first one alone. Whether statements of
the second one then belong to the same thread does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.substitute import substituted
from kernelgen.nest.walk import Moved, accesses_by_buffer, move, nested, statements, stored_buffers
from kernelgen.transforms.gpu.delinearise import block_loops


def join_tails(nest: n.Nest) -> n.Nest:
    """The nest, before it is cut into grids, with such nests in one."""
    parts: list[n.Statement] = []
    for part in nest.body.statements:
        joined = _joined(parts[-1], part) if parts else None
        parts[-1:] = [joined] if joined is not None else [*parts[-1:], part]
    body = n.Block(tuple(parts))
    moved = {name: place for part in parts for name, place in _laid_out(part, body, nest.buffers).items()}
    buffers = tuple(moved[buffer.name].buffer if buffer.name in moved else buffer for buffer in nest.buffers)
    return replace(nest, buffers=buffers, body=move(body, moved) if moved else body)


def _laid_out(part: n.Statement, body: n.Block, buffers: Sequence[n.Buffer]) -> dict[str, Moved]:
    """Temporaries in squares that one nest alone touches, laid out as its loops run: what follows may then drop them."""
    if not isinstance(part, n.For):
        return {}
    (loops, inner), every = block_loops(n.Block((part,))), accesses_by_buffer(body)
    shape = tuple(loop.upper.value for loop in loops if isinstance(loop.upper, n.Num))
    own, found = accesses_by_buffer(inner), dict[str, Moved]()
    for buffer in buffers:
        places = {index for _, index in own.get(buffer.name, ())}
        alone = buffer.space is n.Space.WORKSPACE and len(own.get(buffer.name, ())) == len(every.get(buffer.name, ()))
        in_squares = [
            place for place in places if any(not isinstance(i, n.Var) for i in place) and _parts(place, loops)
        ]
        if alone and len(places) == len(in_squares) == 1 and len(shape) == len(loops):
            found[buffer.name] = Moved(replace(buffer, shape=shape), (), tuple(n.Var(loop.var) for loop in loops))
    return found


def _joined(first: n.Statement, second: n.Statement) -> n.Statement | None:
    """Both as one nest; None where they do not fit."""
    if not isinstance(first, n.For) or not isinstance(second, n.For):
        return None
    loops, body = block_loops(n.Block((first,)))
    others, tail = block_loops(n.Block((second,)))
    if not _has_sum(body) or not _is_plain(tail):
        return None
    names = _same(loops, others) or _by_place(loops, others, body, tail)
    if names is None:
        return None
    renamed = substituted(tail, names)
    if not _meet_in_one_iteration(body, renamed, loops):
        return None
    (whole,) = nested(loops, n.Block((*body.statements, *renamed.statements))).statements
    return whole


def _same(loops: Sequence[n.For], others: Sequence[n.For]) -> dict[str, n.Index] | None:
    """The other loops' variables in terms of the first ones', where they run over the same rectangle in the same order."""
    if [_bounds(loop) for loop in loops] != [_bounds(loop) for loop in others]:
        return None
    return {b.var: n.Var(a.var) for a, b in zip(loops, others, strict=True)}


def _by_place(
    loops: Sequence[n.For], others: Sequence[n.For], first: n.Block, second: n.Block
) -> dict[str, n.Index] | None:
    """The same, where the first nest stores at a bijective place and the second one loads by its variables alone."""
    after = accesses_by_buffer(second)
    extents = {loop.var: loop.upper for loop in others if loop.lower == n.Num(0) and loop.step == 1}
    for name in sorted(stored_buffers(first) & after.keys()):
        place = next(index for _, index in accesses_by_buffer(first)[name])
        read = next(index for _, index in after[name])
        names = [i.name for i in read if isinstance(i, n.Var)]
        if sorted(names) != sorted(extents) or len(names) != len(read) or len(extents) != len(others):
            continue
        if _parts(place, loops) == dict(zip(place, (extents[each] for each in names), strict=True)):
            return dict(zip(names, place, strict=True))
    return None


def _parts(place: tuple[n.Index, ...], loops: Sequence[n.For]) -> dict[n.Index, n.Index] | None:
    """The extents of the parts of a place that is a bijection of the loops' rectangle: variables, or quotient and rest."""
    found: dict[n.Index, n.Index] = {}
    for loop in loops:
        own = [i for i in place if loop.var in ix.variables(i)]
        if loop.lower != n.Num(0) or loop.step != 1:
            return None
        match own:
            case [n.Var()]:
                found[own[0]] = loop.upper
            case [n.IndexBinary(op, n.Var(), n.Num(radix)), n.IndexBinary(other, n.Var(), n.Num(same))] if (
                {op, other} == {n.IndexOp.DIV, n.IndexOp.MOD}
                and radix == same
                and isinstance(loop.upper, n.Num)
                and loop.upper.value % radix == 0
            ):
                sizes = {n.IndexOp.DIV: n.Num(loop.upper.value // radix), n.IndexOp.MOD: n.Num(radix)}
                found |= {own[0]: sizes[op], own[1]: sizes[other]}
            case _:
                return None
    return found if found.keys() == set(place) else None


def _has_sum(body: n.Block) -> bool:
    """Whether it is a sum in a thread, perhaps with a tail already."""
    loops = [part for part in statements(body) if isinstance(part, n.For)]
    return any(isinstance(part, n.Accumulate) for part in statements(body)) and all(
        loop.kind in (n.LoopKind.SERIAL, n.LoopKind.UNROLL) for loop in loops
    ) and bool(loops)  # fmt: skip


def _is_plain(body: n.Block) -> bool:
    return all(isinstance(part, n.Let | n.Store | n.Accumulate | n.If | n.Block) for part in statements(body))


def _bounds(loop: n.For) -> tuple[n.Index, n.Index, int]:
    return loop.lower, loop.upper, loop.step


def _meet_in_one_iteration(first: n.Block, second: n.Block, loops: Sequence[n.For]) -> bool:
    """Whether what one writes and the other one touches is addressed alike, by all variables."""
    written = stored_buffers(first) | stored_buffers(second)
    before, after = accesses_by_buffer(first), accesses_by_buffer(second)
    for name in sorted(written & before.keys() & after.keys()):
        places = {index for _, index in (*before[name], *after[name])}
        if len(places) != 1 or not all(_names_all(place, loops) for place in places):
            return False
    return bool(written & before.keys() & after.keys())


def _names_all(place: tuple[n.Index, ...], loops: Sequence[n.For]) -> bool:
    """Whether another iteration has another place."""
    plain = {i.name for i in place if isinstance(i, n.Var)}
    return plain >= {loop.var for loop in loops} or _parts(place, loops) is not None
