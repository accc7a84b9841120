"""Optimizer steps: pure arithmetic on parameters, moments and scalars. That results land in parameters is said by the
aliases of the graph, so there is nothing to assign here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from graphkernel import ops
from graphkernel.expanders.accurate import expm1_by_exp
from graphkernel.expanders.base import expander
from graphkernel.expanders.dtypes import like_operands, one_dtype
from graphkernel.ops import Tensor
from graphkernel.ops.composite import clipping, optimizers
from kernelgen.tensor.types import Attrs

Function = Callable[[Tensor], Tensor]


@expander(optimizers.ADAM)
def adam(*operands: Tensor, attrs: Attrs) -> tuple[Tensor, ...]:
    """m += (1 - b1) * (g - m); v += (1 - b2) * (g^2 - v); var -= lr * sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + epsilon)"""
    var, m, v, power1, power2, lr, beta1, beta2, epsilon, grad = one_dtype(*operands)
    m = m + (1.0 - beta1) * (grad - m)
    v = v + (1.0 - beta2) * (grad * grad - v)
    rate = lr * ops.sqrt(1.0 - power2) / (1.0 - power1)
    step = beta1 * m + (1.0 - beta1) * grad if attrs.bool("use_nesterov", False) else m
    return like_operands((var - rate * step / (ops.sqrt(v) + epsilon), m, v), operands[:3])


@expander(optimizers.ADAM_WEIGHT_DECAY)
def adam_weight_decay(*operands: Tensor, attrs: Attrs) -> tuple[Tensor, ...]:
    """m = b1 * m + (1 - b1) * g; v = b2 * v + (1 - b2) * g^2; var -= lr * (m / (sqrt(v) + epsilon) + decay * var)"""
    var, m, v, lr, beta1, beta2, epsilon, decay, grad = one_dtype(*operands)
    m = beta1 * m + (1.0 - beta1) * grad
    v = beta2 * v + (1.0 - beta2) * grad * grad
    return like_operands((var - lr * (m / (ops.sqrt(v) + epsilon) + decay * var), m, v), operands[:3])


def _adam_apply_one(*operands: Tensor, attrs: Attrs) -> tuple[Tensor, ...]:
    """v = b2 * v + (1 - b2) * g^2; m = b1 * m + (1 - b1) * g; var -= lr * (m / (sqrt(v) + epsilon) + decay * var)"""
    grad, v, m, var, lr, beta1, rest1, beta2, rest2, decay, epsilon = one_dtype(*operands)
    v = v * beta2 + grad * grad * rest2
    m = m * beta1 + grad * rest1
    return like_operands((v, m, var - lr * (m / (ops.sqrt(v) + epsilon) + decay * var)), operands[1:4])


ADAM_APPLY_ONE = expander(optimizers.ADAM_APPLY_ONE_WITH_DECAY)(_adam_apply_one)
ADAM_APPLY_ONE_ASSIGN = expander(optimizers.ADAM_APPLY_ONE_WITH_DECAY_ASSIGN)(_adam_apply_one)


@expander(optimizers.APPLY_MOMENTUM)
def apply_momentum(*operands: Tensor, attrs: Attrs) -> tuple[Tensor, ...]:
    """a = a * momentum + g; var -= lr * a, or lr * (g + a * momentum) with Nesterov"""
    var, accumulation, lr, grad, momentum = one_dtype(*operands)
    scale = attrs.float("gradient_scale", 1.0)
    grad = grad if scale == 1.0 else grad * scale
    accumulation = accumulation * momentum + grad
    step = grad + accumulation * momentum if attrs.bool("use_nesterov", False) else accumulation
    return like_operands((var - lr * step, accumulation), operands[:2])


def _lamb_optimizer(*operands: Tensor, attrs: Attrs, expm1: Function = ops.expm1) -> tuple[Tensor, ...]:
    """v, m as in Adam; update = m' / (sqrt(v') + epsilon) + var * decay * use_weight with m' = m / (1 - b1^step), v' likewise

    The power is taken as exp(step * log(b)), and 1 - exp by expm1, since b2^step is close to 1 in the first steps.
    """
    grad, v, m, var, beta1, rest1, beta2, rest2, epsilon, step, use_weight, decay = one_dtype(*operands)
    v = v * beta2 + grad * grad * rest2
    m = m * beta1 + grad * rest1
    unbiased_m, unbiased_v = m / -expm1(step * ops.log(beta1)), v / -expm1(step * ops.log(beta2))
    update = unbiased_m / (ops.sqrt(unbiased_v) + epsilon) + var * decay * use_weight
    return like_operands((update, v, m), operands[:3])


LAMB_OPTIMIZER = expander(
    optimizers.LAMB_APPLY_OPTIMIZER_ASSIGN, special={"ascend": partial(_lamb_optimizer, expm1=expm1_by_exp)}
)(_lamb_optimizer)


@expander(optimizers.LAMB_APPLY_WEIGHT_ASSIGN)
def lamb_apply_weight_assign(*operands: Tensor, attrs: Attrs) -> tuple[Tensor, ...]:
    """var - lr * ratio * update with ratio = w_norm / g_norm where both are positive, else 1

    MindSpore multiplies by masks and needs a tiny number in the divisor; a selection needs none.
    """
    w_norm, g_norm, lr, update, var = one_dtype(*operands)
    ratio = ops.select((w_norm > 0) & (g_norm > 0), w_norm / g_norm, 1)
    return like_operands((var - lr * ratio * update,), operands[4:])


@expander(clipping.CLIP_BY_NORM)
def clip_by_norm(x: Tensor, bound: Tensor, *, attrs: Attrs) -> Tensor:
    """x * (clip_norm / n) where n > clip_norm, else x, with n = sqrt(sum(x^2))"""
    axes = attrs.ints("axis", ()) or tuple(range(x.ndim))
    norm = ops.sqrt(ops.reduce_sum(x * x, axes, keep_dims=True) if axes else x * x)
    return ops.select(norm > bound, x * (bound / norm), x)


@expander(clipping.CLIP_BY_NORM_NO_DIV_SUM)
def clip_by_norm_no_div_sum(x: Tensor, threshold: Tensor, other: Tensor, least: Tensor, *, attrs: Attrs) -> Tensor:
    """max(sqrt(x) where x > threshold, else x; least): the root is taken of ``other`` where it is not used"""
    larger = x > threshold
    return ops.maximum(ops.select(larger, ops.sqrt(ops.select(larger, x, other)), x), least)
