"""Losses. They take logits where they can, so that no probability is rounded to 0 or 1 before its logarithm is taken."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from graphkernel import ops
from graphkernel.expanders.accurate import log1p_by_log
from graphkernel.expanders.activation import logistic
from graphkernel.expanders.base import expander
from graphkernel.expanders.means import mean_of
from graphkernel.ops import Tensor
from graphkernel.ops.composite import losses
from graphkernel.ops.composite.losses import LOWEST_LOGARITHM
from kernelgen.tensor.types import Attrs

Function = Callable[[Tensor], Tensor]


@expander(losses.SOFTMAX_CROSS_ENTROPY_WITH_LOGITS)
def softmax_cross_entropy_with_logits(logits: Tensor, labels: Tensor, *, attrs: Attrs) -> tuple[Tensor, Tensor]:
    """(-sum(labels * (s - log(sum(e)))), e / sum(e) - labels) with s = logits - max(logits) and e = exp(s)

    MindSpore takes the logarithm of a probability that it holds above 1e-6, so a loss beyond 13.8 is wrong there.
    """
    shifted = logits - ops.reduce_max(logits, -1, keep_dims=True)
    e = ops.exp(shifted)
    total = ops.reduce_sum(e, -1, keep_dims=True)
    loss = -ops.reduce_sum(labels * (shifted - ops.log(total)), -1)
    return loss, e / total - labels


def _sigmoid_cross_entropy(x: Tensor, z: Tensor, *, attrs: Attrs, log1p: Function = ops.log1p) -> Tensor:
    """max(x, 0) - x * z + log(1 + exp(-|x|))"""
    return ops.maximum(x, 0) - x * z + log1p(ops.exp(-abs(x)))


SIGMOID_CROSS_ENTROPY = expander(
    losses.SIGMOID_CROSS_ENTROPY_WITH_LOGITS, special={"ascend": partial(_sigmoid_cross_entropy, log1p=log1p_by_log)}
)(_sigmoid_cross_entropy)


@expander(losses.SIGMOID_CROSS_ENTROPY_WITH_LOGITS_GRAD)
def sigmoid_cross_entropy_grad(x: Tensor, z: Tensor, dout: Tensor, *, attrs: Attrs) -> Tensor:
    """(1 / (1 + exp(-x)) - z) * dout"""
    return (logistic(x) - z) * dout


def _binary_cross_entropy(
    p: Tensor, z: Tensor, weight: Tensor | None = None, *, attrs: Attrs, of_rest: Function = lambda p: ops.log1p(-p)
) -> Tensor:
    """reduce(-(z * max(log(p), -100) + (1 - z) * max(log(1 - p), -100)) * weight)"""
    yes, no = (ops.maximum(logarithm, LOWEST_LOGARITHM) for logarithm in (ops.log(p), of_rest(p)))
    loss = -(z * yes + (1.0 - z) * no)
    return reduced(loss if weight is None else loss * weight, attrs)


BINARY_CROSS_ENTROPY = expander(
    losses.BINARY_CROSS_ENTROPY, special={"ascend": partial(_binary_cross_entropy, of_rest=lambda p: ops.log(1.0 - p))}
)(_binary_cross_entropy)


def _with_logits(
    x: Tensor, z: Tensor, weight: Tensor, positive: Tensor, *, attrs: Attrs, log1p: Function = ops.log1p
) -> Tensor:
    """reduce(weight * ((1 - z) * x + (1 + (pos_weight - 1) * z) * (max(-x, 0) + log(1 + exp(-|x|)))))"""
    softplus = ops.maximum(-x, 0) + log1p(ops.exp(-abs(x)))
    return reduced(weight * ((1.0 - z) * x + (1.0 + (positive - 1.0) * z) * softplus), attrs)


BCE_WITH_LOGITS = expander(losses.BCE_WITH_LOGITS_LOSS, special={"ascend": partial(_with_logits, log1p=log1p_by_log)})(
    _with_logits
)


def reduced(loss: Tensor, attrs: Attrs) -> Tensor:
    """The loss itself, its mean or its sum, as the attribute ``reduction`` says."""
    axes = tuple(range(loss.ndim))
    match attrs.str("reduction", "mean"):
        case "none":
            return loss
        case "sum":
            return ops.reduce_sum(loss, axes) if axes else loss
        case _:
            return mean_of(loss, axes, keep_dims=False) if axes else loss
