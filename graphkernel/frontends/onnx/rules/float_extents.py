"""Extents that go through floats: ``Shape -> Cast -> Mul -> Floor -> Cast`` is how exporters say "half as high".

Only fractions of few bits are followed, such as 2, 0.5 or 1.25: products with them are exact in float32, so that rounding
them is a division of whole numbers. For other factors the rounding of the product counts, and nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphkernel.frontends.onnx.types.derived_extents import DerivedExtents
from kernelgen.tensor.types import Dim, Sym

MOST_NUMERATOR = 15
MOST_DIVISOR = 64

Content = np.ndarray[Any, Any]
"""What is known of a small tensor, as objects."""


@dataclass(frozen=True)
class Fraction:
    """``dim / divisor``; the divisor is a power of two."""

    dim: Dim
    divisor: int


def has_fractions(content: Content | None) -> bool:
    """Whether it is known as fractions."""
    return content is not None and any(isinstance(element, Fraction) for element in content.flat)


def as_fractions(content: Content) -> Content | None:
    """Extents as floats; None for numbers alone, which are computed at import."""
    if not any(isinstance(element, Sym) for element in content.flat):
        return None
    return _content([Fraction(element, 1) for element in content.flat], content.shape)


def scaled(contents: Sequence[Content | None], arrays: Sequence[Content | None], divides: bool) -> Content | None:
    """Fractions times, or (``divides``) divided by, numbers that are known; None where they are not fractions of few
    bits.

    ``contents`` holds the operands as far as they are made of extents, ``arrays`` as far as they are numbers, None
    where not.
    """
    positions = [position for position, content in enumerate(contents) if has_fractions(content)]
    if len(contents) != 2 or len(positions) != 1 or (divides and positions != [0]):
        return None
    fractions, numbers = contents[positions[0]], arrays[1 - positions[0]]
    if fractions is None or numbers is None or numbers.dtype.kind != "f":
        return None
    shape = np.broadcast_shapes(fractions.shape, numbers.shape)
    pairs = zip(np.broadcast_to(fractions, shape).flat, np.broadcast_to(numbers, shape).flat, strict=True)
    found = [_scaled(fraction, 1 / float(by) if divides else float(by)) for fraction, by in pairs]
    return None if None in found else _content(found, shape)


def _scaled(fraction: Fraction, by: float) -> Fraction | None:
    numerator, divisor = by.as_integer_ratio()
    if fraction != Fraction(fraction.dim, 1) or not 0 < numerator <= MOST_NUMERATOR or divisor > MOST_DIVISOR:
        return None
    return Fraction(fraction.dim * numerator, divisor)


def rounded(derive: DerivedExtents, content: Content, up: bool = False) -> Content | None:
    """Fractions of nonnegative extents rounded down or up, as fractions of 1."""
    if not all(isinstance(each, Fraction) and derive.is_nonnegative(each.dim) for each in content.flat):
        return None
    divide = derive.ceil_div if up else derive.floor_div
    return _content([Fraction(divide(each.dim, each.divisor), 1) for each in content.flat], content.shape)


def as_extents(derive: DerivedExtents, content: Content) -> Content | None:
    """Fractions as whole numbers, which rounds them to zero."""
    found = rounded(derive, content)
    return None if found is None else _content([each.dim for each in found.flat], content.shape)


def _content(elements: Sequence[object], shape: tuple[int, ...]) -> Content:
    made = np.empty(len(elements), object)
    for position, element in enumerate(elements):
        made[position] = element
    return made.reshape(shape)
