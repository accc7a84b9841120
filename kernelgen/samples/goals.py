"""What a draw shows of a kernel's operators: which of their sides its elements take, and how much of the results is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelgen.composite.description import KernelDesc, OpDesc
from kernelgen.composite.scalar_rules import PREDICATES
from kernelgen.composite.vocabulary import ADD_N, FAST_GELU, SQUARE, names_of
from kernelgen.enclosure.interval import Array, Interval
from kernelgen.enclosure.rounding import UNIT
from kernelgen.tensor.operators import catalogue as basic

Goal = tuple[int, str]
"""An operator by its place, and what it may do."""

SURE_WIDTH = 2.0**-12
"""Relative; a wider range says little. Half precision has eight units in the last place."""


@dataclass(frozen=True)
class Shown:
    """``known`` is the share of results that are finite numbers in narrow ranges, ``missing`` what no element did, ``lost``
    the operators that leave the domain of their operands, by place."""

    known: float
    goals: frozenset[Goal]
    missing: frozenset[Goal]
    lost: tuple[int, ...]


def shown(desc: KernelDesc, values: Mapping[str, Interval]) -> Shown:
    """What the values of all tensors show."""
    results = [*desc.outputs, *(desc.inputs[i] for i in desc.updated_inputs)]
    known = [_known(values[t.name], UNIT.get(t.dtype, 0.0)) for t in results]
    goals: set[Goal] = set()
    missing: set[Goal] = set()
    lost: list[int] = []
    for place, op in enumerate(desc.ops):
        operands = [values[t.name].low if t.value is None else np.asarray(t.value, t.dtype.numpy) for t in op.inputs]
        for goal, reached in _goals(op, operands):
            (goals if np.any(reached) else missing).add((place, goal))
        if op.outputs and _is_lost(op, values):
            lost.append(place)
    return Shown(float(np.mean(known)) if known else 1.0, frozenset(goals), frozenset(missing), tuple(lost))


def _known(value: Interval, unit: float) -> float:
    if value.low.dtype.kind != "f" or not value.low.size:
        return 1.0
    with np.errstate(invalid="ignore"):
        width, size = value.high - value.low, value.magnitude
    return float(np.mean(np.isfinite(width) & (width <= max(SURE_WIDTH, 8 * unit) * size) & (size > 0)))


def _is_lost(op: OpDesc, values: Mapping[str, Interval]) -> bool:
    """Whether finite operands give no finite result."""
    found = values[op.outputs[0].name]
    if found.low.dtype.kind != "f" or np.isfinite(found.low).all() & np.isfinite(found.high).all():
        return False
    return all(t.value is not None or _is_finite(values[t.name]) for t in op.inputs)


def _is_finite(value: Interval) -> bool:
    return value.low.dtype.kind != "f" or bool(np.isfinite(value.low).all() and np.isfinite(value.high).all())


def _goals(op: OpDesc, x: Sequence[Array]) -> Iterator[tuple[str, Array]]:
    with np.errstate(all="ignore"):
        if op.name in PREDICATES and len(x) == 2 and op.name not in LOGICAL:
            yield from (("less", x[0] < x[1]), ("equal", x[0] == x[1]), ("greater", x[0] > x[1]))
        elif op.name in (basic.MAXIMUM.name, basic.MINIMUM.name):
            yield from (("first", x[0] < x[1]), ("second", x[0] > x[1]))
        elif op.name == basic.SELECT.name:
            yield from (("first", (x[0] != 0) & (x[1] != x[2])), ("second", (x[0] == 0) & (x[1] != x[2])))
        elif op.name in LOGICAL:
            truths = [each != 0 for each in x]
            yield from (("true", truths[0] & truths[-1]), ("false", ~(truths[0] | truths[-1])))
            yield from (("first", truths[0] & ~truths[-1]), ("second", ~truths[0] & truths[-1]))
        elif op.name in SUMS:
            yield from (("first counts", _counts(x[0], x[-1])), ("last counts", _counts(x[-1], x[0])))
        elif op.name in SIGNED:
            yield from (("negative", x[0] < 0), ("positive", x[0] > 0), ("zero", x[0] == 0))
        elif op.name in (basic.REDUCE_MAX.name, basic.REDUCE_MIN.name):
            yield ("varied", x[0] != x[0].reshape(-1)[:1].reshape((1,) * x[0].ndim) if x[0].size else np.zeros(1, bool))


SIGNED = names_of(
    basic.ABS,
    basic.SIGN,
    basic.NEG,
    basic.EXP,
    basic.TANH,
    basic.FLOOR,
    basic.CEIL,
    basic.ROUND,
    basic.TRUNC,
    basic.CAST,
    basic.ERF,
    SQUARE,
    FAST_GELU,
)
"""Operators that treat negative numbers in a way of their own."""
LOGICAL = names_of(basic.LOGICAL_AND, basic.LOGICAL_OR, basic.LOGICAL_NOT)
SUMS = names_of(basic.ADD, basic.SUB, ADD_N)


def _counts(one: Array, other: Array) -> Array:
    """Where a summand changes the sum."""
    return np.abs(one) > 2.0**-12 * np.abs(other)
