"""StandardNormal: a counter-based generator, so that every element can be computed alone and in any order.

Element number n (row-major) of a tensor with seed s runs Philox 4x32-10 (Salmon and others, "Parallel random numbers: as
easy as 1, 2, 3", SC 2011) on the counter ``(n mod 2^32, n div 2^32, 0, 0)`` with the key ``(s mod 2^32, s div 2^32)`` and
takes two of the four words through Box and Muller::

    u = (w0 div 2^8 + 1) / 2^24        v = (w1 div 2^8) / 2^24        z = sqrt(-2 ln u) cos(2 pi v)

24 bits make u and v exact in float32; u is never 0, |z| is at most 5.8.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.semantics.algebra import Array
from kernelgen.semantics.shape import result_shape
from kernelgen.tensor.operator import Application

ROUNDS = 10
MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
KEY_STEPS = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
WORD = np.uint64(32)
MASK = np.uint64(0xFFFFFFFF)


def standard_normal(operands: Sequence[Array], node: Application) -> Array:
    """Normal numbers of mean 0 and variance 1 from the attribute ``seed``, the same on every machine."""
    shape = result_shape(node)
    numbers = np.arange(np.prod(shape, dtype=np.int64), dtype=np.uint64)
    first, second, _, _ = philox(numbers, node.attrs.int("seed", 0))
    u, v = (first >> np.uint64(8)).astype(np.float64) + 1, (second >> np.uint64(8)).astype(np.float64)
    return (np.sqrt(-2 * np.log(u / 2**24)) * np.cos(2 * np.pi * (v / 2**24))).reshape(shape)


def philox(counters: Array, seed: int) -> tuple[Array, Array, Array, Array]:
    """Four words of 32 bits (as uint64) for every counter of 64 bits."""
    zero = np.zeros_like(counters)
    return philox_words((counters & MASK, counters >> WORD, zero, zero), seed)


def philox_words(counter: Sequence[Array], seed: int) -> tuple[Array, Array, Array, Array]:
    """Ten rounds over counters of four words; the key of 64 bits is the seed modulo 2^64."""
    x0, x1, x2, x3 = counter
    keys = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32 & 0xFFFFFFFF)]
    for _ in range(ROUNDS):
        left, right = MULTIPLIERS[0] * x0, MULTIPLIERS[1] * x2
        x0, x1, x2, x3 = (right >> WORD) ^ x1 ^ keys[0], right & MASK, (left >> WORD) ^ x3 ^ keys[1], left & MASK
        keys = [(key + step) & MASK for key, step in zip(keys, KEY_STEPS, strict=True)]
    return x0, x1, x2, x3
