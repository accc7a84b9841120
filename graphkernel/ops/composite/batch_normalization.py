"""Batch normalisation: inference, training, and its gradient. Channels on axis 1 (NCHW) or on the last axis (NHWC)."""

from __future__ import annotations

import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.ops.composite.exact import exact
from graphkernel.ops.composite.moments import moments
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.attributes import flag, real_number, text
from kernelgen.tensor.operators.families import Array
from kernelgen.tensor.operators.type_rules import expect_dtype, floating, shape_text
from kernelgen.tensor.types import Attrs, TensorType

Types = tuple[TensorType, ...]

DATA_FORMAT = text("data_format", "NCHW")


def channel_axis(rank: int, attrs: Attrs) -> int:
    """The axis of the channels: the last of NHWC, otherwise the second (the last of a matrix).

    Raises TypeRuleError for another data format.
    """
    data_format = attrs.str("data_format", "NCHW")
    if data_format not in ("NCHW", "NHWC"):
        raise TypeRuleError(f"data_format must be 'NCHW' or 'NHWC', got {data_format!r}")
    return rank - 1 if data_format == "NHWC" else 1


def _check_parameters(x: TensorType, parameters: Types, attrs: Attrs) -> None:
    expect_dtype(floating, x)
    expect_dtype(floating, *parameters)
    if x.rank < 2:
        raise TypeRuleError("expects rank 2 at least")
    channel = channel_axis(x.rank, attrs)
    if any(parameter.shape != (x.shape[channel],) for parameter in parameters):
        raise TypeRuleError(f"the parameters need the shape of axis {channel} of {shape_text(x.shape)}")


def _batch_norm_type(types: Types, attrs: Attrs) -> Types:
    x, *parameters = types
    _check_parameters(x, tuple(parameters), attrs)
    return (x, *[parameters[0]] * 4) if attrs.bool("is_training", False) else (x,)


def _per_channel(values: Array, x: Array, attrs: Attrs) -> Array:
    channel = channel_axis(x.ndim, attrs)
    return values.reshape([-1 if axis == channel else 1 for axis in range(x.ndim)])


def _batch_norm(
    x: Array, scale: Array, bias: Array, mean: Array, variance: Array, *, attrs: Attrs
) -> Array | tuple[Array, ...]:
    """(x, scale, bias, mean, variance) -> y; with is_training also new running mean and variance (momentum weighs the
    batch, the variance is unbiased), the batch's mean and 1 / sqrt(variance + epsilon)."""
    epsilon = attrs.float("epsilon", 1e-5)
    if not attrs.bool("is_training", False):
        return _normalized(x, mean, 1 / np.sqrt(variance + epsilon), scale, bias, attrs)
    axes = tuple(axis for axis in range(x.ndim) if axis != channel_axis(x.ndim, attrs))
    new_mean, new_variance = (moment.reshape(mean.shape) for moment in moments(x, axes))
    count, momentum = x.size // max(new_mean.size, 1), attrs.float("momentum", 0.1)
    rstd = 1 / np.sqrt(new_variance + epsilon)
    unbiased = new_variance * (count / max(count - 1, 1))
    return (
        _normalized(x, new_mean, rstd, scale, bias, attrs),
        (1 - momentum) * mean + momentum * new_mean,
        (1 - momentum) * variance + momentum * unbiased,
        new_mean,
        rstd,
    )


def _normalized(x: Array, mean: Array, rstd: Array, scale: Array, bias: Array, attrs: Attrs) -> Array:
    factor = _per_channel(scale * rstd, x, attrs)
    return (x - _per_channel(mean, x, attrs)) * factor + _per_channel(bias, x, attrs)


BATCH_NORM = exact(
    "BatchNorm",
    Kind.OPAQUE,
    5,
    _batch_norm_type,
    _batch_norm,
    attributes=(
        real_number("epsilon", 1e-5),
        real_number("momentum", 0.1)._replace(quiet=True),
        DATA_FORMAT._replace(quiet=True),
        flag("is_training")._replace(quiet=True),
    ),
)


def _batch_norm_gradient_type(types: Types, attrs: Attrs) -> Types:
    dy, x, *parameters = types
    _check_parameters(x, tuple(parameters), attrs)
    if dy != x:
        raise TypeRuleError(f"dy must have the type of x, {x}, got {dy}")
    return (x, parameters[0], parameters[0])


def _batch_norm_gradient(
    dy: Array, x: Array, scale: Array, mean: Array, spread: Array, *, attrs: Attrs
) -> tuple[Array, Array, Array]:
    """(dy, x, scale, mean, spread) -> (dx, dscale, dbias); spread is the 1 / sqrt(variance + epsilon) that BatchNorm
    gave in training, the running variance otherwise."""
    training = attrs.bool("is_training", False)
    axes = tuple(axis for axis in range(x.ndim) if axis != channel_axis(x.ndim, attrs))
    rstd = spread if training else 1 / np.sqrt(spread + attrs.float("epsilon", 1e-5))
    normalized = (x - _per_channel(mean, x, attrs)) * _per_channel(rstd, x, attrs)
    bias_gradient, scale_gradient = dy.sum(axis=axes), (dy * normalized).sum(axis=axes)
    inner = dy
    if training:
        count = max(x.size // max(scale.size, 1), 1)
        inner = (
            dy - (_per_channel(bias_gradient, x, attrs) + normalized * _per_channel(scale_gradient, x, attrs)) / count
        )
    return inner * _per_channel(scale * rstd, x, attrs), scale_gradient, bias_gradient


BATCH_NORM_GRAD = exact(
    "BatchNormGrad",
    Kind.OPAQUE,
    5,
    _batch_norm_gradient_type,
    _batch_norm_gradient,
    attributes=(real_number("epsilon", 1e-5), DATA_FORMAT, flag("is_training")),
)
