"""Comparisons, logic and selection."""

from __future__ import annotations

import numpy as np

from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.families import Array, declare, predicate
from kernelgen.tensor.operators.type_rules import any_dtype, boolean, broadcast_shapes, expect_dtype
from kernelgen.tensor.types import Attrs, TensorType

EQUAL = predicate("Equal", 2, np.equal, any_dtype, commutative=True, onnx="Equal")
NOT_EQUAL = predicate("NotEqual", 2, np.not_equal, any_dtype, commutative=True)
LESS = predicate("Less", 2, np.less, onnx="Less")
LESS_EQUAL = predicate("LessEqual", 2, np.less_equal, onnx="LessOrEqual")
GREATER = predicate("Greater", 2, np.greater, onnx="Greater")
GREATER_EQUAL = predicate("GreaterEqual", 2, np.greater_equal, onnx="GreaterOrEqual")
LOGICAL_AND = predicate("LogicalAnd", 2, np.logical_and, boolean, commutative=True, onnx="And")
LOGICAL_OR = predicate("LogicalOr", 2, np.logical_or, boolean, commutative=True, onnx="Or")
LOGICAL_NOT = predicate("LogicalNot", 1, np.logical_not, boolean, onnx="Not")


def _select_type(types: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
    condition, x, y = types
    expect_dtype(boolean, condition)
    shared = expect_dtype(any_dtype, x, y)
    return (TensorType(broadcast_shapes(type_.shape for type_ in types), shared, x.layout),)


def _select(condition: Array, x: Array, y: Array, *, attrs: Attrs) -> Array:
    """x where the condition holds, else y."""
    return np.where(condition, x, y)


SELECT = declare("Select", Kind.ELEMWISE, 3, _select_type, _select, onnx="Where")
