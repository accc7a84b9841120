"""Arithmetic, element by element."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from graphkernel import ops
from graphkernel.frontends.onnx_ops.base import Declined, OnnxCall, OnnxRule, Results, onnx_op, same
from graphkernel.ir.types import dtype

ADD = same("Add", ops.add)
SUB = same("Sub", ops.sub)
MUL = same("Mul", ops.mul)
NEG = same("Neg", ops.neg)
ABS = same("Abs", ops.abs)
SIGN = same("Sign", ops.sign)
FLOOR = same("Floor", ops.floor)
CEIL = same("Ceil", ops.ceil)
ROUND = same("Round", ops.round)
SQRT = same("Sqrt", ops.sqrt)
RECIPROCAL = same("Reciprocal", ops.reciprocal)
EXP = same("Exp", ops.exp)
LOG = same("Log", ops.log)
ERF = same("Erf", ops.erf)
SIN = same("Sin", ops.sin)
COS = same("Cos", ops.cos)
TAN = same("Tan", ops.tan)
SINH = same("Sinh", ops.sinh)
COSH = same("Cosh", ops.cosh)
ASIN = same("Asin", ops.asin)
ACOS = same("Acos", ops.acos)
ATAN = same("Atan", ops.atan)
ASINH = same("Asinh", ops.asinh)
ACOSH = same("Acosh", ops.acosh)
ATANH = same("Atanh", ops.atanh)
IDENTITY = OnnxRule("Identity", lambda call: call.operands[0])
DROPOUT = OnnxRule("Dropout", lambda call: call.operands[0] if call.results == 1 else Declined("the mask is wanted"))


@onnx_op("Div")
def div(call: OnnxCall) -> Results:
    """Floats divide truly, integers round towards zero."""
    return (ops.real_div if dtype(call.operands[0].dtype).is_float else ops.div)(*call.operands)


@onnx_op("Mod")
def mod(call: OnnxCall) -> Results:
    """With ``fmod`` the sign is the dividend's, without it the divisor's."""
    return (ops.mod if call.attribute("fmod", 0) else ops.floor_mod)(*call.operands)


@onnx_op("Pow")
def power(call: OnnxCall) -> Results:
    """The exponent may have a data type of its own."""
    base, exponent = call.operands
    return ops.pow(
        base, exponent if dtype(exponent.dtype) == dtype(base.dtype) else ops.cast(exponent, dtype(base.dtype))
    )


def _folded(name: str, function_name: str) -> OnnxRule:
    """An operator of any number of operands as a chain of one with two."""
    function = getattr(ops, function_name)
    return OnnxRule(name, lambda call: reduce(function, call.operands))


SUM = _folded("Sum", "add")
MAX = _folded("Max", "maximum")
MIN = _folded("Min", "minimum")


@onnx_op("Mean")
def mean(call: OnnxCall) -> Results:
    """The sum over the number of operands."""
    return ops.real_div(reduce(ops.add, call.operands), _scalar(len(call.operands), call.operands[0]))


@onnx_op("Clip")
def clip(call: OnnxCall) -> Results:
    """Bounds are attributes before opset 11."""
    x = call.operands[0]
    low = call.operand(1) if call.opset >= 11 else _bound(call, "min", x)
    high = call.operand(2) if call.opset >= 11 else _bound(call, "max", x)
    above = x if low is None else ops.maximum(x, low)
    return above if high is None else ops.minimum(above, high)


def _bound(call: OnnxCall, name: str, like: Any) -> np.ndarray | None:  # a Tensor or array
    return None if call.attribute(name) is None else _scalar(call.attribute(name), like)


def _scalar(value: float, like: Any) -> np.ndarray:  # a Tensor or array
    return np.asarray(value, dtype(like.dtype).numpy)
