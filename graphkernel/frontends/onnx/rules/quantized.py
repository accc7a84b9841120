"""Operators on quantized numbers (``QLinear..``, ``QGemm``) as what they mean: numbers are read, computed with, and quantized.

    y = QLinearMatMul(a, s, z, b, t, u, v, w)    ==>    y = QuantizeLinear(MatMul(DequantizeLinear(a, s, z),
                                                                                  DequantizeLinear(b, t, u)), v, w)

That is the form in which quantizers write QuantizeLinear and DequantizeLinear at every edge, so that all that is known of that
form holds for this one. onnxruntime multiplies by quotients of scales where this divides: a number between two steps becomes
either of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from graphkernel import ops
from graphkernel.frontends.onnx.rules import linear
from graphkernel.frontends.onnx.rules.base import Declined, OnnxCall, OnnxRule, Operand, Results, onnx_op, shape_of
from graphkernel.ops.catalogue import apply
from graphkernel.ops.library.host import ONNX, attributes_to_json
from graphkernel.ops.tensor.tensor import Tensor
from kernelgen.tensor.types import Attrs, TensorType, dtype

FLOAT = dtype("float32")
SCALES_BY_AXIS = 13
"""The opset from which on there are scales along an axis."""


def _read(call: OnnxCall, at: int, axis: int = 0) -> Tensor | None:
    """The numbers that an operand stands for, by scale and zero point behind it; several scales lie along an ``axis``."""
    return _dequantized(call, call.tensor(at), call.operand(at + 1), call.operand(at + 2), axis)


def _dequantized(call: OnnxCall, x: Tensor, scale: Operand, zero: Operand, axis: int) -> Tensor | None:
    result = TensorType(tuple(x.shape), FLOAT)
    return _by_scale(call, "DequantizeLinear", x, scale, zero, result, axis)


def _by_scale(
    call: OnnxCall, name: str, x: Tensor, scale: Operand, zero: Operand, result: TensorType, axis: int
) -> Tensor | None:
    """An operator of ONNX that quantizes or reads; None where this opset lacks its form, or scales are not float32."""
    from onnx import helper

    given = [_alone(each) for each in (scale, zero) if each is not None]
    has_axis = shape_of(given[0]) != ()
    if (has_axis and call.opset < SCALES_BY_AXIS) or dtype(given[0].dtype) != FLOAT:
        return None
    attributes = [helper.make_attribute("axis", axis % len(x.shape))] if has_axis else []
    attrs = Attrs.of(
        op_type=name, domain="", opset=max(call.opset, SCALES_BY_AXIS - 3), attributes=attributes_to_json(attributes),
        result_types=(str(result),), present=(1,) * (1 + len(given)),
    )  # fmt: skip
    return apply(ONNX, x, *given, **attrs)


def _alone(x: Operand) -> Operand:
    """A number by itself, whatever shape it comes in."""
    return ops.reshape(x, ()) if shape_of(x) == (1,) else x


def _written(call: OnnxCall, x: Tensor, at: int) -> Results:
    """``x`` quantized by the operands ``at`` these places: as uint8 where there is no zero point."""
    scale, zero = call.operand(at), call.operand(at + 1)
    result = TensorType(tuple(x.shape), dtype("uint8" if zero is None else zero.dtype))
    found = _by_scale(call, "QuantizeLinear", x, scale, zero, result, 0)
    return (
        Declined("results of several scales, or of one that is not float32")
        if found is None or shape_of(_alone(scale)) != ()
        else found
    )


def _on(call: OnnxCall, rule: OnnxRule, at: int, *operands: Tensor | None) -> Results:
    """What ``rule`` makes of numbers, quantized by the operands ``at`` these places."""
    if any(each is None for each in operands):
        return Declined("scales along an axis in an old opset, or not in float32")
    found = rule.convert(replace(call, operands=operands, extents=(None,) * len(operands)))
    return _written(call, found, at) if isinstance(found, Tensor) else found


@onnx_op("QLinearConv")
def convolution(call: OnnxCall) -> Results:
    """The bias is of int32, in units of the product of both scales."""
    parts = [_read(call, 0), _read(call, 3)]
    if call.has(8):
        scale = ops.mul(_alone(call.operand(1)), _alone(call.operand(4)))
        parts.append(_dequantized(call, call.tensor(8), scale, None, 0))
    return _on(call, linear.convolution, 6, *parts)


@onnx_op("QLinearMatMul")
def product(call: OnnxCall) -> Results:
    """Columns may have scales of their own."""
    if shape_of(_alone(call.operand(1))) != () or len(shape_of(call.operand(4))) > 1:
        return Declined("scales of rows, or of each matrix")
    return _on(call, linear.matmul, 6, _read(call, 0), _read(call, 3, axis=-1))


@onnx_op("com.microsoft::QGemm")
def gemm(call: OnnxCall) -> Results:
    """The addend is of int32, in units of ``alpha`` and both scales; without scale the result is float32."""
    scales = [_alone(call.operand(place)) for place in (1, 4)]
    columns = 0 if call.attribute("transB", 0) else 1
    parts = [_read(call, 0), _read(call, 3, axis=columns)]
    if call.has(6):
        unit = ops.mul(ops.mul(*scales), np.float32(call.attribute("alpha", 1.0)))
        parts.append(_dequantized(call, call.tensor(6), unit, None, -1))
    if any(each is None for each in parts):
        return Declined("scales along an axis in an old opset, or not in float32")
    given = {name: value for name, value in call.attributes.items() if name != "beta"}
    found = linear.gemm.convert(replace(call, operands=tuple(parts), attributes=given))
    return _written(call, found, 7) if call.has(7) and isinstance(found, Tensor) else found


def _of_two(name: str, function: Callable[..., Any]) -> OnnxRule:
    """The rule of a pointwise operator of two."""

    def convert(call: OnnxCall) -> Results:
        return _on(call, OnnxRule(name, lambda inner: function(*inner.operands)), 6, _read(call, 0), _read(call, 3))

    return OnnxRule(f"com.microsoft::{name}", convert)


def _of_one(name: str, function: Callable[[OnnxCall], Results]) -> OnnxRule:
    """The rule of an operator of one."""

    def convert(call: OnnxCall) -> Results:
        if call.attribute("channels_last", 0):
            return Declined("channels last")
        return _on(call, OnnxRule(name, function), 3, _read(call, 0))

    return OnnxRule(f"com.microsoft::{name}", convert)


def _softmax(call: OnnxCall) -> Results:
    """Over one axis, as ONNX's from opset 13 on."""
    if call.attribute("opset", SCALES_BY_AXIS) < SCALES_BY_AXIS:
        return Declined("over all axes behind one")
    return ops.softmax(call.operands[0], axis=call.attribute("axis", -1))


ADD, MUL = _of_two("QLinearAdd", ops.add), _of_two("QLinearMul", ops.mul)
SIGMOID = _of_one("QLinearSigmoid", lambda call: ops.sigmoid(call.operands[0]))
LEAKY_RELU = _of_one(
    "QLinearLeakyRelu", lambda call: ops.leaky_relu(call.operands[0], alpha=call.attribute("alpha", 0.01))
)
SOFTMAX = _of_one("QLinearSoftmax", _softmax)
GLOBAL_AVERAGE_POOL = _of_one("QLinearGlobalAveragePool", linear.global_average_pool.convert)
AVERAGE_POOL = _of_one("QLinearAveragePool", linear.average_pool.convert)


@onnx_op("com.microsoft::QLinearConcat")
def joined(call: OnnxCall) -> Results:
    """Each part has its own scale."""
    parts = [_read(call, place) for place in range(2, len(call.operands), 3)]
    axis = call.attribute("axis")
    return _on(call, OnnxRule(call.op_type, lambda inner: ops.concat(list(inner.operands), axis=axis)), 0, *parts)
