"""What is known of the values of a tensor: an interval, and whether NaN is among them.

Found from constants, data types and operators, operands before users: ``Exp`` gives nothing negative, ``Tanh`` nothing
beyond 1, ``Maximum(x, 1)`` nothing below 1. Rules that need a fact ask here whether it is proved. Bounds are widened after
every operator by more than any data type rounds, so that they hold for what is computed, not only for real numbers.
Source: interval analysis (Moore, Interval Analysis, 1966).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import ml_dtypes
import numpy as np

from graphkernel.ops.composite.activation import RELU, SIGMOID, SQUARE
from graphkernel.ops.composite.normalize import SOFTMAX
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import elemwise
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.pieces import CONCAT, SLICE, STRIDED_SLICE
from kernelgen.tensor.operators.reduce import REDUCE_MAX, REDUCE_MIN, REDUCE_SUM
from kernelgen.tensor.operators.select import SELECT
from kernelgen.tensor.operators.shape import BROADCAST_TO, EXPAND_DIMS, FLATTEN, RESHAPE, SQUEEZE, TILE, TRANSPOSE
from kernelgen.tensor.types import DType, dtype

INFINITY = math.inf
SLACK = 2.0**-6  # bfloat16 rounds by 2**-9; reductions and approximations add some


@dataclass(frozen=True)
class Range:
    """Values from ``low`` to ``high``, both included, infinities too; and NaN where ``nan``."""

    low: float = -INFINITY
    high: float = INFINITY
    nan: bool = True

    def __contains__(self, other: Range) -> bool:
        return self.low <= other.low and other.high <= self.high and (self.nan or not other.nan)

    def __or__(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high), self.nan or other.nan)

    @property
    def is_finite(self) -> bool:
        """True when no infinity and no NaN is among the values."""
        return not self.nan and math.isfinite(self.low) and math.isfinite(self.high)


ANYTHING = Range()
NON_NEGATIVE = Range(0.0)
POSITIVE = Range(5e-324)
NO_NAN = Range(nan=False)
EXACT = Range(-(2.0**53), 2.0**53, nan=False)
"""Whole numbers whose bounds are no roundings of them: beyond, a sum may wrap around unseen."""


def bounded(low: float, high: float) -> Range:
    """Finite values, no NaN."""
    return Range(low, high, nan=False)


@dataclass
class Ranges:
    """The ranges of values, found when asked for and kept."""

    _known: dict[Value, Range] = field(default_factory=dict[Value, Range])

    def of(self, value: Value) -> Range:
        """The range of a value; operands first, without recursion, so that long chains are fine."""
        stack = [value]
        while stack:
            top = stack[-1]
            missing = [arg for arg in top.node.args if arg not in self._known] if top not in self._known else []
            if missing:
                stack.extend(missing)
            else:
                self._known.setdefault(top, self._found(top)) if top not in self._known else None
                stack.pop()
        return self._known[value]

    def _found(self, value: Value) -> Range:
        if value.constant is not None:
            found, of = _of_array(value.constant), value.type.dtype
            return found if of.is_float else _in_dtype(found, of)
        transfer = TRANSFERS.get(value.op)
        operands = [self._known[arg] for arg in value.node.args]
        raw = transfer(value.node, operands) if transfer is not None else ANYTHING
        return _in_dtype(raw, value.type.dtype)


def _of_array(array: np.ndarray) -> Range:
    wide = array.astype(np.float64) if array.dtype.kind != "c" else np.full(array.shape, np.nan)
    if wide.size == 0:
        return bounded(0.0, 0.0)
    nan = np.isnan(wide)
    rest = wide[~nan]
    return Range(float(rest.min()), float(rest.max()), bool(nan.any())) if rest.size else ANYTHING


def _in_dtype(found: Range, of: DType) -> Range:
    """Widened by rounding, overflow and underflow for floats; integers that may wrap around can be anything."""
    if not of.is_float:
        limits, exact = _limits(of), replace(found, nan=False)
        return exact if exact in limits and exact in EXACT else limits
    greatest, smallest = float(ml_dtypes.finfo(of.numpy).max), float(ml_dtypes.finfo(of.numpy).smallest_normal)
    low, high = _outward(found.low, -1), _outward(found.high, 1)
    low = 0.0 if 0 < low < smallest else low
    high = 0.0 if -smallest < high < 0 else high
    return Range(-INFINITY if low < -greatest else low, INFINITY if high > greatest else high, found.nan)


def _limits(of: DType) -> Range:
    if of.name == "bool":
        return bounded(0.0, 1.0)
    if of.is_integer:
        info = np.iinfo(of.numpy)
        return bounded(float(info.min), float(info.max))
    return ANYTHING


def _outward(bound: float, direction: int) -> float:
    """A bound moved outward by the slack; zero stays, since rounding does not change signs."""
    return bound + direction * abs(bound) * SLACK if math.isfinite(bound) else bound


Transfer = Callable[[Node, Sequence[Range]], Range]


def _same(node: Node, operands: Sequence[Range]) -> Range:
    return operands[0]


def _union(node: Node, operands: Sequence[Range]) -> Range:
    found = operands[0]
    for other in operands[1:]:
        found = found | other
    return found


def _selected(node: Node, operands: Sequence[Range]) -> Range:
    return operands[1] | operands[2]


def _fixed(low: float, high: float, *, nan_of_infinity: bool = False) -> Transfer:
    """A function with values between two bounds; NaN gives NaN, infinities perhaps too."""

    def transfer(node: Node, operands: Sequence[Range]) -> Range:
        nan = any(x.nan or (nan_of_infinity and not x.is_finite) for x in operands)
        return Range(low, high, nan)

    return transfer


def _monotone(function: Callable[[float], float], lowest: float = -INFINITY) -> Transfer:
    """An increasing function, NaN below ``lowest``."""

    def transfer(node: Node, operands: Sequence[Range]) -> Range:
        (x,) = operands
        if x.high < lowest:
            return ANYTHING
        return Range(_value(function, max(x.low, lowest)), _value(function, x.high), x.nan or x.low < lowest)

    return transfer


def _value(function: Callable[[float], float], at: float) -> float:
    with np.errstate(all="ignore"):
        return float(function(np.float64(at)))


def _negated(node: Node, operands: Sequence[Range]) -> Range:
    (x,) = operands
    return Range(-x.high, -x.low, x.nan)


def _absolute(node: Node, operands: Sequence[Range]) -> Range:
    (x,) = operands
    low = 0.0 if x.low <= 0 <= x.high else min(abs(x.low), abs(x.high))
    return Range(low, max(abs(x.low), abs(x.high)), x.nan)


def _sum(x: Range, y: Range) -> Range:
    cancels = (x.high == INFINITY and y.low == -INFINITY) or (x.low == -INFINITY and y.high == INFINITY)
    low, high = _or(x.low + y.low, -INFINITY), _or(x.high + y.high, INFINITY)
    return Range(low, high, x.nan or y.nan or cancels)


def _or(bound: float, otherwise: float) -> float:
    return otherwise if math.isnan(bound) else bound


def _added(node: Node, operands: Sequence[Range]) -> Range:
    return _sum(*operands)


def _subtracted(node: Node, operands: Sequence[Range]) -> Range:
    x, y = operands
    return _sum(x, Range(-y.high, -y.low, y.nan))


def _product(node: Node, operands: Sequence[Range]) -> Range:
    x, y = operands
    if node.args[0] == node.args[1]:
        return _squared(node, (x,))
    corners = [_or(a * b, 0.0) for a in (x.low, x.high) for b in (y.low, y.high)]
    infinite_by_zero = (_is_infinite(x) and _has_zero(y)) or (_is_infinite(y) and _has_zero(x))
    return Range(min(corners), max(corners), x.nan or y.nan or infinite_by_zero)


def _squared(node: Node, operands: Sequence[Range]) -> Range:
    (x,) = operands
    low = 0.0 if _has_zero(x) else min(abs(x.low), abs(x.high)) ** 2
    return Range(low, max(abs(x.low), abs(x.high)) ** 2, x.nan)


def _is_infinite(x: Range) -> bool:
    return math.isinf(x.low) or math.isinf(x.high)


def _has_zero(x: Range) -> bool:
    return x.low <= 0 <= x.high


def _reciprocal_of(x: Range) -> Range:
    if x.low > 0 or x.high < 0:
        return Range(1 / x.high, 1 / x.low, x.nan)
    return Range(nan=x.nan)  # a zero of either sign gives an infinity of either sign


def _reciprocal(node: Node, operands: Sequence[Range]) -> Range:
    return _reciprocal_of(operands[0])


def _quotient(node: Node, operands: Sequence[Range]) -> Range:
    x, y = operands
    if _has_zero(y):
        return ANYTHING
    inverse = _reciprocal_of(y)
    corners = [_or(a * b, 0.0) for a in (x.low, x.high) for b in (inverse.low, inverse.high)]
    return Range(min(corners), max(corners), x.nan or y.nan or (_is_infinite(x) and _is_infinite(y)))


def _rsqrt(node: Node, operands: Sequence[Range]) -> Range:
    (x,) = operands
    if x.low <= 0:
        return Range(nan=x.nan or x.low < 0)
    return Range(1 / math.sqrt(x.high), 1 / math.sqrt(x.low), x.nan)


def _greater_of(node: Node, operands: Sequence[Range]) -> Range:
    x, y = operands
    return Range(max(x.low, y.low), max(x.high, y.high), x.nan or y.nan)


def _smaller_of(node: Node, operands: Sequence[Range]) -> Range:
    x, y = operands
    return Range(min(x.low, y.low), min(x.high, y.high), x.nan or y.nan)


def _total(node: Node, operands: Sequence[Range]) -> Range:
    """A sum over a known number of elements; over an unknown number only the sign is known."""
    (x,) = operands
    size, kept = node.args[0].type.size, node.types[0].size
    count = size / kept if isinstance(size, int) and isinstance(kept, int) and kept else INFINITY
    low, high = (_or(bound * count, 0.0) for bound in (min(x.low, 0.0), max(x.high, 0.0)))
    cancels = x.low == -INFINITY and x.high == INFINITY
    return Range(low, high, x.nan or cancels or (low == -INFINITY and high == INFINITY))


def _cast(node: Node, operands: Sequence[Range]) -> Range:
    (x,) = operands
    to = dtype(node.attrs.str("dst_type"))
    if to.is_float:
        return x
    return Range(math.floor(x.low), math.ceil(x.high), nan=False) if x.is_finite else ANYTHING


TRANSFERS: Mapping[Operator, Transfer] = {
    **dict.fromkeys((RESHAPE, TRANSPOSE, BROADCAST_TO, TILE, EXPAND_DIMS, SQUEEZE, FLATTEN), _same),
    **dict.fromkeys((REDUCE_MAX, REDUCE_MIN, STRIDED_SLICE, SLICE, elemwise.TENSOR_MOVE), _same),
    **dict.fromkeys((elemwise.SIN, elemwise.COS), _fixed(-1.0, 1.0, nan_of_infinity=True)),
    **dict.fromkeys((elemwise.TANH, elemwise.ERF, elemwise.SIGN), _fixed(-1.0, 1.0)),
    elemwise.ABS: _absolute,
    elemwise.ADD: _added,
    CAST: _cast,
    CONCAT: _union,
    elemwise.EXP: _monotone(np.exp),
    elemwise.LOG: _monotone(np.log, 0.0),
    elemwise.LOG1P: _monotone(np.log1p, -1.0),
    elemwise.ERFC: _fixed(0.0, 2.0),
    elemwise.EXPM1: _monotone(np.expm1),
    elemwise.MAXIMUM: _greater_of,
    elemwise.MINIMUM: _smaller_of,
    elemwise.MUL: _product,
    elemwise.NEG: _negated,
    elemwise.REAL_DIV: _quotient,
    RELU: _monotone(lambda x: max(x, 0.0)),
    elemwise.RECIPROCAL: _reciprocal,
    REDUCE_SUM: _total,
    elemwise.RSQRT: _rsqrt,
    SELECT: _selected,
    SIGMOID: _fixed(0.0, 1.0),
    SOFTMAX: _fixed(0.0, 1.0, nan_of_infinity=True),
    elemwise.SQRT: _monotone(np.sqrt, 0.0),
    SQUARE: _squared,
    elemwise.SUB: _subtracted,
}
"""How each operator maps ranges; an operator that is not here may give anything."""
