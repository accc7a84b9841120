"""Reductions over axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelgen.tensor.operator import Kind, Operator, Traits
from kernelgen.tensor.operators.attributes import axis, data_type
from kernelgen.tensor.operators.families import Array, ArrayFunction, array_of, declare, is_floating, reduction
from kernelgen.tensor.operators.type_rules import axis_of, boolean, expect_dtype, real, reduced_shape
from kernelgen.tensor.types import Attrs, TensorType, dtype


def _largest(x: Array, **where: Any) -> Any:  # axis and keepdims, as numpy takes them
    return np.max(x, **where, **_end(x, lower=True))


def _smallest(x: Array, **where: Any) -> Any:  # axis and keepdims, as numpy takes them
    return np.min(x, **where, **_end(x, lower=False))


def _end(x: Array, *, lower: bool) -> dict[str, Any]:  # a keyword of numpy
    """What the reduction of no elements gives: the end of the data type's range. cupy has none to start with."""
    if x.size:
        return {}
    if is_floating(x):
        return {"initial": -np.inf if lower else np.inf}
    return {"initial": int(np.iinfo(x.dtype).min if lower else np.iinfo(x.dtype).max)}


REDUCE_SUM = reduction("ReduceSum", np.sum, doc="The sum over axes.", onnx="ReduceSum")
REDUCE_PROD = reduction("ReduceProd", np.prod, doc="The product over axes.", onnx="ReduceProd")
REDUCE_MAX = reduction("ReduceMax", _largest, real, doc="The maximum over axes; NaN wins.", onnx="ReduceMax")
REDUCE_MIN = reduction("ReduceMin", _smallest, real, doc="The minimum over axes; NaN wins.", onnx="ReduceMin")
REDUCE_ALL = reduction("ReduceAll", np.all, boolean, doc="Whether all elements along axes hold.")
REDUCE_ANY = reduction("ReduceAny", np.any, boolean, doc="Whether any element along axes holds.")


def _arg_reduction(name: str, function: ArrayFunction, doc: str, onnx: str) -> Operator:
    def rule(types: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
        (x,) = types
        expect_dtype(real, x)
        shape = reduced_shape(x.shape, (axis_of(attrs.int("axis"), x.rank),), keep_dims=False)
        return (TensorType(shape, dtype(attrs.str("output_type", "int32"))),)

    def meaning(x: Array, *, attrs: Attrs) -> Array:
        index = array_of(function(x, axis=attrs.int("axis")))
        return index.astype(dtype(attrs.str("output_type", "int32")).numpy)

    traits = Traits(axis_of="operand")
    return declare(
        name,
        Kind.REDUCE,
        1,
        rule,
        meaning,
        attributes=(axis(default=-1), data_type("output_type", "int32")),
        doc=doc,
        traits=traits,
        onnx=onnx,
    )


ARGMAX = _arg_reduction("Argmax", np.argmax, "The index of the first maximum along an axis.", "ArgMax")
ARGMIN = _arg_reduction("Argmin", np.argmin, "The index of the first minimum along an axis.", "ArgMin")
