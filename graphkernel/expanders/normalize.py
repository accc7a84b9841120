"""Means, normalisations and biases."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.base import Declined, Expansion, expander
from graphkernel.ir.types import Attrs, Dim, product
from graphkernel.ops import Tensor


@expander("ReduceMean")
def reduce_mean(x: Tensor, *, attrs: Attrs) -> Expansion:
    """sum(x) / count"""
    axes = attrs.ints("axis", ()) or tuple(range(x.ndim))
    count = product(x.shape[axis] for axis in axes)
    if not isinstance(count, int):
        return symbolic(count)
    return ops.reduce_sum(x, axes, attrs.bool("keep_dims", False)) / float(count)


@expander("LayerNorm")
def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, *, attrs: Attrs) -> Expansion:
    """(d / sqrt(variance + epsilon) * gamma + beta, mean, variance) with d = x - mean"""
    axes = tuple(range(attrs.int("begin_norm_axis", -1) % x.ndim, x.ndim))
    count = product(x.shape[axis] for axis in axes)
    if not isinstance(count, int):
        return symbolic(count)
    mean = ops.reduce_sum(x, axes, keep_dims=True) / float(count)
    deviation = x - mean
    variance = ops.reduce_sum(deviation * deviation, axes, keep_dims=True) / float(count)
    y = deviation * ops.rsqrt(variance + attrs.float("epsilon", 1e-7)) * gamma + beta
    return y, mean, variance


@expander("RmsNorm")
def rms_norm(x: Tensor, gamma: Tensor, *, attrs: Attrs) -> Expansion:
    """(x * r * gamma, r) with r = 1 / sqrt(mean(x^2) + epsilon)"""
    axes = tuple(range(x.ndim - gamma.ndim, x.ndim))
    count = product(x.shape[axis] for axis in axes)
    if not isinstance(count, int):
        return symbolic(count)
    mean_square = ops.reduce_sum(x * x, axes, keep_dims=True) / float(count)
    rstd = ops.rsqrt(mean_square + attrs.float("epsilon", 1e-6))
    return x * rstd * gamma, rstd


@expander("BatchNorm")
def batch_norm(x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, *, attrs: Attrs) -> Tensor:
    """(x - mean) * (scale / sqrt(variance + epsilon)) + bias, channels on axis 1"""
    factor = scale / ops.sqrt(variance + attrs.float("epsilon", 1e-5))
    return (x - along(mean, 1, x.ndim)) * along(factor, 1, x.ndim) + along(bias, 1, x.ndim)


@expander("BiasAdd", wide=False)
def bias_add(x: Tensor, bias: Tensor, *, attrs: Attrs) -> Tensor:
    """x + bias along the channel axis"""
    return x + along(bias, channel_axis(x.ndim, attrs), x.ndim)


@expander("BiasAddGrad")
def bias_add_grad(dy: Tensor, *, attrs: Attrs) -> Tensor:
    """The sum over all axes but that of the channels; matrices and rank 3 have them last whatever the format says"""
    channel = dy.ndim - 1 if dy.ndim <= 3 else channel_axis(dy.ndim, attrs)
    return ops.reduce_sum(dy, tuple(axis for axis in range(dy.ndim) if axis != channel))


def channel_axis(rank: int, attrs: Attrs) -> int:
    """The last axis of NHWC, otherwise the second."""
    return rank - 1 if attrs.str("data_format", "NCHW") == "NHWC" else 1


def along(vector: Tensor, axis: int, rank: int) -> Tensor:
    """The vector shaped so that it broadcasts along one axis of a tensor."""
    following = rank - 1 - axis
    return vector if following == 0 else ops.reshape(vector, (*vector.shape, *(1,) * following))


def symbolic(count: Dim) -> Declined:
    """A mean over a symbolic number of elements has no constant to divide by."""
    return Declined(f"the number of averaged elements, {count}, is not static")
