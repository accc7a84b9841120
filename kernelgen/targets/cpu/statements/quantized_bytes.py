"""Floats that are rounded, moved by a zero point and kept within the bounds of a byte, as quantizers write it.

    cast(min(max(round(x) + z, low), high))    ->    lrint(min(max(x, low - z), high - z)) + z

Bounds come first, so that one instruction rounds and converts; what reads the byte as a wider number takes the word as it is.

Why both are equal. ``low``, ``high`` and ``z`` are small integers, so that ``round(x) + z`` is exact where it lies between the
bounds, and beyond them it stays there; rounding is monotone and keeps integers, so that it may follow the bounds. NaN becomes
the byte 0 by either: as the lower bound where that is 0, else it is looked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelgen.nest.nodes import Call, Expr, Literal, Ref
from kernelgen.targets.cpu.text.scope import Frame
from kernelgen.targets.cpu.text.values import Value
from kernelgen.tensor.dtypes import FLOAT32, INT8, UINT8

MOST = 1 << 20
"""Of zero points: with these, floats hold all integers between the bounds of a byte."""


@dataclass(frozen=True)
class QuantizedByte:
    """What makes a byte: ``number`` is rounded next, and moved by ``zero``; it stays from ``low`` to ``high``."""

    number: Expr
    zero: int
    low: int
    high: int

    def word(self, number: Value) -> Value:
        """The byte as an int32, of the ``number`` that is not rounded yet."""
        low, high = (number.like(float(bound - self.zero)) for bound in (self.low, self.high))
        above = number.compare("ogt", low).select(number, low)  # the second one where the first is no number
        whole = high.compare("olt", above).select(high, above).nearest()
        moved = whole + self.zero if self.zero else whole
        return number.compare("ord", number).select(moved, 0) if self.low else moved


def quantized_byte(frame: Frame, cast: Call) -> QuantizedByte | None:
    """How a ``cast`` in ``frame`` makes a byte; None where it is no such."""
    if cast.dtype not in (INT8, UINT8) or cast.args[0].dtype != FLOAT32:
        return None
    below = _with_number(frame, cast.args[0], "minimum")
    above = below and _with_number(frame, below[0], "maximum")
    if not below or not above:
        return None
    (_, high), (shifted, low) = below, above
    moved = _with_number(frame, shifted, "add")
    number, zero = moved or (shifted, 0)
    rounded = frame.call_of(number)
    held = np.iinfo(cast.dtype.numpy)
    if rounded is None or rounded.function != "round" or not held.min <= low <= high <= held.max:
        return None
    is_bound = any(isinstance(part, Ref) for part in (cast.args[0], below[0], shifted, number))
    if is_bound and rounded.args[0].loads:
        return None  # what was loaded for a binding may have changed since
    return QuantizedByte(rounded.args[0], zero, low, high)


def _with_number(frame: Frame, expr: Expr, function: str) -> tuple[Expr, int] | None:
    """The operand, and the known integer, of which the ``function`` makes ``expr``; None for others."""
    call = frame.call_of(expr)
    if call is None or call.function != function:
        return None
    for operand, number in (call.args, call.args[::-1]):
        if isinstance(number, Literal) and abs(number.value) <= MOST and number.value == int(number.value):
            return operand, int(number.value)
    return None
