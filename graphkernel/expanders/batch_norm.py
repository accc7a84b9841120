"""Batch normalisation in inference and training, and its gradient.

Parameters are brought to the rank of x before anything is computed, and statistics back to vectors at the end, so that the
reshapes stand at the rims of the kernel and a target whose kernels hold none loses nothing.
"""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.base import expander
from graphkernel.expanders.dtypes import like_dtype, like_operands, one_dtype
from graphkernel.expanders.means import count_of, moments
from graphkernel.ops import Tensor
from graphkernel.ops.composite import batch_normalization
from graphkernel.ops.composite.batch_normalization import channel_axis
from kernelgen.tensor.types import Attrs


@expander(batch_normalization.BATCH_NORM)
def batch_norm(*operands: Tensor, attrs: Attrs) -> Tensor | tuple[Tensor, ...]:
    """(x - mean) * (scale / sqrt(variance + epsilon)) + bias; in training with the batch's own mean and variance

    Training also gives (1 - momentum) * mean + momentum * batch mean, the same of the unbiased variance, the batch's
    mean, and 1 / sqrt(variance + epsilon).
    """
    x, *vectors = one_dtype(*operands)
    scale, bias, mean, variance = (channel(vector, x, attrs) for vector in vectors)
    if not attrs.bool("is_training", False):
        y = (x - mean) * (scale / ops.sqrt(variance + attrs.float("epsilon", 1e-5))) + bias
        return like_dtype(y, operands[0])
    axes, momentum = other_axes(x, attrs), attrs.float("momentum", 0.1)
    count = count_of(x, axes)
    batch_mean, batch_variance = moments(x, axes)
    rstd = ops.rsqrt(batch_variance + attrs.float("epsilon", 1e-5))
    statistics = (
        (1.0 - momentum) * mean + momentum * batch_mean,
        (1.0 - momentum) * variance + momentum * (batch_variance * _correction(count)),
        batch_mean,
        rstd,
    )
    results = (
        (scale * rstd) * (x - batch_mean) + bias,
        *(ops.reshape(value, vectors[0].shape) for value in statistics),
    )
    return like_operands(results, (operands[0], *[operands[1]] * 4))


def _correction(count: Tensor | float) -> Tensor | float:
    """count / (count - 1), which makes a variance unbiased; 1 element is left alone."""
    return count / max(count - 1.0, 1.0) if isinstance(count, float) else count / ops.maximum(count - 1.0, 1.0)


@expander(batch_normalization.BATCH_NORM_GRAD)
def batch_norm_grad(*operands: Tensor, attrs: Attrs) -> tuple[Tensor, ...]:
    """(scale * r * (dy - (sum(dy) / count + n * (sum(dy * n) / count))), sum(dy * n), sum(dy)) with n = (x - mean) * r

    r is the 1 / sqrt(variance + epsilon) that BatchNorm gave. Outside of training it is made from the running variance,
    and dx is scale * r * dy.
    """
    dy, x, *vectors = one_dtype(*operands)
    scale, mean, spread = (channel(vector, x, attrs) for vector in vectors)
    training, axes = attrs.bool("is_training", False), other_axes(x, attrs)
    rstd = spread if training else ops.rsqrt(spread + attrs.float("epsilon", 1e-5))
    normalized = (x - mean) * rstd
    dbias, dscale = (ops.reduce_sum(value, axes, keep_dims=True) for value in (dy, dy * normalized))
    count = count_of(x, axes)
    inner = dy - (dbias / count + normalized * (dscale / count)) if training else dy
    gradients = (ops.reshape(value, vectors[0].shape) for value in (dscale, dbias))
    return like_operands((inner * (scale * rstd), *gradients), (operands[1], operands[2], operands[2]))


def other_axes(x: Tensor, attrs: Attrs) -> tuple[int, ...]:
    """All axes but that of the channels."""
    return tuple(axis for axis in range(x.ndim) if axis != channel_axis(x.ndim, attrs))


def channel(vector: Tensor, x: Tensor, attrs: Attrs) -> Tensor:
    """One number a channel, so shaped that it broadcasts against x."""
    following = x.ndim - 1 - channel_axis(x.ndim, attrs)
    return vector if following == 0 else ops.reshape(vector, (*vector.shape, *(1,) * following))
