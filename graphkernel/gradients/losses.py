"""Gradients of losses, by logits or probabilities, by labels and by weights."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.base import Declined
from graphkernel.expanders.means import count_of
from graphkernel.gradients.base import Application, Cotangents, broadcast, gradient, pointwise
from graphkernel.ops import Tensor
from graphkernel.ops.composite import losses
from graphkernel.ops.composite.losses import LOWEST_LOGARITHM

LEAST = 1e-12  # of p * (1 - p), as in torch, so that a loss cut off at its greatest value has a finite gradient


@gradient(losses.SOFTMAX_CROSS_ENTROPY_WITH_LOGITS)
def softmax_cross_entropy(of: Application) -> Cotangents | Declined:
    """dy * the gradient that comes with the loss, if the labels of each row add up to 1; -dy * LogSoftmax(logits)"""
    if not of.sees_only(0):
        return Declined("the loss sees the gradient that it gives")
    logits, _ = of.operands
    dy = ops.expand_dims(of.dy, -1)
    return [dy * of.results[1], -dy * ops.log_softmax(logits) if of.wanted[1] else None]


SIGMOID_CROSS_ENTROPY = pointwise(
    losses.SIGMOID_CROSS_ENTROPY_WITH_LOGITS,
    lambda dy, r, x, z: ops.sigmoid_cross_entropy_with_logits_grad(x, z, dy),
    lambda dy, r, x, z: -dy * x,
)
SIGMOID_CROSS_ENTROPY_GRAD = pointwise(
    losses.SIGMOID_CROSS_ENTROPY_WITH_LOGITS_GRAD,
    lambda g, r, x, z, dout: ops.sigmoid_grad(ops.sigmoid(x), g * dout),
    lambda g, r, x, z, dout: -g * dout,
    lambda g, r, x, z, dout: g * (ops.sigmoid(x) - z),
)


def _each(of: Application) -> Tensor:
    """The cotangent of the loss of each element."""
    x = of.operands[0]
    if of.attrs.str("reduction", "mean") != "mean":
        return of.dy
    return of.dy / count_of(x, range(x.ndim))


def _logarithms(p: Tensor) -> tuple[Tensor, Tensor]:
    return ops.maximum(ops.log(p), LOWEST_LOGARITHM), ops.maximum(ops.log1p(-p), LOWEST_LOGARITHM)


@gradient(losses.BINARY_CROSS_ENTROPY)
def binary_cross_entropy(of: Application) -> Cotangents:
    """dy * (p - z) / max(p * (1 - p), 1e-12); dy * (log(1 - p) - log(p)); both by weight; the loss without it"""
    (p, z, *weight), dy = of.operands, _each(of)
    scaled = dy * weight[0] if weight else dy
    yes, no = _logarithms(p)
    return broadcast(
        of,
        lambda: _whole(scaled * (p - z) / ops.maximum(p * (1.0 - p), LEAST), p),
        lambda: _whole(scaled * (no - yes), z),
        *[lambda: dy * -(z * yes + (1.0 - z) * no)] * len(weight),
    )


@gradient(losses.BCE_WITH_LOGITS_LOSS)
def bce_with_logits(of: Application) -> Cotangents:
    """dy * weight * (1 - z - c * (1 - Sigmoid(x))) with c = 1 + (p - 1) * z; the derivatives by z, weight and p"""
    (x, z, weight, positive), dy = of.operands, _each(of)
    factor, softplus = 1.0 + (positive - 1.0) * z, ops.softplus(-x)
    scaled = dy * weight
    return broadcast(
        of,
        lambda: _whole(scaled * (1.0 - z - factor * ops.sigmoid(-x)), x),
        lambda: _whole(scaled * ((positive - 1.0) * softplus - x), z),
        lambda: dy * ((1.0 - z) * x + factor * softplus),
        lambda: scaled * z * softplus,
    )


def _whole(x: Tensor, like: Tensor) -> Tensor:
    """Repeated to the shape of an operand that all others broadcast to."""
    return x if x.shape == like.shape else ops.broadcast_to(x, like.shape)
