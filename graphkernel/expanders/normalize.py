"""Means, layer norms and biases, and their gradients."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.base import expander
from graphkernel.expanders.means import mean_of, moments, sum_over
from graphkernel.ops import Tensor
from graphkernel.ops.composite import norm_gradients, normalize
from graphkernel.ops.composite.batch_normalization import channel_axis
from kernelgen.tensor.types import Attrs


def _mean(x: Tensor, *, attrs: Attrs) -> Tensor:
    """sum(x) / count"""
    axes = attrs.ints("axis", ()) or tuple(range(x.ndim))
    return mean_of(x, axes, attrs.bool("keep_dims", False)) if axes else ops.tensor_move(x)


REDUCE_MEAN = expander(normalize.REDUCE_MEAN)(_mean)
MEAN_EXT = expander(normalize.MEAN_EXT)(_mean)


@expander(normalize.LAYER_NORM)
def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, *, attrs: Attrs) -> tuple[Tensor, Tensor, Tensor]:
    """((x - mean) / sqrt(variance + epsilon) * gamma + beta, mean, variance)"""
    axes = tuple(range(attrs.int("begin_norm_axis", -1) % x.ndim, x.ndim))
    mean, variance = moments(x, axes)
    rstd = ops.rsqrt(variance + attrs.float("epsilon", 1e-7))
    y = rstd * (x - mean) * gamma + beta  # in this order: one loop over a row has the difference and the rest
    return y, mean, variance


@expander(norm_gradients.LAYER_NORM_GRAD)
def layer_norm_grad(
    x: Tensor, dy: Tensor, variance: Tensor, mean: Tensor, gamma: Tensor, *, attrs: Attrs
) -> tuple[Tensor, Tensor, Tensor]:
    """(r * (t - mean(t) - n * mean(t * n)), sum(dy * n), sum(dy)) with t = dy * gamma, n = (x - mean) * r

    r is 1 / sqrt(variance + epsilon). Axes may count from the end, which MindSpore's expander gets wrong; the means are
    taken of t itself, where MindSpore sums products with r^3, which overflow for a small variance.
    """
    axes = tuple(range(attrs.int("begin_norm_axis", -1) % x.ndim, x.ndim))
    others = tuple(range(attrs.int("begin_params_axis", -1) % x.ndim))
    rstd = ops.rsqrt(variance + attrs.float("epsilon", 1e-12))
    normalized, scaled = (x - mean) * rstd, dy * gamma
    dx = rstd * (scaled - mean_of(scaled, axes) - normalized * mean_of(scaled * normalized, axes))
    return dx, sum_over(dy * normalized, others), sum_over(dy, others)


@expander(normalize.RMS_NORM)
def rms_norm(x: Tensor, gamma: Tensor, *, attrs: Attrs) -> tuple[Tensor, Tensor]:
    """(x * r * gamma, r) with r = 1 / sqrt(mean(x^2) + epsilon)"""
    axes = tuple(range(x.ndim - gamma.ndim, x.ndim))
    square = x * x
    rstd = ops.rsqrt((mean_of(square, axes) if axes else square) + attrs.float("epsilon", 1e-6))
    return x * rstd * gamma, rstd


@expander(norm_gradients.RMS_NORM_GRAD)
def rms_norm_grad(dy: Tensor, x: Tensor, rstd: Tensor, gamma: Tensor, *, attrs: Attrs) -> tuple[Tensor, Tensor]:
    """(r * (t - n * mean(t * n)), sum(dy * n)) with t = dy * gamma, n = x * r"""
    axes, others = tuple(range(x.ndim - gamma.ndim, x.ndim)), tuple(range(x.ndim - gamma.ndim))
    normalized, scaled = x * rstd, dy * gamma
    product = scaled * normalized
    dx = rstd * (scaled - normalized * (mean_of(product, axes) if axes else product))
    return dx, sum_over(dy * normalized, others)


@expander(normalize.BIAS_ADD, wide=False)
def bias_add(x: Tensor, bias: Tensor, *, attrs: Attrs) -> Tensor:
    """x + bias along the channel axis"""
    return x + along(bias, channel_axis(x.ndim, attrs), x.ndim)


@expander(normalize.BIAS_ADD_GRAD)
def bias_add_grad(dy: Tensor, *, attrs: Attrs) -> Tensor:
    """The sum over all axes but that of the channels; matrices and rank 3 have them last whatever the format says"""
    channel = dy.ndim - 1 if dy.ndim <= 3 else channel_axis(dy.ndim, attrs)
    return ops.reduce_sum(dy, tuple(axis for axis in range(dy.ndim) if axis != channel))


def along(vector: Tensor, axis: int, rank: int) -> Tensor:
    """The ``vector`` shaped so that it broadcasts along one ``axis`` of a tensor of so many axes (``rank``)."""
    following = rank - 1 - axis
    return vector if following == 0 else ops.reshape(vector, (*vector.shape, *(1,) * following))
