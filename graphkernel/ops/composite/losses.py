"""Losses and the gradients that MindSpore gives along with them."""

from __future__ import annotations

import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.ops.composite.activation import sigmoid
from graphkernel.ops.composite.exact import exact, exact_elementwise
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.attributes import text
from kernelgen.tensor.operators.families import Array
from kernelgen.tensor.operators.type_rules import broadcast_shapes, expect_dtype, floating, reduced_shape
from kernelgen.tensor.types import Attrs, TensorType

Types = tuple[TensorType, ...]

LOWEST_LOGARITHM = -100.0  # of a probability in BinaryCrossEntropy, so that 0 * log(0) is 0
REDUCTIONS = ("none", "mean", "sum")


def _cross_entropy_type(types: Types, attrs: Attrs) -> Types:
    logits, labels = types
    expect_dtype(floating, *types)
    if logits.shape != labels.shape or logits.rank < 1:
        raise TypeRuleError(f"logits and labels must have one shape of rank 1 at least, got {logits} and {labels}")
    return (TensorType(logits.shape[:-1], logits.dtype), logits)


def _cross_entropy(logits: Array, labels: Array, *, attrs: Attrs) -> tuple[Array, Array]:
    """(logits, labels) -> (loss of each row, gradient of the loss by the logits), over the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True, initial=-np.inf)
    total = np.exp(shifted).sum(axis=-1, keepdims=True)
    loss = -(labels * (shifted - np.log(total))).sum(axis=-1)
    return loss, np.exp(shifted) / total - labels


SOFTMAX_CROSS_ENTROPY_WITH_LOGITS = exact(
    "SoftmaxCrossEntropyWithLogits", Kind.OPAQUE, 2, _cross_entropy_type, _cross_entropy
)


def _sigmoid_cross_entropy(logits: Array, labels: Array, *, attrs: Attrs) -> Array:
    """Of logits and labels, element by element."""
    return np.maximum(logits, 0) - logits * labels + np.log1p(np.exp(-np.abs(logits)))


SIGMOID_CROSS_ENTROPY_WITH_LOGITS = exact_elementwise("SigmoidCrossEntropyWithLogits", 2, _sigmoid_cross_entropy)
SIGMOID_CROSS_ENTROPY_WITH_LOGITS_GRAD = exact_elementwise(
    "SigmoidCrossEntropyWithLogitsGrad",
    3,
    lambda logits, labels, dout, attrs: (sigmoid(logits) - labels) * dout,
    doc="From logits, labels and dout.",
)


def _reduced_type(types: Types, attrs: Attrs) -> Types:
    """All operands broadcast to the shape of the first; then it is reduced to a scalar or not."""
    first = types[0]
    expect_dtype(floating, *types)
    if attrs.str("reduction", "mean") not in REDUCTIONS:
        raise TypeRuleError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {attrs.str('reduction')!r}")
    if types[1].shape != first.shape or broadcast_shapes(type_.shape for type_ in types) != first.shape:
        raise TypeRuleError("labels must have the shape of the first operand, weights must broadcast to it")
    if attrs.str("reduction", "mean") == "none":
        return (first,)
    return (TensorType(reduced_shape(first.shape, range(first.rank), keep_dims=False), first.dtype),)


def _binary_cross_entropy_type(types: Types, attrs: Attrs) -> Types:
    if len(types) not in (2, 3):
        raise TypeRuleError(f"takes probabilities, labels and optionally weights, got {len(types)} operands")
    return _reduced_type(types, attrs)


def _reduced(loss: Array, attrs: Attrs) -> Array:
    match attrs.str("reduction", "mean"):
        case "none":
            return loss
        case "sum":
            return loss.sum()
        case _:
            return loss.sum() / loss.size if loss.size else np.asarray(np.nan)


def _binary_cross_entropy(probabilities: Array, labels: Array, weight: Array | None = None, *, attrs: Attrs) -> Array:
    """-(labels * log(p) + (1 - labels) * log(1 - p)) * weight of probabilities p, then none, mean or sum; a logarithm
    is taken as -100 at least, so that 0 log 0 is 0."""
    yes = np.maximum(np.log(probabilities), LOWEST_LOGARITHM)
    no = np.maximum(np.log1p(-probabilities), LOWEST_LOGARITHM)
    loss = -(labels * yes + (1 - labels) * no)
    return _reduced(loss if weight is None else loss * weight, attrs)


BINARY_CROSS_ENTROPY = exact(
    "BinaryCrossEntropy",
    Kind.OPAQUE,
    None,
    _binary_cross_entropy_type,
    _binary_cross_entropy,
    attributes=(text("reduction", "mean"),),
)


def _with_logits(logits: Array, labels: Array, weight: Array, pos_weight: Array, *, attrs: Attrs) -> Array:
    """The binary cross entropy of sigmoid(logits); pos_weight weighs the term of positive labels; then none, mean or
    sum."""
    softplus = np.maximum(-logits, 0) + np.log1p(np.exp(-np.abs(logits)))
    loss = (1 - labels) * logits + (1 + (pos_weight - 1) * labels) * softplus
    return _reduced(weight * loss, attrs)


BCE_WITH_LOGITS_LOSS = exact(
    "BCEWithLogitsLoss", Kind.OPAQUE, 4, _reduced_type, _with_logits, attributes=(text("reduction", "mean"),)
)
