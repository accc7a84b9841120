"""Reductions and scans. Floats accumulate in float64, complex numbers in complex128: the oracle should not add error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelgen.composite.scalar_rules import REDUCTIONS
from kernelgen.nest.neutral import neutral_element
from kernelgen.semantics.algebra import Array, ArrayAlgebra
from kernelgen.tensor.dtypes import Category, DType, dtype
from kernelgen.tensor.operator import Application
from kernelgen.tensor.operators.reduce import ARGMAX
from kernelgen.tensor.operators.scan import CUM_SUM
from kernelgen.tensor.operators.type_rules import normal_axis, reduced_axes

UFUNCS: dict[str, np.ufunc] = {
    "add": np.add, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "logical_and": np.logical_and, "logical_or": np.logical_or,
}  # fmt: skip


def reduction(operands: Sequence[Array], node: Application) -> Array:
    """``axis`` (absent or empty: all) and ``keep_dims``; an empty range gives the neutral element."""
    function = REDUCTIONS[node.op]
    target = node.out.dtype
    value = _accumulated(ArrayAlgebra().cast(operands[0], target), target)
    axes = reduced_axes(node)
    initial = None if value.dtype.kind == "c" else neutral_element(function, dtype(value.dtype)).value
    if value.ndim == 0:
        return value
    more: dict[str, Any] = {} if initial is None else {"initial": initial}
    kind = value.dtype if not function.startswith("logical_") else None
    keep = node.attrs.bool("keep_dims", False)
    return np.asarray(UFUNCS[function].reduce(value, axis=axes, keepdims=keep, dtype=kind, **more))  # no numpy scalars


def any_positive(operands: Sequence[Array], node: Application) -> Array:
    """ElemAny: 1 if any element is greater than 0. (AKG's own checker computes ``all``.)"""
    return np.asarray((operands[0] > 0).any()).reshape(1)


def all_positive(operands: Sequence[Array], node: Application) -> Array:
    """ElemAll: 1 if all elements are greater than 0."""
    return np.asarray((operands[0] > 0).all()).reshape(1)


def extreme_position(operands: Sequence[Array], node: Application) -> Array:
    """Argmax and Argmin: the first position of the extreme along ``axis``; the first NaN is an extreme."""
    find = np.argmax if node.op is ARGMAX else np.argmin
    value = _accumulated(operands[0], node.args[0].dtype)
    return np.asarray(find(value, axis=normal_axis(node.attrs.ints("axis", (-1,))[0], value.ndim)))


def scan(operands: Sequence[Array], node: Application) -> Array:
    """CumSum and CumProd along ``axis``; ``exclusive`` leaves the element itself out, ``reverse`` runs from the end."""
    axis = normal_axis(node.attrs.ints("axis", (0,))[0], operands[0].ndim)
    value = np.atleast_1d(_accumulated(operands[0], node.out.dtype))
    if node.attrs.bool("reverse", False):
        value = np.flip(value, axis)
    running = (np.add if node.op is CUM_SUM else np.multiply).accumulate(value, axis, dtype=value.dtype)
    if node.attrs.bool("exclusive", False):
        running = np.roll(running, 1, axis)
        first = [slice(None)] * value.ndim
        first[axis] = slice(0, 1)
        running[tuple(first)] = 0 if node.op is CUM_SUM else 1
    return np.flip(running, axis) if node.attrs.bool("reverse", False) else running


def _accumulated(value: Array, target: DType) -> Array:
    if target.is_float:
        return value.astype(np.float64)
    return value.astype(np.complex128) if target.category is Category.COMPLEX else value
