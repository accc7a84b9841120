"""Random numbers as a function of a counter: the same seeds and the same place give the same number, on every machine.

Source: Philox4x32-10, J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

from __future__ import annotations

import numpy as np

from kernelgen.tensor.operators.families import Array

ROUNDS = 10
MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
WEYL = (0x9E3779B9, 0xBB67AE85)
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)

Words = tuple[Array, Array, Array, Array]


def philox(counter: Words, key: tuple[int, int]) -> Words:
    """Four random 32-bit words (held in uint64) from four counter words and two key words."""
    a, b, c, d = counter
    left, right = key
    for _ in range(ROUNDS):
        first, second = a * MULTIPLIERS[0], c * MULTIPLIERS[1]
        a, b, c, d = (
            (second >> HALF) ^ b ^ np.uint64(left),
            second & LOW,
            (first >> HALF) ^ d ^ np.uint64(right),
            first & LOW,
        )
        left, right = (left + WEYL[0]) & int(LOW), (right + WEYL[1]) & int(LOW)
    return a, b, c, d


def uniform(count: int, seeds: tuple[int, int], step: int, word: int = 0) -> Array:
    """``count`` float32 numbers in [0, 1), multiples of 2^-24. Steps, and the four words of a place, are streams apart."""
    places = np.arange(count, dtype=np.uint64)
    steps = np.full(count, step & (2**64 - 1), np.uint64)
    words = philox(
        (places & LOW, places >> HALF, steps & LOW, steps >> HALF), (seeds[0] & int(LOW), seeds[1] & int(LOW))
    )
    return ((words[word] >> np.uint64(8)).astype(np.float32)) * np.float32(2.0**-24)
