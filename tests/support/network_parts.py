"""What networks are made of, as small graphs with constants: products, attention, convolutions, narrow weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import graphkernel as gk
from graphkernel import ops
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.operators.matmul import STORED_MATMUL
from kernelgen.tensor.operators.nn import CONV2D

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(0)
ROWS, WIDTH, HEADS = 21, 64, 4


def _floats(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def product() -> Graph:
    """With bias and gelu."""
    weights, bias = _floats(WIDTH, 3 * WIDTH), _floats(3 * WIDTH)
    return gk.trace(lambda x: ops.gelu(ops.matmul(x, weights) + bias), gk.spec((ROWS, WIDTH), "float32"))


def attention() -> Graph:
    """Of all heads, which lie side by side."""

    def apart(x: Any) -> Any:  # a traced tensor
        return ops.transpose(ops.reshape(x, (1, ROWS, HEADS, WIDTH // HEADS)), (0, 2, 1, 3))

    def network(q: Any, k: Any, v: Any) -> Any:
        scores = ops.matmul(apart(q), ops.transpose(apart(k), (0, 1, 3, 2))) * np.float32(0.25)
        return ops.matmul(ops.softmax(scores, axis=-1), apart(v))

    return gk.trace(network, *[gk.spec((1, ROWS, WIDTH), "float32")] * 3)


def convolutions() -> Graph:
    """3 x 3, padded, channels last: of all channels, then of each one."""
    dense, each = _floats(3, 3, 32, 64), _floats(3, 3, 1, 64)
    marks = {"stride": (1, 1), "pad": (1, 1, 1, 1), "dilation": (1, 1), "format": "NHWC", "own_kernel": True}

    def network(x: Any) -> Any:
        y = ops.relu(ops.apply(CONV2D, x, dense, group=1, **marks))
        return ops.relu(ops.apply(CONV2D, y, each, group=64, **marks))

    return gk.trace(network, gk.spec((1, 28, 28, 32), "float32"))


def stored(bits: int) -> Graph:
    """One row times weights in groups of 32 terms, of ``bits`` each, with scales."""
    integers = RANDOM.integers(-128, 128, (WIDTH // 32, 32 * bits // 8, 3 * WIDTH)).astype(np.int8)
    weights = integers if bits == 8 else integers.view(np.uint8)
    scales = np.abs(_floats(WIDTH // 32, 3 * WIDTH))

    def network(x: Any) -> Any:
        return ops.apply(STORED_MATMUL, x, weights, scales, bits=0 if bits == 8 else bits, own_kernel=True)

    return gk.trace(network, gk.spec((1, WIDTH), "float32"))


PARTS: Mapping[str, Callable[[], Graph]] = {
    "product": product,
    "attention": attention,
    "convolutions": convolutions,
    "int8 weights": lambda: stored(8),
    "int4 weights": lambda: stored(4),
}
