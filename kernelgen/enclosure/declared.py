"""Operators that are declared elsewhere: the range of their rule, which their numpy meaning must lie in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelgen.composite.scalar_rules import OPERATOR_OF, constant, operand_dtypes, scalar_rule
from kernelgen.enclosure.arithmetic import square
from kernelgen.enclosure.conversions import converted
from kernelgen.enclosure.interval import Array, Interval
from kernelgen.enclosure.table import RULES
from kernelgen.errors import DescError, UnsupportedError
from kernelgen.nest.scalars import SCALARS, Result
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dtypes import BOOL, FLOAT64, DType
from kernelgen.tensor.operator import Application, Applied
from kernelgen.tensor.types import TensorType

SLACK = 2.0**-40
"""Relative: how far the meaning in float64 may be off, for its own roundings."""


@dataclass(frozen=True, eq=False)
class Ranged:
    """A range and the data type that it was computed in."""

    value: Interval
    kind: DType


class IntervalAlgebra:
    """An :class:`~kernelgen.tensor.algebra.Algebra` of ranges: each function has that of the operator of its name."""

    def call(self, function: str, *args: Ranged | float) -> Ranged:
        """The range of a scalar function. Raises UnsupportedError for one that has none."""
        op = OPERATOR_OF.get(function)
        if op is None or op not in RULES:
            raise UnsupportedError("unsupported-op", f"the function {function!r} of a rule has no error bound")
        kinds = operand_dtypes(function, tuple(arg.kind if isinstance(arg, Ranged) else None for arg in args))
        given = [self._operand(arg, kind).value for arg, kind in zip(args, kinds, strict=True)]
        kind = BOOL if SCALARS[function].result is Result.BOOL else kinds[-1]
        if function == "mul" and args[0] is args[1] and kind.is_float:
            return Ranged(square(given[0], kind), kind)
        types = tuple(TensorType(x.low.shape, of) for x, of in zip(given, kinds, strict=True))
        found = RULES[op](given, Applied(op, types, (TensorType((), kind),), Attrs()))
        assert isinstance(found, Interval), "a scalar function has one result"
        return Ranged(found, kind)

    def cast(self, value: Ranged, target: DType) -> Ranged:
        """The range in another data type."""
        return Ranged(converted(value.value, target, value.kind != target), target)

    def literal(self, value: float, target: DType) -> Ranged:
        """A constant of rank 0."""
        wide = np.float64 if target.is_float else target.numpy
        return Ranged(Interval.exact(np.asarray(np.asarray(constant(value, target), target.numpy), wide)), target)

    def dtype(self, value: Ranged) -> DType:
        """The data type of a range."""
        return value.kind

    def _operand(self, value: Ranged | float, target: DType) -> Ranged:
        return self.cast(value, target) if isinstance(value, Ranged) else self.literal(value, target)


def by_scalar_rule(node: Application, operands: Sequence[Interval]) -> Interval:
    """The range of the operator's rule on ranges of its operands, of the result's data type.

    Raises DescError where the numpy meaning, on operands that are known, is no part of it: then one of both is wrong.
    """
    rule, algebra = scalar_rule(node), IntervalAlgebra()
    assert rule is not None, f"{node.op.name} has a rule: the caller asked"
    given = [Ranged(x, tensor.dtype) for x, tensor in zip(operands, node.args, strict=True)]
    found = algebra.cast(rule(algebra, given, node), node.out.dtype).value
    if all(x.is_exact for x in operands):
        _check_meaning(node, [x.low for x in operands], found)
    return found


def _check_meaning(node: Application, operands: Sequence[Array], found: Interval) -> None:
    wide = [
        x.astype(FLOAT64.numpy) if tensor.dtype.is_float else x for x, tensor in zip(operands, node.args, strict=True)
    ]
    meant = np.asarray(node.op.meaning(*wide, attrs=node.attrs))
    slack = SLACK * np.abs(meant) if node.out.dtype.is_float else 0
    with np.errstate(invalid="ignore"):
        outside = ~((meant + slack >= found.low) & (meant - slack <= found.high))
        outside &= np.isfinite(found.low) & np.isfinite(
            found.high
        )  # elsewhere the rule left what its data type can hold
    if outside.any():
        place = int(np.flatnonzero(np.broadcast_to(outside, meant.shape))[0])
        numbers = [np.broadcast_to(x, meant.shape).reshape(-1)[place].item() for x in operands]
        low, high = (np.broadcast_to(bound, meant.shape).reshape(-1)[place].item() for bound in (found.low, found.high))
        means = f"{meant.reshape(-1)[place].item()} by its numpy meaning, {low} to {high} by its rule"
        raise DescError(f"{node.op.name} of {numbers} is {means}")
