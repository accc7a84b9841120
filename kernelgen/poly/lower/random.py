"""StandardNormal: every element from its own row-major number, through a counter-based generator.

Philox 4x32-10 (Salmon and others, SC 2011) on the counter ``(n mod 2^32, n div 2^32, 0, 0)`` with the seed as key, then Box
and Muller on the first two words::

    u = (w0 div 2^8 + 1) / 2^24        v = (w1 div 2^8) / 2^24        z = sqrt(-2 ln u) cos(2 pi v)

Words are 32 bits of a uint64; every round is a statement for each word, and grouping keeps them in registers.
"""

from __future__ import annotations

import math

from kernelgen.nest.nodes import Expr, IndexValue
from kernelgen.poly.lower.builder import ALGEBRA, Builder
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.tensor.dtypes import FLOAT32, FLOAT64, UINT64, DType
from kernelgen.tensor.graph import Node

ROUNDS = 10
"""Of Philox 4x32: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011, as are the numbers below."""
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
"""What the two words of the key grow by in each round."""
WORD = 1 << 32
"""How many numbers a word of 32 bits has."""


def _relate(axes: TensorAxes, node: Node) -> None:
    axes.hold(*axes.of(node.out))


def _standard_normal(builder: Builder, node: Node, name: str) -> None:
    """The same numbers on every machine, up to the rounding of the logarithm and the cosine."""
    result = node.out
    points = builder.points(result)

    def kept(word: str, value: Expr, dtype: DType = UINT64) -> Expr:
        """The value as a temporary of the result's shape: later statements share it."""
        kept_as = f"{builder.axes.name(result)}_{word}"
        tensor = builder.axes.temporary(kept_as, result.shape, dtype, builder.axes.of(result))
        builder.define(tensor, points, value, f"{name}_{word}")
        return builder.read(tensor, points)

    number: Expr = IndexValue(points.number, UINT64)
    zero = ALGEBRA.literal(0, UINT64)
    words = [_low(number), _high(number), zero, zero]
    seed = node.attrs.int("seed", 0)
    keys = [seed % WORD, (seed >> 32) % WORD]
    for turn in range(ROUNDS):
        left = kept(f"left{turn}", ALGEBRA.call("mul", words[0], MULTIPLIERS[0]))
        right = kept(f"right{turn}", ALGEBRA.call("mul", words[2], MULTIPLIERS[1]))
        first = kept(f"first{turn}", _mixed(right, words[1], keys[0]))
        third = kept(f"third{turn}", _mixed(left, words[3], keys[1]))
        words = [first, _low(right), third, _low(left)]
        keys = [(key + step) % WORD for key, step in zip(keys, KEY_STEPS, strict=True)]
    wide = FLOAT64 if result.dtype == FLOAT64 else FLOAT32
    u, v = (_fraction(word, offset, wide) for word, offset in zip(words[:2], (1, 0), strict=True))
    radius = ALGEBRA.call("sqrt", ALGEBRA.call("mul", ALGEBRA.call("log", u), -2.0))
    angle = ALGEBRA.call("cos", ALGEBRA.call("mul", v, 2 * math.pi))
    builder.define(result, points, ALGEBRA.call("mul", radius, angle), name)


def _low(product: Expr) -> Expr:
    return ALGEBRA.call("floor_mod", product, WORD)


def _high(product: Expr) -> Expr:
    return ALGEBRA.call("floor_div", product, WORD)


def _mixed(product: Expr, word: Expr, key: int) -> Expr:
    return ALGEBRA.call("bitwise_xor", ALGEBRA.call("bitwise_xor", _high(product), word), key)


def _fraction(word: Expr, offset: int, wide: DType) -> Expr:
    """``(word div 2^8 + offset) / 2^24``, exact in float32."""
    number = ALGEBRA.call("add", ALGEBRA.call("floor_div", word, 1 << 8), offset)
    return ALGEBRA.call("mul", ALGEBRA.cast(number, wide), 2.0**-24)


STANDARD_NORMAL = Lowering(_relate, _standard_normal)
