"""What a draw shows of a kernel's operators: which of their sides its elements take, and how much of the results is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.scalar_rules import PREDICATES
from kernelgen.composite.vocabulary import ADD_N, FAST_GELU, SQUARE
from kernelgen.enclosure.interval import Array, Interval
from kernelgen.enclosure.rounding import UNIT
from kernelgen.tensor.graph import Node, Value
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


def shown(desc: KernelDesc, values: Mapping[Value, Interval]) -> Shown:
    """What the values of all tensors show."""
    results = [value for value in desc.graph.outputs if value.constant is None]
    known = [_known(values[value], UNIT.get(value.dtype, 0.0)) for value in results]
    goals: set[Goal] = set()
    missing: set[Goal] = set()
    lost: list[int] = []
    for place, node in enumerate(desc.operators):
        operands = [values[value].low if value.constant is None else value.constant for value in node.args]
        for goal, reached in _goals(node, operands):
            (goals if np.any(reached) else missing).add((place, goal))
        if node.outs and _is_lost(node, values):
            lost.append(place)
    return Shown(float(np.mean(known)) if known else 1.0, frozenset(goals), frozenset(missing), tuple(lost))


def _known(value: Interval, unit: float) -> float:
    if value.low.dtype.kind != "f" or not value.low.size:
        return 1.0
    with np.errstate(invalid="ignore"):
        width, size = value.high - value.low, value.magnitude
    return float(np.mean(np.isfinite(width) & (width <= max(SURE_WIDTH, 8 * unit) * size) & (size > 0)))


def _is_lost(node: Node, values: Mapping[Value, Interval]) -> bool:
    """Whether finite operands give no finite result."""
    found = values[node.outs[0]]
    if found.low.dtype.kind != "f" or np.isfinite(found.low).all() & np.isfinite(found.high).all():
        return False
    return all(value.constant is not None or _is_finite(values[value]) for value in node.args)


def _is_finite(value: Interval) -> bool:
    return value.low.dtype.kind != "f" or bool(np.isfinite(value.low).all() and np.isfinite(value.high).all())


def _goals(node: Node, x: Sequence[Array]) -> Iterator[tuple[str, Array]]:
    with np.errstate(all="ignore"):
        if node.op in PREDICATES and len(x) == 2 and node.op not in LOGICAL:
            yield from (("less", x[0] < x[1]), ("equal", x[0] == x[1]), ("greater", x[0] > x[1]))
        elif node.op in (basic.MAXIMUM, basic.MINIMUM):
            yield from (("first", x[0] < x[1]), ("second", x[0] > x[1]))
        elif node.op is basic.SELECT:
            yield from (("first", (x[0] != 0) & (x[1] != x[2])), ("second", (x[0] == 0) & (x[1] != x[2])))
        elif node.op in LOGICAL:
            truths = [each != 0 for each in x]
            yield from (("true", truths[0] & truths[-1]), ("false", ~(truths[0] | truths[-1])))
            yield from (("first", truths[0] & ~truths[-1]), ("second", ~truths[0] & truths[-1]))
        elif node.op in SUMS:
            yield from (("first counts", _counts(x[0], x[-1])), ("last counts", _counts(x[-1], x[0])))
        elif node.op in SIGNED:
            yield from (("negative", x[0] < 0), ("positive", x[0] > 0), ("zero", x[0] == 0))
        elif node.op in (basic.REDUCE_MAX, basic.REDUCE_MIN):
            yield ("varied", x[0] != x[0].reshape(-1)[:1].reshape((1,) * x[0].ndim) if x[0].size else np.zeros(1, bool))


SIGNED = frozenset(
    {
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
    }
)
"""Operators that treat negative numbers in a way of their own."""
LOGICAL = frozenset({basic.LOGICAL_AND, basic.LOGICAL_OR, basic.LOGICAL_NOT})
SUMS = frozenset({basic.ADD, basic.SUB, ADD_N})


def _counts(one: Array, other: Array) -> Array:
    """Where a summand changes the sum."""
    return np.abs(one) > 2.0**-12 * np.abs(other)
