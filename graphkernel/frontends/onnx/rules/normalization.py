"""Normalisations of which each has statistics over other axes: of groups of channels, of one channel, of the axes named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphkernel import ops
from graphkernel.frontends.onnx.rules.base import Declined, OnnxCall, Operand, Results, onnx_op, rounded_once, shape_of

MEAN_VARIANCE_EPSILON = 1e-9


@onnx_op("GroupNormalization")
def group_normalization(call: OnnxCall) -> Results:
    """Statistics of each group of channels; up to opset 20 scale and bias are of groups, later of channels."""
    x, scale, bias = call.operands
    shape, groups = shape_of(x), call.attribute("num_groups")
    if call.attribute("stash_type", 1) != 1:
        return Declined("the statistics are not computed in float32")
    inside = (call.derive.floor_div(shape[1], groups), *shape[2:])
    grouped = ops.reshape(x, (shape[0], groups, *inside))
    if call.opset >= BY_CHANNEL:
        scale, bias = (ops.reshape(each, (groups, inside[0])) for each in (scale, bias))
    found = _normalized(call.attribute("epsilon", 1e-5), tuple(range(2, len(inside) + 2)))(grouped, scale, bias)
    return ops.reshape(found, shape)


BY_CHANNEL = 21


@onnx_op("InstanceNormalization")
def instance_normalization(call: OnnxCall) -> Results:
    """Statistics of each channel of each image."""
    axes = tuple(range(2, len(shape_of(call.operands[0]))))
    return _normalized(call.attribute("epsilon", 1e-5), axes)(*call.operands)


@onnx_op("MeanVarianceNormalization")
def mean_variance_normalization(call: OnnxCall) -> Results:
    """Statistics over the axes named; nothing is added to the variance, and little to its root."""
    if call.opset < 9:
        return Declined("across_channels and normalize_variance")
    return _standardized(call.operands[0], tuple(call.attribute("axes", (0, 2, 3))))


def _normalized(epsilon: float, axes: tuple[int, ...]) -> Callable[..., Any]:
    """From x, scale and bias: scale and bias have the shape of the axes of x from 1 on, as far as theirs go."""

    @rounded_once
    def normalized(x: Operand, scale: Operand, bias: Operand) -> Any:  # a Tensor or array
        centered = ops.sub(x, ops.reduce_mean(x, axis=axes, keep_dims=True))
        variance = ops.reduce_mean(ops.mul(centered, centered), axis=axes, keep_dims=True)
        found = ops.mul(centered, ops.rsqrt(ops.add(variance, epsilon)))
        behind = len(shape_of(x)) - 1 - len(shape_of(scale))
        return ops.add(ops.mul(found, _with_axes(scale, behind)), _with_axes(bias, behind))

    return normalized


@rounded_once
def _standardized(x: Operand, axes: tuple[int, ...]) -> Any:  # a Tensor or array
    centered = ops.sub(x, ops.reduce_mean(x, axis=axes, keep_dims=True))
    variance = ops.reduce_mean(ops.mul(centered, centered), axis=axes, keep_dims=True)
    return ops.div(centered, ops.add(ops.sqrt(variance), MEAN_VARIANCE_EPSILON))


def _with_axes(operand: Operand, behind: int) -> Operand:
    """With axes of extent 1 behind its own."""
    rank = len(shape_of(operand))
    return ops.expand_dims(operand, tuple(range(rank, rank + behind))) if behind else operand
