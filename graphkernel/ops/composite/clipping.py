"""Clipping of gradients by their norm."""

from __future__ import annotations

import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.ops.composite.exact import exact, exact_elementwise
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.attributes import axes
from kernelgen.tensor.operators.families import Array
from kernelgen.tensor.operators.type_rules import axes_of, broadcast_shapes, expect_dtype, floating
from kernelgen.tensor.types import Attrs, TensorType

Types = tuple[TensorType, ...]


def _clip_type(types: Types, attrs: Attrs) -> Types:
    x, bound = types
    expect_dtype(floating, *types)
    axes_of(attrs.ints("axis", ()), x.rank)
    if broadcast_shapes((x.shape, bound.shape)) != x.shape:
        raise TypeRuleError(f"clip_norm must broadcast to {x}, got {bound}")
    return (x,)


def _clip(x: Array, clip_norm: Array, *, attrs: Attrs) -> Array:
    """(x, clip_norm): x scaled to the norm clip_norm where its norm over the axes (none means all) is larger."""
    axes = axes_of(attrs.ints("axis", ()), x.ndim)
    norm = np.sqrt(np.square(x).sum(axis=axes, keepdims=True))
    return np.where(norm > clip_norm, x * (clip_norm / norm), x)


CLIP_BY_NORM = exact("ClipByNorm", Kind.OPAQUE, 2, _clip_type, _clip, attributes=(axes(),))


def _no_div_sum(x: Array, threshold: Array, other: Array, least: Array, *, attrs: Attrs) -> Array:
    """(sum of squares x, threshold, other, least): the root of x where it is larger than the threshold, else x, but
    never less than least."""
    larger = x > threshold
    return np.maximum(np.where(larger, np.sqrt(np.where(larger, x, other)), x), least)


CLIP_BY_NORM_NO_DIV_SUM = exact_elementwise("ClipByNormNoDivSum", 4, _no_div_sum)
