"""Gradients of softmax, norms, biases and dropout, by MindSpore's gradient operators.

Those of norms take the cotangent of the first result only: where the loss sees the statistics too, or where there is no
gradient operator, the expansion is differentiated.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphkernel import ops
from graphkernel.expanders.base import Declined
from graphkernel.expanders.means import summed_to
from graphkernel.gradients.base import Application, Cotangents, gradient
from graphkernel.gradients.reductions import spread
from graphkernel.ops import Tensor
from graphkernel.ops.composite import batch_normalization, clipping, normalize
from graphkernel.ops.composite.batch_normalization import channel_axis
from graphkernel.ops.library import random
from kernelgen.tensor.operators.type_rules import axes_of

STATISTICS = Declined("the loss sees its statistics")


@gradient(normalize.SOFTMAX)
def softmax(of: Application) -> Cotangents:
    """SoftmaxGrad"""
    return [ops.softmax_grad(of.results[0], of.dy, of.attrs.ints("axis", (-1,)))]


@gradient(normalize.LOG_SOFTMAX)
def log_softmax(of: Application) -> Cotangents:
    """LogSoftmaxGrad"""
    return [ops.log_softmax_grad(of.results[0], of.dy, of.attrs.ints("axis", (-1,)))]


@gradient(normalize.LAYER_NORM)
def layer_norm(of: Application) -> Cotangents | Declined:
    """LayerNormGrad"""
    if not of.sees_only(0):
        return STATISTICS
    (x, gamma, _), (_, mean, variance) = of.operands, of.results
    axes = (of.attrs.int("begin_norm_axis", -1), of.attrs.int("begin_params_axis", -1))
    return ops.layer_norm_grad(x, of.dy, variance, mean, gamma, *axes, epsilon=of.attrs.float("epsilon", 1e-7))


@gradient(normalize.RMS_NORM)
def rms_norm(of: Application) -> Cotangents | Declined:
    """RmsNormGrad"""
    if not of.sees_only(0):
        return STATISTICS
    (x, gamma), (_, rstd) = of.operands, of.results
    return ops.rms_norm_grad(of.dy, x, rstd, gamma)


@gradient(batch_normalization.BATCH_NORM)
def batch_norm(of: Application) -> Cotangents | Declined:
    """BatchNormGrad; with known statistics also -dbias * scale * r and -dscale * scale * r^2 / 2, r being 1 / deviation"""
    if not of.sees_only(0):
        return STATISTICS
    x, scale, _, mean, variance = of.operands
    training, epsilon = of.attrs.bool("is_training", False), of.attrs.float("epsilon", 1e-5)
    used = (of.results[3], of.results[4]) if training else (mean, variance)
    layout = of.attrs.str("data_format", "NCHW")
    dx, dscale, dbias = ops.batch_norm_grad(of.dy, x, scale, *used, epsilon, layout, is_training=training)
    if training or not any(of.wanted[3:]):
        return [dx, dscale, dbias, None, None]
    rstd = ops.rsqrt(variance + epsilon)
    return [dx, dscale, dbias, -dbias * scale * rstd, -0.5 * dscale * scale * rstd * rstd]


@gradient(normalize.BIAS_ADD)
def bias_add(of: Application) -> Cotangents:
    """dy; BiasAddGrad"""
    rank, channel = of.dy.ndim, channel_axis(of.dy.ndim, of.attrs)
    if rank == 3 and channel == 1:  # of rank 3 BiasAddGrad always keeps the last axis
        return [of.dy, ops.reduce_sum(of.dy, (0, 2))]
    return [of.dy, ops.bias_add_grad(of.dy, of.attrs.str("data_format", "NCHW"))]


@gradient(normalize.BIAS_ADD_GRAD)
def bias_add_grad(of: Application) -> Cotangents:
    """dy along all axes but that of the channels"""
    (x,) = of.operands
    channel = x.ndim - 1 if x.ndim <= 3 else channel_axis(x.ndim, of.attrs)
    shape = tuple(extent if axis == channel else 1 for axis, extent in enumerate(x.shape))
    return [spread(ops.reshape(of.dy, shape), x.shape)]


@gradient(random.DROPOUT)
def dropout(of: Application) -> Cotangents:
    """DropoutGrad with the mask that was drawn"""
    _, mask = of.results
    return [ops.dropout_grad(of.dy, mask, keep_prob=of.attrs.float("keep_prob", 0.5)), *[None] * (len(of.operands) - 1)]


@gradient(clipping.CLIP_BY_NORM)
def clip_by_norm(of: Application) -> Cotangents:
    """dy * clip_norm / norm - x * sum(dy * clip_norm * x) / norm^3 and dy * x / norm where x was scaled, else dy and 0"""
    (x, bound), dy = of.operands, of.dy
    axes = axes_of(of.attrs.ints("axis", ()), x.ndim)
    norm = ops.sqrt(_sum(x * x, axes))
    clipped = norm > bound
    scaled = _sum(ops.select(clipped, dy * bound * x, 0), axes)
    shrinking = ops.select(norm > 0, scaled / (norm * norm * norm), 0)
    by_bound = ops.select(clipped, dy * x / norm, 0)
    return [ops.select(clipped, dy * bound / norm, dy) - x * shrinking, summed_to(by_bound, bound.shape)]


def _sum(x: Tensor, axes: Sequence[int]) -> Tensor:
    return ops.reduce_sum(x, axes, keep_dims=True) if axes else x
