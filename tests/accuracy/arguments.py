"""Arguments: all values of the half types; of the others some of every exponent, evenly spread ones, and special ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.tensor.dtypes import DType, dtype

Array = np.ndarray
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, np.inf, -np.inf, np.nan)
SPREAD = {"float32": 110.0, "float64": 760.0}
"""Beyond these exponentials are 0 and infinite."""


def arguments(kind: str, count: int, operands: int) -> Sequence[Array]:
    """About ``count`` for one operand, in the order of their bits; for more the same, shuffled."""
    one = every_value(kind) if dtype(kind).bits == 16 else samples(kind, count)
    random = np.random.default_rng(0)
    return [one, *(_partner(one, random) for _ in range(operands - 1))]


def every_value(kind: str) -> Array:
    """All 65,536 bit patterns."""
    return np.arange(1 << 16, dtype=np.uint16).view(dtype(kind).numpy)


def samples(kind: str, count: int) -> Array:
    """Half over all exponents and signs, alike many of each; half evenly spread where exponentials are numbers."""
    type_ = dtype(kind)
    digits = mantissa_bits(type_)
    unsigned = np.dtype(f"uint{type_.bits}")
    exponents = np.arange(1 << (type_.bits - 1 - digits + 1), dtype=unsigned)  # with the sign
    each = max(1, count // 2 // exponents.size)
    mantissas = np.random.default_rng(1).integers(0, 1 << digits, (exponents.size, each), dtype=unsigned)
    wide = ((exponents[:, None] << unsigned.type(digits)) | mantissas).reshape(-1).view(type_.numpy)
    even = np.linspace(-SPREAD[kind], SPREAD[kind], count // 2).astype(type_.numpy)
    return np.concatenate([wide, even, np.array(SPECIAL, type_.numpy)])


def mantissa_bits(type_: DType) -> int:
    """Without the one that is not stored."""
    return {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[type_.name]


def _partner(x: Array, random: np.random.Generator) -> Array:
    """A second operand: of a like size for half of the first, any for the others."""
    other = random.permutation(x)
    with np.errstate(all="ignore"):
        near = (x.astype(np.float64) * random.uniform(0.25, 4.0, x.size)).astype(x.dtype)
    return np.where(random.integers(0, 2, x.size) == 0, near, other).astype(x.dtype)
