"""Reductions over axes."""

from __future__ import annotations

import numpy as np

from graphkernel.ir.opdef import Kind, OpDef
from graphkernel.ir.types import Attrs, TensorType, dtype
from graphkernel.ops.families import Array, ArrayFunction, array_of, declare, reduction
from graphkernel.ops.type_rules import axis_of, boolean, expect_dtype, real, reduced_shape

REDUCE_SUM = reduction("ReduceSum", np.sum)
REDUCE_PROD = reduction("ReduceProd", np.prod)
REDUCE_MAX = reduction("ReduceMax", np.max, real)
REDUCE_MIN = reduction("ReduceMin", np.min, real)
REDUCE_ALL = reduction("ReduceAll", np.all, boolean)
REDUCE_ANY = reduction("ReduceAny", np.any, boolean)


def _arg_reduction(name: str, function: ArrayFunction) -> OpDef:
    def rule(types: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
        (x,) = types
        expect_dtype(real, x)
        shape = reduced_shape(x.shape, (axis_of(attrs.int("axis"), x.rank),), keep_dims=False)
        return (TensorType(shape, dtype(attrs.str("output_type", "int32"))),)

    def meaning(x: Array, *, attrs: Attrs) -> Array:
        index = array_of(function(x, axis=attrs.int("axis")))
        return index.astype(dtype(attrs.str("output_type", "int32")).numpy)

    return declare(name, Kind.REDUCE, 1, rule, meaning, attributes=("axis", "output_type"))


ARGMAX = _arg_reduction("Argmax", np.argmax)
ARGMIN = _arg_reduction("Argmin", np.argmin)
