"""Folds dims that always run together: fewer loops, longer vectors, smaller sets for isl.

    for i < 4, j < 8: y[i, j] = f(x[i, j])      ->      for i < 32: y[i] = f(x[i])

Axes ``a, b`` fold when, in every buffer, each ``a`` is directly followed by ``b`` and each ``b`` directly preceded by
``a``: then ``a * extent(b) + b`` addresses the same elements in the same row-major order everywhere. An axis that takes
part in a computed index (div, mod) or occurs twice in one buffer keeps its own loop.
Source: AKG's dimension folding and axis fusion.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from kernelgen.dims import Dim, product
from kernelgen.nest.index import map_values
from kernelgen.nest.nodes import Buffer, Call, Expr, Index, Let, Load, Var
from kernelgen.poly.classes import AxisClasses, Place, axis_classes
from kernelgen.poly.scop import BodyStatement, Iterator, Scop, Statement


def fold(scop: Scop) -> Scop:
    """The scop with as few axes as possible; the same object when none folds."""
    classes = axis_classes(scop)
    followers = _followers(scop, classes)
    if not followers:
        return scop
    buffers = {buffer.name: _fold_buffer(buffer, classes, followers) for buffer in scop.buffers}
    statements = tuple(_fold_statement(statement, classes, followers, buffers) for statement in scop.statements)
    return replace(scop, buffers=tuple(buffers.values()), statements=statements)


def _followers(scop: Scop, classes: AxisClasses) -> dict[Place, Place]:
    """For each axis that folds with the one after it, that one."""
    fixed = set(classes.computed)
    after: dict[Place, set[Place | None]] = {}
    before: dict[Place, set[Place | None]] = {}
    for buffer in scop.buffers:
        row = _axes_of(buffer, classes)
        repeated = {axis for axis, count in Counter(row).items() if count > 1}
        fixed |= repeated
        for previous, axis, following in zip([None, *row], row, [*row[1:], None], strict=False):
            before.setdefault(axis, set()).add(previous)
            after.setdefault(axis, set()).add(following)
    pairs: dict[Place, Place] = {}
    for axis, found in after.items():
        (follower,) = found if len(found) == 1 else (None,)
        if follower is None or axis in fixed or follower in fixed or before[follower] != {axis}:
            continue
        pairs[axis] = follower
    return {axis: follower for axis, follower in pairs.items() if _together(scop, classes, axis, follower)}


def _together(scop: Scop, classes: AxisClasses, first: Place, second: Place) -> bool:
    """Every statement that iterates over one iterates over the other, once each."""
    for statement in scop.statements:
        row = [classes.find(("statement", statement.name, k)) for k in range(len(statement.iterators))]
        if row.count(first) != row.count(second) or row.count(first) > 1:
            return False
    return True


def _axes_of(buffer: Buffer, classes: AxisClasses) -> list[Place]:
    return [classes.find(("buffer", buffer.name, dim)) for dim in range(len(buffer.shape))]


def _chain(axis: Place, followers: dict[Place, Place]) -> list[Place]:
    chain = [axis]
    while chain[-1] in followers:
        chain.append(followers[chain[-1]])
    return chain


def _fold_buffer(buffer: Buffer, classes: AxisClasses, followers: dict[Place, Place]) -> Buffer:
    inner = set(followers.values())
    extents = dict(zip(_axes_of(buffer, classes), buffer.shape, strict=True))
    shape: list[Dim] = []
    for axis, extent in zip(_axes_of(buffer, classes), buffer.shape, strict=True):
        if axis in inner:
            continue
        chain = _chain(axis, followers)
        shape.append(product(extents[one] for one in chain) if len(chain) > 1 else extent)
    return replace(buffer, shape=tuple(shape))


def _fold_statement(
    statement: Statement, classes: AxisClasses, followers: dict[Place, Place], buffers: dict[str, Buffer]
) -> Statement:
    inner = set(followers.values())
    axis_of = {it.name: classes.find(("statement", statement.name, k)) for k, it in enumerate(statement.iterators)}
    extents = {axis_of[it.name]: it.extent for it in statement.iterators}
    dropped = {name for name, axis in axis_of.items() if axis in inner}
    iterators: list[Iterator] = []
    for iterator in statement.iterators:
        chain = _chain(axis_of[iterator.name], followers)
        extent = product(extents[one] for one in chain) if len(chain) > 1 else iterator.extent
        if iterator.name not in dropped:
            iterators.append(Iterator(iterator.name, extent))
    body = tuple(_rewrite(part, dropped, buffers) for part in statement.body)
    return replace(statement, iterators=tuple(iterators), body=body)


def _rewrite(part: BodyStatement, dropped: set[str], buffers: dict[str, Buffer]) -> BodyStatement:
    value = _rewrite_value(part.value, dropped, buffers)
    if isinstance(part, Let):
        return replace(part, value=value)
    return replace(
        part, buffer=buffers[part.buffer.name], index=_rewrite_index(part.index, dropped, buffers), value=value
    )


def _rewrite_index(index: tuple[Index, ...], dropped: set[str], buffers: dict[str, Buffer]) -> tuple[Index, ...]:
    kept = (i for i in index if not (isinstance(i, Var) and i.name in dropped))
    return tuple(map_values(i, lambda value: _rewrite_value(value, dropped, buffers)) for i in kept)


def _rewrite_value(value: Expr, dropped: set[str], buffers: dict[str, Buffer]) -> Expr:
    if isinstance(value, Load):
        return Load(buffers[value.buffer.name], _rewrite_index(value.index, dropped, buffers))
    if isinstance(value, Call):
        return replace(value, args=tuple(_rewrite_value(arg, dropped, buffers) for arg in value.args))
    return value
