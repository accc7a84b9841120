"""Python functions of losses, optimizers, norms with statistics and gradients; see :mod:`graphkernel.ops.functions.pointwise`.

The optimizers that write into parameters do so here as ``ops.assign`` does: their operands must be inputs of the graph,
and the results are the new contents. On numpy arrays nothing is written, the results are returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphkernel.errors import FrontendError
from graphkernel.ops.composite import (
    activation_ext,
    batch_normalization,
    clipping,
    gradients,
    losses,
    norm_gradients,
    normalize,
    optimizers,
    softmax_gradients,
)
from graphkernel.ops.tensor.apply import TensorLike, apply, apply_all
from graphkernel.ops.tensor.arguments import Axes, normal_axes
from graphkernel.ops.tensor.tensor import Operand, Tensor, rank_of
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import extents
from kernelgen.tensor.operators.type_rules import axis_of
from kernelgen.tensor.types import Dim, DType, Sym, dtype


def extent(value: Dim, like: Tensor, dst_type: str | DType = "float32") -> Tensor:
    """A dim as a scalar of the trace that ``like`` belongs to: a constant when it is a number."""
    if not isinstance(value, Sym):
        return Tensor(like.builder.constant(value, dst_type), like.builder)
    node = like.builder.emit(extents.EXTENT, value=value, dst_type=dtype(dst_type).name)
    return Tensor(node, like.builder)


def mean_ext(x: TensorLike, axis: Axes = None, keep_dims: bool = False) -> TensorLike:
    """The mean over axes, as mint.mean."""
    return apply(normalize.MEAN_EXT, x, axis=normal_axes(axis, rank_of(x)), keep_dims=keep_dims)


def batch_norm(
    x: TensorLike,
    scale: Operand,
    bias: Operand,
    mean: Operand,
    variance: Operand,
    epsilon: float = 1e-5,
    momentum: float = 0.1,
    data_format: str = "NCHW",
    *,
    is_training: bool = False,
) -> Any:  # one result, in training five
    """Batch normalisation with known statistics; with ``is_training`` with those of the batch.

    In training the results are (y, running mean, running variance, batch mean, 1 / sqrt(batch variance + epsilon)); that
    the running statistics land in parameters is for ``ops.assign`` to say.
    """
    attrs: dict[str, object] = {"epsilon": float(epsilon)}
    if data_format != "NCHW":
        attrs["data_format"] = data_format
    if not is_training:
        return apply(batch_normalization.BATCH_NORM, x, scale, bias, mean, variance, **attrs)
    return apply_all(
        batch_normalization.BATCH_NORM,
        x,
        scale,
        bias,
        mean,
        variance,
        **attrs,
        is_training=True,
        momentum=float(momentum),
    )


def batch_norm_grad(
    dy: TensorLike,
    x: Operand,
    scale: Operand,
    mean: Operand,
    spread: Operand,
    epsilon: float = 1e-5,
    data_format: str = "NCHW",
    *,
    is_training: bool = False,
) -> tuple[TensorLike, TensorLike, TensorLike]:
    """(dx, dscale, dbias). In training ``mean`` and ``spread`` are the last two results of :func:`batch_norm`, otherwise
    the running mean and variance."""
    dx, dscale, dbias = apply_all(
        batch_normalization.BATCH_NORM_GRAD,
        dy,
        x,
        scale,
        mean,
        spread,
        epsilon=float(epsilon),
        data_format=data_format,
        is_training=is_training,
    )
    return dx, dscale, dbias


def layer_norm_grad(
    x: TensorLike,
    dy: Operand,
    variance: Operand,
    mean: Operand,
    gamma: Operand,
    begin_norm_axis: int = -1,
    begin_params_axis: int = -1,
    epsilon: float = 1e-7,
) -> tuple[TensorLike, TensorLike, TensorLike]:
    """(dx, dgamma, dbeta) of ``ops.layer_norm`` from its operand, dy, and the statistics that it gave."""
    norm, parameters = axis_of(begin_norm_axis, rank_of(x)), axis_of(begin_params_axis, rank_of(x))
    dx, dgamma, dbeta = apply_all(
        norm_gradients.LAYER_NORM_GRAD,
        x,
        dy,
        variance,
        mean,
        gamma,
        begin_norm_axis=norm,
        begin_params_axis=parameters,
        epsilon=float(epsilon),
    )
    return dx, dgamma, dbeta


def rms_norm_grad(dy: TensorLike, x: Operand, rstd: Operand, gamma: Operand) -> tuple[TensorLike, TensorLike]:
    """(dx, dgamma) of ``ops.rms_norm`` from dy, its operands, and the rstd that it gave."""
    dx, dgamma = apply_all(norm_gradients.RMS_NORM_GRAD, dy, x, rstd, gamma)
    return dx, dgamma


def softmax_cross_entropy_with_logits(logits: TensorLike, labels: Operand) -> tuple[TensorLike, TensorLike]:
    """(loss of each row, gradient of the loss by the logits) over the last axis."""
    loss, dlogits = apply_all(losses.SOFTMAX_CROSS_ENTROPY_WITH_LOGITS, logits, labels)
    return loss, dlogits


def softmax_grad(y: TensorLike, dy: Operand, axis: int | Sequence[int] = -1) -> TensorLike:
    """The gradient of ``ops.softmax`` from its result and dy."""
    return apply(softmax_gradients.SOFTMAX_GRAD, y, dy, axis=normal_axes(axis, rank_of(y)))


def softmax_backward(dy: TensorLike, y: Operand, dim: int = -1) -> TensorLike:
    """The gradient of ``ops.softmax`` from dy and its result."""
    return apply(softmax_gradients.SOFTMAX_BACKWARD, dy, y, dim=axis_of(dim, rank_of(y)))


def softmax_grad_ext(dy: TensorLike, y: Operand, scale: Operand, axis: int | Sequence[int] = -1) -> TensorLike:
    """(dy - sum(dy * y)) * y * scale."""
    return apply(softmax_gradients.SOFTMAX_GRAD_EXT, dy, y, scale, axis=normal_axes(axis, rank_of(dy)))


def log_softmax_grad(y: TensorLike, dy: Operand, axis: int | Sequence[int] = -1) -> TensorLike:
    """The gradient of ``ops.log_softmax`` from its result and dy."""
    return apply(softmax_gradients.LOG_SOFTMAX_GRAD, y, dy, axis=normal_axes(axis, rank_of(y)))


def maximum_grad(x: TensorLike, y: Operand, dout: Operand) -> tuple[TensorLike, TensorLike]:
    """(dx, dy) of ``ops.maximum``; equal operands give all to x."""
    dx, dy = apply_all(gradients.MAXIMUM_GRAD, x, y, dout)
    return dx, dy


def minimum_grad(x: TensorLike, y: Operand, dout: Operand) -> tuple[TensorLike, TensorLike]:
    """(dx, dy) of ``ops.minimum``; equal operands give all to x."""
    dx, dy = apply_all(gradients.MINIMUM_GRAD, x, y, dout)
    return dx, dy


def softplus_ext(x: TensorLike, beta: float = 1.0, threshold: float = 20.0) -> TensorLike:
    """log(1 + exp(beta * x)) / beta, x itself where beta * x > threshold."""
    return apply(activation_ext.SOFTPLUS_EXT, x, beta=float(beta), threshold=float(threshold))


def softplus_grad_ext(dy: TensorLike, x: Operand, beta: float = 1.0, threshold: float = 20.0) -> TensorLike:
    """The gradient of :func:`softplus_ext` from dy and its operand."""
    return apply(gradients.SOFTPLUS_GRAD_EXT, dy, x, beta=float(beta), threshold=float(threshold))


def elu_ext(x: TensorLike, alpha: float = 1.0) -> TensorLike:
    """x where x >= 0, else alpha * (exp(x) - 1)."""
    return apply(activation_ext.ELU_EXT, x, alpha=float(alpha))


def leaky_relu_ext(x: TensorLike, negative_slope: float = 0.01) -> TensorLike:
    """x where x >= 0, else negative_slope * x."""
    return apply(activation_ext.LEAKY_RELU_EXT, x, negative_slope=float(negative_slope))


def hshrink(x: TensorLike, lambd: float = 0.5) -> TensorLike:
    """0 where |x| <= lambd, else x."""
    return apply(activation_ext.HSHRINK, x, lambd=float(lambd))


def binary_cross_entropy(
    probabilities: TensorLike, labels: Operand, weight: Operand | None = None, reduction: str = "mean"
) -> TensorLike:
    """-(labels * log(p) + (1 - labels) * log(1 - p)) * weight, then none, mean or sum."""
    operands = (probabilities, labels) if weight is None else (probabilities, labels, weight)
    return apply(losses.BINARY_CROSS_ENTROPY, *operands, reduction=reduction)


def bce_with_logits_loss(
    logits: TensorLike, labels: Operand, weight: Operand, pos_weight: Operand, reduction: str = "mean"
) -> TensorLike:
    """The binary cross entropy of sigmoid(logits), pos_weight on the positive term; then none, mean or sum."""
    return apply(losses.BCE_WITH_LOGITS_LOSS, logits, labels, weight, pos_weight, reduction=reduction)


def clip_by_norm(x: TensorLike, clip_norm: Operand, axis: Axes = None) -> TensorLike:
    """x scaled down to the norm ``clip_norm`` where its norm over the axes is larger."""
    return apply(clipping.CLIP_BY_NORM, x, clip_norm, axis=normal_axes(axis, rank_of(x)))


def adam(
    var: Any, m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any,
    gradient: Any, use_nesterov: bool = False,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """One step of Adam; var, m and v are written in place. Scalars may be tensors or numbers."""
    scalars = (beta1_power, beta2_power, lr, beta1, beta2, epsilon)
    var, m, v = _in_place(optimizers.ADAM, var, m, v, *scalars, gradient, use_nesterov=use_nesterov)
    return var, m, v


def adam_weight_decay(
    var: Any, m: Any, v: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, decay: Any, gradient: Any
) -> tuple[Any, Any, Any]:
    """One step of Adam with decoupled weight decay; var, m and v are written in place."""
    var, m, v = _in_place(optimizers.ADAM_WEIGHT_DECAY, var, m, v, lr, beta1, beta2, epsilon, decay, gradient)
    return var, m, v


def adam_apply_one_with_decay(*operands: Any) -> tuple[Any, Any, Any]:
    """(v, m, var) from gradient, v, m, var, lr, beta1, 1 - beta1, beta2, 1 - beta2, decay and epsilon."""
    v, m, var = _in_place(optimizers.ADAM_APPLY_ONE_WITH_DECAY, *operands)
    return v, m, var


def adam_apply_one_with_decay_assign(*operands: Any) -> tuple[Any, Any, Any]:
    """:func:`adam_apply_one_with_decay` that writes v, m and var in place."""
    v, m, var = _in_place(optimizers.ADAM_APPLY_ONE_WITH_DECAY_ASSIGN, *operands)
    return v, m, var


def apply_momentum(
    var: Any,
    accumulation: Any,
    lr: Any,
    gradient: Any,
    momentum: Any,
    use_nesterov: bool = False,
    gradient_scale: float = 1.0,
) -> tuple[Any, Any]:
    """accumulation * momentum + gradient, and var minus lr times that; both are written in place."""
    attrs = {"use_nesterov": use_nesterov, "gradient_scale": float(gradient_scale)}
    var, accumulation = _in_place(optimizers.APPLY_MOMENTUM, var, accumulation, lr, gradient, momentum, **attrs)
    return var, accumulation


def lamb_apply_optimizer_assign(*operands: Any) -> tuple[Any, Any, Any]:
    """(update, v, m) from gradient, v, m, var, beta1, 1 - beta1, beta2, 1 - beta2, epsilon, step, use_weight and decay;
    v and m are written in place."""
    update, v, m = _in_place(optimizers.LAMB_APPLY_OPTIMIZER_ASSIGN, *operands)
    return update, v, m


def lamb_apply_weight_assign(w_norm: Any, g_norm: Any, lr: Any, update: Any, var: Any) -> Any:
    """var - lr * ratio * update, written in place; the ratio is w_norm / g_norm where both are positive, else 1."""
    (result,) = _in_place(optimizers.LAMB_APPLY_WEIGHT_ASSIGN, w_norm, g_norm, lr, update, var)
    return result


def _in_place(op: Operator, *operands: Any, **attrs: object) -> tuple[Any, ...]:
    """Applies the operator; results that it writes into inputs of a trace are noted there. Numbers are float32."""
    traced = next((operand for operand in operands if isinstance(operand, Tensor)), None)
    given = [_scalar(operand, traced) for operand in operands]
    results = apply_all(op, *given, **attrs)
    if traced is None:
        return results
    for result, position in optimizers.WRITES.get(op.name, ()):
        target = given[position]
        if not target.value.is_parameter:
            raise FrontendError(
                f"{op.name}: operand {position} is written into and must be an input of the graph, "
                f"this is a {target.value.op.name}"
            )
        traced.builder.effects.append((target.value, results[result].value))
    return results


def _scalar(operand: Any, traced: Tensor | None) -> Any:
    """A number as a float32 scalar, so that a small epsilon survives beside float16 tensors."""
    if not isinstance(operand, bool | int | float):
        return operand
    if traced is None:
        return np.asarray(operand, np.float32)
    return Tensor(traced.builder.constant(operand, "float32"), traced.builder)
