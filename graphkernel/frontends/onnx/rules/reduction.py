"""Reductions, softmax and normalisations."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from graphkernel import ops
from graphkernel.errors import TypeRuleError
from graphkernel.frontends.onnx.rules.base import (
    Declined,
    OnnxCall,
    OnnxRule,
    Operand,
    Results,
    onnx_op,
    rounded_once,
    shape_of,
    static,
)
from kernelgen.tensor.types import dtype

MOST_AVERAGED = 2**31  # integers: the sum of what divisions leave fits into 64 bits
SUM_AXES_OPERAND = 13  # the opset in which ReduceSum's axes became an operand
AXES_OPERAND = 18  # the same for the other reductions


def _reduction(name: str, function: Callable[..., Any], since: int = AXES_OPERAND) -> OnnxRule:
    def convert(call: OnnxCall) -> Results:
        x, axes = call.operands[0], call.axes(1, since)
        if isinstance(axes, Declined):
            return axes
        if not axes and call.attribute("noop_with_empty_axes", 0):
            return Declined("a reduction over no axes")
        return function(x, axis=axes or None, keep_dims=bool(call.attribute("keepdims", 1)))

    return OnnxRule(name, convert)


@rounded_once
def _sum_square(x: Any, **where: Any) -> Any:  # a Tensor or array
    return ops.reduce_sum(ops.mul(x, x), **where)


@rounded_once
def _norm2(x: Any, **where: Any) -> Any:  # a Tensor or array
    return ops.sqrt(_sum_square(x, **where))


def _norm1(x: Any, **where: Any) -> Any:  # a Tensor or array
    return ops.reduce_sum(ops.abs(x), **where)


@rounded_once
def _log_sum_exp(x: Any, axis: tuple[int, ...] | None, keep_dims: bool) -> Any:  # a Tensor or array
    """Of numbers less their greatest, which is 0 where that is infinite: sums of the others do not overflow."""
    if not dtype(x.dtype).is_float:
        raise TypeRuleError("the logarithm of a sum of integers")
    greatest = ops.reduce_max(x, axis=axis, keep_dims=True)
    finite = ops.select(ops.is_finite(greatest), greatest, ops.zeros_like(greatest))
    found = ops.log(ops.reduce_sum(ops.exp(ops.sub(x, finite)), axis=axis, keep_dims=keep_dims))
    return ops.add(found, finite if keep_dims else ops.reshape(finite, shape_of(found)))


REDUCE_SUM = _reduction("ReduceSum", ops.reduce_sum, SUM_AXES_OPERAND)


def _mean(x: Any, axis: tuple[int, ...] | None, keep_dims: bool) -> Any:  # a Tensor or array
    """The mean; of integers it rounds towards zero, and is exact however large their sum: x is q * n + r throughout."""
    if not dtype(x.dtype).is_integer:
        return ops.reduce_mean(x, axis=axis, keep_dims=keep_dims)
    count = static(tuple(shape_of(x)[a] for a in (range(len(shape_of(x))) if axis is None else axis)))
    if count is None or not 0 < prod(count) <= MOST_AVERAGED:
        raise TypeRuleError("a mean of integers over a symbolic extent, or none")
    n, wide = prod(count), dtype("uint64" if dtype(x.dtype).name == "uint64" else "int64")
    whole, rest = (
        ops.reduce_sum(part, axis=axis, keep_dims=keep_dims)
        for part in (ops.floor_div(ops.cast(x, wide), n), ops.floor_mod(ops.cast(x, wide), n))
    )
    floor, left = ops.add(whole, ops.floor_div(rest, n)), ops.floor_mod(rest, n)
    up = ops.logical_and(ops.less(floor, 0), ops.greater(left, 0))
    return ops.cast(ops.add(floor, ops.cast(up, wide)), dtype(x.dtype))


REDUCE_MEAN = _reduction("ReduceMean", _mean)
REDUCE_MAX = _reduction("ReduceMax", ops.reduce_max)
REDUCE_MIN = _reduction("ReduceMin", ops.reduce_min)
REDUCE_PROD = _reduction("ReduceProd", ops.reduce_prod)
REDUCE_SUM_SQUARE = _reduction("ReduceSumSquare", _sum_square)
REDUCE_LOG_SUM_EXP = _reduction("ReduceLogSumExp", _log_sum_exp)
REDUCE_L1 = _reduction("ReduceL1", _norm1)
REDUCE_L2 = _reduction("ReduceL2", _norm2)


def _softmax(name: str, function: Callable[..., Any]) -> OnnxRule:
    """Before opset 13 the operand is taken as a matrix, which is a softmax over all axes from ``axis`` on."""

    def convert(call: OnnxCall) -> Results:
        x = call.operands[0]
        rank = len(shape_of(x))
        if call.opset >= 13:
            return function(x, axis=call.attribute("axis", -1))
        return function(x, axis=tuple(range(call.attribute("axis", 1) % rank, rank)))

    return OnnxRule(name, convert)


SOFTMAX = _softmax("Softmax", ops.softmax)
LOG_SOFTMAX = _softmax("LogSoftmax", ops.log_softmax)


@onnx_op("LayerNormalization")
def layer_normalization(call: OnnxCall) -> Results:
    """Its further results are mean and inverse deviation in float32."""
    x, gamma = call.operands[:2]
    axis = call.attribute("axis", -1) % len(shape_of(x))
    if shape_of(gamma) != shape_of(x)[axis:]:
        return Declined("the scale has another shape than the normalised axes")
    beta = call.operand(2) if call.has(2) else zeros(gamma)
    epsilon = call.attribute("epsilon", 1e-5)
    if call.results > 1:
        if call.attribute("stash_type", 1) != 1:
            return Declined("the statistics are not computed in float32")
        return ops.layer_norm_v3(x, gamma, beta, begin_norm_axis=axis, begin_params_axis=axis, epsilon=epsilon)
    return ops.layer_norm(x, gamma, beta, begin_norm_axis=axis, begin_params_axis=axis, epsilon=epsilon)[0]


@onnx_op("RMSNormalization")
def rms_normalization(call: OnnxCall) -> Results:
    """Statistics are computed in float32, or wider, whatever the operand is; another type of them is another operator."""
    x, gamma = call.operands[:2]
    axis = call.attribute("axis", -1) % len(shape_of(x))
    if shape_of(gamma) != shape_of(x)[axis:] or dtype(gamma.dtype) != dtype(x.dtype):
        return Declined("the scale has another shape than the normalised axes, or another data type")
    if call.attribute("stash_type", 1) != 1:
        return Declined("the statistics are not computed in float32")
    return ops.rms_norm(x, gamma, epsilon=call.attribute("epsilon", 1e-5))[0]


def zeros(like: Operand) -> Operand:
    """Zeros of the shape of ``like``; an operator of the graph where that holds symbols."""
    shape = static(shape_of(like))
    return ops.zeros_like(like) if shape is None else np.zeros(shape, dtype(like.dtype).numpy)


@onnx_op("BatchNormalization")
def batch_normalization(call: OnnxCall) -> Results:
    """Inference only."""
    training = call.attribute("training_mode", 0) if call.opset >= 7 else not call.attribute("is_test", 0)
    if call.results > 1 or training or not call.attribute("spatial", 1):
        return Declined("batch normalisation in training, or of each element")
    return ops.batch_norm(*call.operands, epsilon=call.attribute("epsilon", 1e-5))


@onnx_op("ArgMax")
def arg_max(call: OnnxCall) -> Results:
    """The first maximum."""
    if call.attribute("select_last_index", 0):
        return Declined("the last of equal maxima is wanted")
    axis = call.attribute("axis", 0)
    found = ops.argmax(call.operands[0], axis=axis, output_type="int64")
    return ops.expand_dims(found, axis % len(shape_of(call.operands[0]))) if call.attribute("keepdims", 1) else found
