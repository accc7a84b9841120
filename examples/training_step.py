"""``python -m examples.training_step``: a classifier is trained for 20 steps, forward, backward and update in one executable.

Two layers with a layer norm between them; the loss is the mean cross entropy, the update that of momentum. Nothing is
random, so that the losses can be held against a record of torch (``tests/facts/torch_training.json``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import graphkernel as gk
from graphkernel import ops
from graphkernel.ops import Tensor

ROWS, FEATURES, HIDDEN, CLASSES = 64, 32, 48, 10
RATE, MOMENTUM, EPSILON = 0.05, 0.9, 1e-5
SHAPES = ((FEATURES, HIDDEN), (HIDDEN,), (HIDDEN,), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,))


def loss(weights: Sequence[Tensor], x: Tensor, labels: Tensor) -> Tensor:
    """Of a batch ``x`` [rows, features] and one-hot labels [rows, classes]."""
    w1, b1, gamma, beta, w2, b2 = weights
    hidden, _, _ = ops.layer_norm(ops.matmul(x, w1) + b1, gamma, beta, epsilon=EPSILON)
    logits = ops.matmul(ops.gelu(hidden, approximate="tanh"), w2) + b2
    return ops.reduce_mean(ops.softmax_cross_entropy_with_logits(logits, labels)[0])


def step(weights: Sequence[Tensor], momenta: Sequence[Tensor], x: Tensor, labels: Tensor) -> Tensor:
    """The loss; weights and momenta are updated in place."""
    value, gradients = gk.value_and_grad(loss)(weights, x, labels)
    for weight, momentum, gradient in zip(weights, momenta, gradients, strict=True):
        ops.apply_momentum(weight, momentum, RATE, gradient, MOMENTUM)
    return value


def graph() -> gk.Graph:
    """The step for float32."""
    specs = [gk.spec(shape) for shape in SHAPES]
    return gk.trace(step, specs, specs, gk.spec((ROWS, FEATURES)), gk.spec((ROWS, CLASSES)), name="training_step")


def start() -> tuple[list[np.ndarray[Any, Any]], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Weights, a batch and its labels."""
    weights = [_wave(shape, place) * (1 if place == 2 else 0.3) for place, shape in enumerate(SHAPES)]
    weights[2] = np.ones(HIDDEN, np.float32)
    labels = np.eye(CLASSES, dtype=np.float32)[np.arange(ROWS) * 7 % CLASSES]
    return weights, _wave((ROWS, FEATURES), 9), labels


def _wave(shape: tuple[int, ...], phase: int) -> np.ndarray[Any, Any]:
    """Numbers between -1 and 1 without a period that shows."""
    count = int(np.prod(shape))
    return np.sin(np.arange(count) * 1.7 + (np.arange(count) % 13) ** 2 + phase).astype(np.float32).reshape(shape)


def train(steps: int = 20) -> list[float]:
    """The loss before each step."""
    executable = gk.compile(graph())
    weights, x, labels = start()
    momenta = [np.zeros_like(weight) for weight in weights]
    return [float(executable(*weights, *momenta, x, labels)[0]) for _ in range(steps)]


def main() -> None:
    """Prints the losses, and what fusion made of the step."""
    plain, fused = graph(), gk.optimize(graph())
    kernels = sum(node.body is not None for node in fused.operators)
    print(f"{len(plain.operators)} operators became {kernels} kernels and {len(fused.operators) - kernels} operators")
    print("loss", " ".join(f"{value:.4f}" for value in train()))


if __name__ == "__main__":
    main()
