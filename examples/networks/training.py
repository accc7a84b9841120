"""A training step: the loss, its gradients, and an optimizer's update of every weight, in place.

The step is one graph. Weights and moments are inputs that outputs are written into, as an optimizer does it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

import graphkernel as gk
from examples.networks.weights import Specs, Weights
from graphkernel import ops
from graphkernel.frontends.trace import trace
from graphkernel.ops import Tensor
from kernelgen.tensor.graph import Graph

RATE, BETA1, BETA2, EPSILON, DECAY = 1e-3, 0.9, 0.999, 1e-6, 0.01
STATISTICS = ("_mean", "_variance")  # written by the forward pass, not trained

Entry = TypeVar("Entry")
Loss = Callable[[Weights, Weights], Tensor]
"""``loss(inputs, weights)``, a scalar."""


def mean_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean over the batch of the cross entropy of integer labels."""
    on, off = (np.asarray(value, logits.dtype.numpy) for value in (1, 0))
    one_hot = ops.one_hot(labels, int(str(logits.shape[1])), on, off)
    losses, _ = ops.softmax_cross_entropy_with_logits(logits, one_hot)
    return ops.reduce_mean(losses)


def training_step(name: str, loss: Loss, inputs: Specs, weights: Specs) -> Graph:
    """``(inputs, weights, moments) -> loss``, one step of AdamWeightDecay on every weight."""

    def step(inputs: Weights, weights: Weights, moments: Weights) -> Tensor:
        value, found = _value_and_gradients(loss, inputs, weights)
        for key, gradient in found.items():
            first, second = moments[f"{key}_first"], moments[f"{key}_second"]
            ops.adam_weight_decay(weights[key], first, second, RATE, BETA1, BETA2, EPSILON, DECAY, gradient)
        return value

    moments = {f"{key}_{part}": type_ for key, type_ in _trained(weights).items() for part in ("first", "second")}
    return trace(step, inputs, weights, moments, name=name)


def gradient_graph(name: str, loss: Loss, inputs: Specs, weights: Specs) -> Graph:
    """``(inputs, weights) -> (loss, gradients)``: a training step without the update."""

    def step(inputs: Weights, weights: Weights) -> tuple[Tensor, ...]:
        value, found = _value_and_gradients(loss, inputs, weights)
        return (value, *found.values())

    return trace(step, inputs, weights, name=name)


def _value_and_gradients(loss: Loss, inputs: Weights, weights: Weights) -> tuple[Tensor, dict[str, Tensor]]:
    def of_trained(trained: Weights) -> Tensor:
        return loss(inputs, {**weights, **trained})

    return gk.value_and_grad(of_trained)(_trained(weights))


def _trained(weights: Mapping[str, Entry]) -> dict[str, Entry]:
    return {key: entry for key, entry in weights.items() if not key.endswith(STATISTICS)}
