"""Folds dims that always run together: fewer loops, longer vectors, smaller sets for isl.

    for i < 4, j < 8: y[i, j] = f(x[i, j])      ->      for i < 32: y[i] = f(x[i])

Axes ``a, b`` fold when, in every buffer, each ``a`` is directly followed by ``b`` and each ``b`` directly preceded by
``a``: then ``a * extent(b) + b`` addresses the same elements in the same row-major order everywhere. An axis that takes
part in a computed index (div, mod) or occurs twice in one buffer keeps its own loop.
Source: AKG's dimension folding and axis fusion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelgen.nest.index import map_values
from kernelgen.nest.nodes import Buffer, Call, Expr, Index, Let, Load, Var
from kernelgen.poly.model.equal_axes import AxisClasses, Place, axis_classes
from kernelgen.poly.model.scop import BodyStatement, Iterator, Scop, Statement
from kernelgen.tensor.dims import Dim, product


def fold(scop: Scop) -> Scop:
    """The scop with as few axes as possible; the same object when none folds."""
    classes = axis_classes(scop)
    followers = _followers(scop, classes)
    if not followers:
        return scop
    plan = _Plan(classes, followers, frozenset(followers.values()))
    buffers = {buffer.name: _fold_buffer(buffer, plan) for buffer in scop.buffers}
    statements = tuple(_fold_statement(statement, plan, buffers) for statement in scop.statements)
    return replace(scop, buffers=tuple(buffers.values()), statements=statements)


@dataclass(frozen=True)
class _Plan:
    """``followers`` gives the axis that folds into an axis, ``inner`` are those that disappear this way."""

    classes: AxisClasses
    followers: Mapping[Place, Place]
    inner: frozenset[Place]

    def extent(self, axis: Place, extents: Mapping[Place, Dim]) -> Dim:
        """The extent of an axis with all that folds into it."""
        chain = [axis]
        while chain[-1] in self.followers:
            chain.append(self.followers[chain[-1]])
        return product(extents[one] for one in chain)


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
    runs = _iterations(scop, classes)
    return {
        axis: follower
        for axis, follower in pairs.items()
        if runs.get(axis) == runs.get(follower) and all(count == 1 for count in runs.get(axis, {}).values())
    }


def _iterations(scop: Scop, classes: AxisClasses) -> dict[Place, Counter[str]]:
    """For each axis, how often every statement that iterates over it does so."""
    runs: dict[Place, Counter[str]] = {}
    for statement in scop.statements:
        for k in range(len(statement.iterators)):
            runs.setdefault(classes.find(("statement", statement.name, k)), Counter())[statement.name] += 1
    return runs


def _axes_of(buffer: Buffer, classes: AxisClasses) -> list[Place]:
    return [classes.find(("buffer", buffer.name, dim)) for dim in range(len(buffer.shape))]


def _fold_buffer(buffer: Buffer, plan: _Plan) -> Buffer:
    axes = _axes_of(buffer, plan.classes)
    extents = dict(zip(axes, buffer.shape, strict=True))
    return replace(buffer, shape=tuple(plan.extent(axis, extents) for axis in axes if axis not in plan.inner))


def _fold_statement(statement: Statement, plan: _Plan, buffers: dict[str, Buffer]) -> Statement:
    axes = [plan.classes.find(("statement", statement.name, k)) for k in range(len(statement.iterators))]
    extents = {axis: it.extent for axis, it in zip(axes, statement.iterators, strict=True)}
    dropped = {it.name for axis, it in zip(axes, statement.iterators, strict=True) if axis in plan.inner}
    iterators = tuple(
        Iterator(it.name, plan.extent(axis, extents))
        for axis, it in zip(axes, statement.iterators, strict=True)
        if axis not in plan.inner
    )
    body = tuple(_rewrite(part, dropped, buffers) for part in statement.body)
    return replace(statement, iterators=iterators, body=body)


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
