"""Operators that draw numbers: without a seed they draw anew in every run. With a seed they stay onnxruntime's own."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.frontends.onnx.rules.base import Declined, OnnxCall, Results, onnx_op
from graphkernel.ops.library.random import STANDARD_NORMAL, UNIFORM_REAL
from graphkernel.ops.tensor.tensor import Tensor
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.types import DType, Shape, dtype

SEEDED = Declined("numbers that follow from a seed are onnxruntime's own")


@onnx_op("Dropout")
def dropout(call: OnnxCall) -> Results:
    """Outside of training the operand; training was the rule before opset 7, and is an operand from 12 on."""
    if call.opset < 7 and not call.attribute("is_test", 0):
        return Declined("dropout in training")
    training = call.array(2)
    if not call.has(2) or (training is not None and not training):
        return Declined("the mask is wanted") if call.results > 1 else call.operands[0]
    return _dropped(call) if training is not None else Declined("whether it trains is known at run time only")


def _dropped(call: OnnxCall) -> Results:
    ratio = call.array(1) if call.has(1) else 0.5
    if "seed" in call.attributes:
        return SEEDED
    if ratio is None or not 0 <= float(ratio) < 1:
        return Declined("the ratio is known at run time only, or all is dropped")
    y, mask = ops.dropout(call.tensor(0), keep_prob=1 - float(ratio))
    return (y, ops.cast(mask, dtype("bool")))[: call.results]


@onnx_op("RandomUniform")
def random_uniform(call: OnnxCall) -> Results:
    """low + (high - low) * u"""
    return _uniform(call, tuple(call.attribute("shape")), _own_type(call))


@onnx_op("RandomUniformLike")
def random_uniform_like(call: OnnxCall) -> Results:
    """In the shape of an operand, and in its data type unless another is given."""
    return _uniform(call, call.tensor(0).shape, _own_type(call))


@onnx_op("RandomNormal")
def random_normal(call: OnnxCall) -> Results:
    """mean + scale * n"""
    return _normal(call, tuple(call.attribute("shape")), _own_type(call))


@onnx_op("RandomNormalLike")
def random_normal_like(call: OnnxCall) -> Results:
    """In the shape of an operand, and in its data type unless another is given."""
    return _normal(call, call.tensor(0).shape, _own_type(call))


@onnx_op("Bernoulli")
def bernoulli(call: OnnxCall) -> Results:
    """1 with the probability that the operand says, else 0."""
    if "seed" in call.attributes:
        return SEEDED
    p = call.tensor(0)
    return ops.cast(_drawn(call, UNIFORM_REAL, p.shape) < ops.cast(p, dtype("float32")), _own_type(call))


def _uniform(call: OnnxCall, shape: Shape, of: DType) -> Results:
    if "seed" in call.attributes:
        return SEEDED
    low, high = call.attribute("low", 0.0), call.attribute("high", 1.0)
    return ops.cast(low + (high - low) * _drawn(call, UNIFORM_REAL, shape), of)


def _normal(call: OnnxCall, shape: Shape, of: DType) -> Results:
    if "seed" in call.attributes:
        return SEEDED
    return ops.cast(
        call.attribute("mean", 0.0) + call.attribute("scale", 1.0) * _drawn(call, STANDARD_NORMAL, shape), of
    )


def _drawn(call: OnnxCall, operator: Operator, shape: Shape) -> Tensor:
    return Tensor(call.builder.emit(operator, shape=shape), call.builder)


def _own_type(call: OnnxCall) -> DType:
    """The data type that the node asks for; without one its operand's, or float32 where it has none."""
    from onnx import helper

    given = call.attribute("dtype")
    if given is not None:
        return dtype(helper.tensor_dtype_to_np_dtype(given))
    return dtype(call.tensor(0).dtype) if call.operands else dtype("float32")
