"""Losses of classes: the class of each point picks one of its numbers along axis 1."""

from __future__ import annotations

import numpy as np

from graphkernel import ops
from graphkernel.frontends.onnx.rules.base import Declined, OnnxCall, Operand, Results, onnx_op, rounded_once, shape_of
from kernelgen.tensor.types import dtype

CLASSES = 1


@onnx_op("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(call: OnnxCall) -> Results:
    """The negative numbers of the classes, weighted and averaged."""
    return _loss(call, call.operands[0])


@onnx_op("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(call: OnnxCall) -> Results:
    """The same of logarithms of probabilities, which are a further result."""
    logarithms = ops.log_softmax(call.operands[0], axis=CLASSES)
    loss = _loss(call, logarithms)
    return loss if isinstance(loss, Declined) else (loss, logarithms)[: call.listed]


def _loss(call: OnnxCall, x: Operand) -> Operand:
    count, labels = shape_of(x)[CLASSES], call.operands[1]
    if not isinstance(count, int):
        return Declined("the number of classes is symbolic")
    weight = call.operand(2) if call.has(2) else np.ones(count, dtype(x.dtype).numpy)
    kind, ignored = call.attribute("reduction", "mean"), call.attribute("ignore_index")

    @rounded_once
    def loss(x: Operand, weight: Operand) -> Operand:
        picks = _picks(labels, count, len(shape_of(x)), ignored)
        weights = ops.reshape(weight, (1, count, *(1 for _ in shape_of(x)[2:])))
        each = ops.reduce_sum(ops.select(picks, ops.mul(ops.neg(x), weights), ops.zeros_like(x)), axis=CLASSES)
        if kind == "none":
            return each
        total = ops.reduce_sum(each)
        return (
            total
            if kind == "sum"
            else ops.div(total, ops.reduce_sum(ops.mul(weights, ops.cast(picks, dtype(x.dtype)))))
        )

    return loss(x, weight)


def _picks(labels: Operand, count: int, rank: int, ignored: int | None) -> Operand:
    """Of each number, whether its class is the one of its point; of no number of a point that is ignored."""
    classes = np.arange(count, dtype=dtype(labels.dtype).numpy).reshape(1, count, *(1 for _ in range(rank - 2)))
    points = ops.expand_dims(labels, CLASSES)
    picks = ops.equal(points, classes)
    return picks if ignored is None else ops.logical_and(picks, ops.not_equal(points, ignored))
