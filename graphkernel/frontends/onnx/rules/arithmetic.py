"""Arithmetic, element by element."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from graphkernel import ops
from graphkernel.frontends.onnx.rules.base import (
    Declined,
    OnnxCall,
    OnnxRule,
    Operand,
    Results,
    onnx_op,
    pair_of,
    rounded_once,
)
from kernelgen.tensor.types import dtype

MOST_WHOLE_EXPONENT = 2**31

IDENTITY = OnnxRule("Identity", lambda call: call.operands[0])


@onnx_op("Div")
def div(call: OnnxCall) -> Results:
    """Floats divide truly, integers round towards zero."""
    x, y = pair_of(call)
    return ops.real_div(x, y) if dtype(x.dtype).is_float else ops.div(x, y)


@onnx_op("Mod")
def mod(call: OnnxCall) -> Results:
    """With ``fmod`` the sign is the dividend's, without it the divisor's."""
    return (ops.mod if call.attribute("fmod", 0) else ops.floor_mod)(*call.operands)


@onnx_op("Pow")
def power(call: OnnxCall) -> Results:
    """The result has the data type of the base. Integers to an integer power are exact, to another in float64."""
    base, exponent = pair_of(call)
    own, other = dtype(base.dtype), dtype(exponent.dtype)
    if own.is_float:
        return ops.pow(base, exponent if other == own else ops.cast(exponent, own))
    if other.is_float:
        return _float_power(base, exponent, call.array(1))
    wide = dtype(np.result_type(own.numpy, other.numpy))
    if wide.is_float:  # uint64 and a signed type
        return Declined("no integer type holds base and exponent")
    return ops.cast(ops.pow(ops.cast(base, wide), ops.cast(exponent, wide)), own)


def _float_power(base: Operand, exponent: Operand, known: np.ndarray | None) -> Operand:
    """Whole exponents that are known stay whole numbers."""
    own = dtype(base.dtype)
    if (
        known is not None
        and known.size
        and np.all(known == np.rint(known))
        and np.abs(known).max() < MOST_WHOLE_EXPONENT
    ):
        whole = dtype("int64")
        if own == dtype("uint64"):
            return ops.pow(base, known.astype(own.numpy)) if known.min() >= 0 else _in_float64(base, exponent)
        return ops.cast(ops.pow(ops.cast(base, whole), known.astype(whole.numpy)), own)
    return _in_float64(base, exponent)


def _in_float64(base: Operand, exponent: Operand) -> Operand:
    wide = dtype("float64")
    return ops.cast(ops.pow(ops.cast(base, wide), ops.cast(exponent, wide)), dtype(base.dtype))


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
    return _mean(*call.operands)


@rounded_once
def _mean(*operands: Any) -> Any:  # Tensors or arrays
    return ops.real_div(reduce(ops.add, operands), _scalar(len(operands), operands[0]))


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
