"""StandardNormal against Philox 4x32-10 in Python integers, its published vectors, and the moments of a normal number."""

import math

import numpy as np
import pytest
from operator_cases import TARGETS, Case, run

from kernelgen.semantics.random import philox_words


def philox(counter, key):
    """Ten rounds on four words (Salmon and others, SC 2011)."""
    words, keys = list(counter), list(key)
    for _ in range(10):
        left, right = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [
            (right >> 32) ^ words[1] ^ keys[0], right & 0xFFFFFFFF, (left >> 32) ^ words[3] ^ keys[1], left & 0xFFFFFFFF,
        ]  # fmt: skip
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return words


def normal(number, seed):
    """Box and Muller on the upper 24 bits of two words."""
    key = (seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF)
    first, second, *_ = philox((number & 0xFFFFFFFF, number >> 32, 0, 0), key)
    u, v = ((first >> 8) + 1) / 2**24, (second >> 8) / 2**24
    return math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)


VECTORS = [
    ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
def test_published_vectors(counter, key, expected):
    assert tuple(philox(counter, key)) == expected
    words = tuple(np.asarray([word], np.uint64) for word in counter)
    found = philox_words(words, key[0] | key[1] << 32)
    assert tuple(int(word[0]) for word in found) == expected


SHAPES = [(1,), (7,), (3, 5), (2, 3, 4), (31,), (64, 3), (1, 1), (0, 3), (), (2, 1, 5, 1), (129,), (17,)]


def cases():
    for number, shape in enumerate(SHAPES):
        seed = (0, 1, 12345, 2**32 + 5, 2**40, -1)[number % 6]
        kind = "float16" if number == 11 else "float32"
        drawn = [normal(k, seed) for k in range(math.prod(shape))]
        expected = np.asarray(drawn).reshape(shape).astype(kind)
        tolerance = 5e-3 if kind == "float16" else 2e-5
        yield Case("StandardNormal", (), (expected,), {"shape": shape, "seed": seed}, tolerance=tolerance)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", [*cases()], ids=str)
def test_standard_normal(case, target):
    case.agrees(target)


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_moments(target):
    case = Case("StandardNormal", (), (np.empty(40000, np.float32),), {"shape": (40000,), "seed": 3})
    (found,) = run(case.desc, (), target)
    wide = found.astype(np.float64)
    assert abs(wide.mean()) < 0.02
    assert abs((wide**2).mean() - 1) < 0.03
    assert abs((wide**4).mean() - 3) < 0.2
    assert abs((wide[1:] * wide[:-1]).mean()) < 0.02
