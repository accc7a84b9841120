"""Optimizer steps. Inside the graph they are pure; that results land in parameters is said by ``Graph.aliases``.

Scalars (learning rates, decays) are operands of shape ``[]``, as in MindSpore; numbers are
taken as float32, so that a small epsilon survives beside float16 tensors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.ops.composite.exact import Formula, exact
from kernelgen.tensor.operator import Attribute, InferRule, Kind, Operator, Traits
from kernelgen.tensor.operators.attributes import flag, real_number
from kernelgen.tensor.operators.families import Array
from kernelgen.tensor.operators.type_rules import floating
from kernelgen.tensor.types import Attrs, TensorType

Types = tuple[TensorType, ...]


def parameter_rule(names: str, *results: str) -> InferRule:
    """Operands called ``names``: those in upper case are tensors of one shape, the others scalars. Results have the types
    of the operands that they are called after."""
    words = names.split()

    def rule(types: Types, attrs: Attrs) -> Types:
        named = dict(zip(words, types, strict=True))
        shape = next(type_.shape for name, type_ in named.items() if name.isupper())
        for name, type_ in named.items():
            if not floating(type_.dtype):
                raise TypeRuleError(f"{name.lower()} must be a float, got {type_}")
            if name.isupper() and type_.shape != shape:
                raise TypeRuleError(f"{name.lower()} must have the parameter's shape, got {type_}")
            if not name.isupper() and (type_.size != 1 or type_.rank > len(shape)):
                raise TypeRuleError(f"{name} must be a scalar, got {type_}")
        return tuple(named[result] for result in results)

    return rule


def _optimizer(
    name: str,
    operands: str,
    results: Sequence[str],
    formula: Formula,
    attributes: tuple[str | Attribute, ...] = (),
    doc: str = "",
    *,
    written: str = "",
) -> Operator:
    """An optimizer step whose results called ``written`` go back into the operands of these names."""
    names, rule = operands.split(), parameter_rule(operands, *results)
    text = f"({', '.join(operands.lower().split())}) -> ({', '.join(results).lower()}). {doc}".strip()
    writes = tuple((results.index(one), names.index(one)) for one in written.split())
    traits = Traits(numbers="float32", writes=writes)
    return exact(name, Kind.ELEMWISE, len(names), rule, formula, attributes=attributes, doc=text, traits=traits)


def _adam(
    var: Array, m: Array, v: Array, beta1_power: Array, beta2_power: Array, lr: Array, beta1: Array, beta2: Array,
    epsilon: Array, gradient: Array, *, attrs: Attrs,
) -> tuple[Array, ...]:  # fmt: skip
    m = m + (1 - beta1) * (gradient - m)
    v = v + (1 - beta2) * (gradient * gradient - v)
    rate = lr * np.sqrt(1 - beta2_power) / (1 - beta1_power)
    step = beta1 * m + (1 - beta1) * gradient if attrs.bool("use_nesterov", False) else m
    return var - rate * step / (np.sqrt(v) + epsilon), m, v


ADAM = _optimizer(
    "Adam",
    "VAR M V beta1_power beta2_power lr beta1 beta2 epsilon GRADIENT",
    ("VAR", "M", "V"),
    _adam,
    (flag("use_nesterov"), "use_locking"),
    "One step of Adam; beta1_power and beta2_power are the betas to the power of the step. var, m and v in place.",
    written="VAR M V",
)


def _adam_weight_decay(
    var: Array, m: Array, v: Array, lr: Array, beta1: Array, beta2: Array, epsilon: Array, decay: Array,
    gradient: Array, *, attrs: Attrs,
) -> tuple[Array, ...]:  # fmt: skip
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient * gradient
    return var - lr * (m / (np.sqrt(v) + epsilon) + decay * var), m, v


ADAM_WEIGHT_DECAY = _optimizer(
    "AdamWeightDecay",
    "VAR M V lr beta1 beta2 epsilon decay GRADIENT",
    ("VAR", "M", "V"),
    _adam_weight_decay,
    ("use_locking",),
    "One step of Adam with decoupled weight decay, without bias correction, as in MindSpore. var, m and v in place.",
    written="VAR M V",
)


def _adam_apply_one(
    gradient: Array, v: Array, m: Array, var: Array, lr: Array, beta1: Array, one_minus_beta1: Array, beta2: Array,
    one_minus_beta2: Array, decay: Array, epsilon: Array, *, attrs: Attrs,
) -> tuple[Array, ...]:  # fmt: skip
    v = v * beta2 + gradient * gradient * one_minus_beta2
    m = m * beta1 + gradient * one_minus_beta1
    return v, m, var - lr * (m / (np.sqrt(v) + epsilon) + decay * var)


_APPLY_ONE = "GRADIENT V M VAR lr beta1 one_minus_beta1 beta2 one_minus_beta2 decay epsilon"
ADAM_APPLY_ONE_WITH_DECAY = _optimizer("AdamApplyOneWithDecay", _APPLY_ONE, ("V", "M", "VAR"), _adam_apply_one)
ADAM_APPLY_ONE_WITH_DECAY_ASSIGN = _optimizer(
    "AdamApplyOneWithDecayAssign", _APPLY_ONE, ("V", "M", "VAR"), _adam_apply_one, doc="In place.", written="V M VAR"
)


def _apply_momentum(
    var: Array, accumulation: Array, lr: Array, gradient: Array, momentum: Array, *, attrs: Attrs
) -> tuple[Array, Array]:
    grad = gradient * attrs.float("gradient_scale", 1.0)
    accumulation = accumulation * momentum + grad
    step = grad + accumulation * momentum if attrs.bool("use_nesterov", False) else accumulation
    return var - lr * step, accumulation


APPLY_MOMENTUM = _optimizer(
    "ApplyMomentum",
    "VAR ACCUMULATION lr GRADIENT momentum",
    ("VAR", "ACCUMULATION"),
    _apply_momentum,
    (flag("use_nesterov"), real_number("gradient_scale", 1.0), "use_locking"),
    "accumulation * momentum + gradient, and var minus lr times that. Both in place.",
    written="VAR ACCUMULATION",
)


def _lamb_optimizer(
    gradient: Array, v: Array, m: Array, var: Array, beta1: Array, one_minus_beta1: Array, beta2: Array,
    one_minus_beta2: Array, epsilon: Array, step: Array, use_weight: Array, decay: Array, *, attrs: Attrs,
) -> tuple[Array, ...]:  # fmt: skip
    v = v * beta2 + gradient * gradient * one_minus_beta2
    m = m * beta1 + gradient * one_minus_beta1
    unbiased_m, unbiased_v = m / -np.expm1(step * np.log(beta1)), v / -np.expm1(step * np.log(beta2))
    return unbiased_m / (np.sqrt(unbiased_v) + epsilon) + var * decay * use_weight, v, m


LAMB_APPLY_OPTIMIZER_ASSIGN = _optimizer(
    "LambApplyOptimizerAssign",
    "GRADIENT V M VAR beta1 one_minus_beta1 beta2 one_minus_beta2 epsilon step use_weight decay",
    ("GRADIENT", "V", "M"),
    _lamb_optimizer,
    doc="The first result is the update that LambApplyWeightAssign takes; v and m in place.",
    written="V M",
)


def _lamb_weight(w_norm: Array, g_norm: Array, lr: Array, update: Array, var: Array, *, attrs: Attrs) -> Array:
    ratio = np.where((w_norm > 0) & (g_norm > 0), w_norm / g_norm, 1.0)
    return var - lr * ratio * update


LAMB_APPLY_WEIGHT_ASSIGN = _optimizer(
    "LambApplyWeightAssign",
    "w_norm g_norm lr UPDATE VAR",
    ("VAR",),
    _lamb_weight,
    doc="var - lr * ratio * update in place; the ratio of the norms where both are positive, else 1.",
    written="VAR",
)
