"""Ranges in another data type."""

from __future__ import annotations

import numpy as np

from kernelgen.enclosure.complexes import joined, parts_of
from kernelgen.enclosure.conditions import condition
from kernelgen.enclosure.integers import as_integers
from kernelgen.enclosure.interval import Interval
from kernelgen.enclosure.rounding import rounded
from kernelgen.tensor.dtypes import BOOL, COMPLEX64, FLOAT32, Category, DType


def converted(value: Interval, kind: DType, is_converted: bool) -> Interval:
    """The range of ``value`` as numbers of the data type ``kind``.

    ``is_converted`` is False of a value that was computed in that data type, and so has been rounded to it.
    """
    have = value.low.dtype.kind
    if kind.category is Category.COMPLEX:
        return _complex(value, kind, is_converted)
    value = parts_of(value)[0] if have == "c" and kind != BOOL else value
    if kind == BOOL:
        return condition(value)
    if kind.is_integer:
        return value if value.low.dtype == kind.numpy else as_integers(value, kind)
    wide = value if value.low.dtype == np.float64 else value.map(lambda bound: bound.astype(np.float64))
    return rounded(wide, kind) if is_converted else wide


def _complex(value: Interval, kind: DType, is_converted: bool) -> Interval:
    if value.low.dtype.kind == "c" and not is_converted:
        return value
    return joined(*(rounded(part, FLOAT32) if kind == COMPLEX64 else part for part in parts_of(value)))
