"""Folds dims that always run together: fewer loops, longer vectors, smaller sets for isl.

    for i < 4, j < 8: y[i, j] = f(x[i, j])      ->      for i < 32: y[i] = f(x[i])

Axes ``a, b`` fold when, in every buffer, each ``a`` is directly followed by ``b`` and each ``b`` directly preceded by
``a``: then ``a * extent(b) + b`` addresses the same elements in the same row-major order everywhere. Numbers that a body
counts must be functions of it too, as those of random numbers are. An axis that takes part in a computed index (div, mod)
or occurs twice in one buffer keeps its own loop.
Source: AKG's dimension folding and axis fusion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelgen.nest.index import map_values, substitute, to_dim, variables
from kernelgen.nest.nodes import Buffer, Call, Expr, Index, IndexValue, Let, Load, Num, Var
from kernelgen.nest.walk import subexpressions
from kernelgen.poly.model.equal_axes import AxisClasses, Place, axis_classes
from kernelgen.poly.model.scop import BodyStatement, Iterator, Scop, Statement
from kernelgen.tensor.dims import Dim, product, sym
from kernelgen.tensor.dims import substitute as in_dim


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
        return product(extents[one] for one in self.chain(axis))

    def chain(self, axis: Place) -> list[Place]:
        """An axis and all that folds into it."""
        chain = [axis]
        while chain[-1] in self.followers:
            chain.append(self.followers[chain[-1]])
        return chain


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
    joint = {
        axis: follower
        for axis, follower in pairs.items()
        if runs.get(axis) == runs.get(follower) and all(count == 1 for count in runs.get(axis, {}).values())
    }
    alone = _counted_alone(scop, classes, joint)
    return {axis: follower for axis, follower in joint.items() if axis not in alone}


def _counted_alone(scop: Scop, classes: AxisClasses, joint: Mapping[Place, Place]) -> set[Place]:
    """The axes along which some number moves in another way than along a row of them and what follows them in ``joint``."""
    alone: set[Place] = set()
    for statement in scop.statements:
        counted = _counted(statement)
        at = dict(zip(classes.axes_of(statement), statement.iterators, strict=True)) if counted else {}
        for axis in at.keys() & joint.keys():
            if not all(_counts_both(number, at[axis], at[joint[axis]]) for number in counted):
                alone.add(axis)
    return alone


def _counted(statement: Statement) -> list[Index]:
    """The numbers of points that are values of the body."""
    parts = (each for part in statement.body for each in subexpressions(part.value))
    return [part.index for part in parts if isinstance(part, IndexValue)]


def _counts_both(number: Index, outer: Iterator, inner: Iterator) -> bool:
    """Whether a number is a function of ``outer * extent(inner) + inner``, if it moves along either."""
    if not variables(number) & {outer.name, inner.name}:
        return True
    found = to_dim(number)
    both = sym(outer.name) * inner.extent + sym(inner.name)
    return found is not None and in_dim(found, {outer.name: 0, inner.name: both}) == found


def _iterations(scop: Scop, classes: AxisClasses) -> dict[Place, Counter[str]]:
    """For each axis, how often every statement that iterates over it does so."""
    runs: dict[Place, Counter[str]] = {}
    for statement in scop.statements:
        for axis in classes.axes_of(statement):
            runs.setdefault(axis, Counter())[statement.name] += 1
    return runs


def _axes_of(buffer: Buffer, classes: AxisClasses) -> list[Place]:
    return [classes.find(("buffer", buffer.name, dim)) for dim in range(len(buffer.shape))]


def _fold_buffer(buffer: Buffer, plan: _Plan) -> Buffer:
    axes = _axes_of(buffer, plan.classes)
    extents = dict(zip(axes, buffer.shape, strict=True))
    return replace(buffer, shape=tuple(plan.extent(axis, extents) for axis in axes if axis not in plan.inner))


def _fold_statement(statement: Statement, plan: _Plan, buffers: dict[str, Buffer]) -> Statement:
    axes = plan.classes.axes_of(statement)
    extents = {axis: it.extent for axis, it in zip(axes, statement.iterators, strict=True)}
    names = {axis: it.name for axis, it in zip(axes, statement.iterators, strict=True)}
    dropped = frozenset(name for axis, name in names.items() if axis in plan.inner)
    renamed = _Renamed(buffers, dropped, _numbers(names, plan))
    iterators = tuple(
        Iterator(it.name, plan.extent(axis, extents))
        for axis, it in zip(axes, statement.iterators, strict=True)
        if axis not in plan.inner
    )
    body = tuple(_rewrite(part, renamed) for part in statement.body)
    return replace(statement, iterators=iterators, body=body)


@dataclass(frozen=True)
class _Renamed:
    """What stands for buffers, the iterators that are gone, and what stands for iterators in numbers."""

    buffers: Mapping[str, Buffer]
    dropped: frozenset[str]
    numbers: Mapping[str, Index]


def _numbers(names: Mapping[Place, str], plan: _Plan) -> dict[str, Index]:
    """``a, b, c`` that fold into ``a``: 0, 0, a."""
    numbers: dict[str, Index] = {}
    for axis, name in names.items():
        if axis in plan.followers and axis not in plan.inner:
            chain = plan.chain(axis)
            numbers |= {names[each]: Num(0) for each in chain[:-1]} | {names[chain[-1]]: Var(name)}
    return numbers


def _rewrite(part: BodyStatement, renamed: _Renamed) -> BodyStatement:
    value = _rewrite_value(part.value, renamed)
    if isinstance(part, Let):
        return replace(part, value=value)
    return replace(
        part, buffer=renamed.buffers[part.buffer.name], index=_rewrite_index(part.index, renamed), value=value
    )


def _rewrite_index(index: tuple[Index, ...], renamed: _Renamed) -> tuple[Index, ...]:
    """Of a run the outermost iterator is left."""
    kept = (i for i in index if not (isinstance(i, Var) and i.name in renamed.dropped))
    return tuple(map_values(i, lambda value: _rewrite_value(value, renamed)) for i in kept)


def _rewrite_value(value: Expr, renamed: _Renamed) -> Expr:
    if isinstance(value, Load):
        return Load(renamed.buffers[value.buffer.name], _rewrite_index(value.index, renamed))
    if isinstance(value, IndexValue):
        return replace(value, index=substitute(value.index, renamed.numbers))
    if isinstance(value, Call):
        return replace(value, args=tuple(_rewrite_value(arg, renamed) for arg in value.args))
    return value
