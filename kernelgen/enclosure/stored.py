"""StoredMatMul: products with weights that are stored narrower, and how those round whose rows are fixed point.

A kernel may multiply sums of some terms by scales, and subtract zero points times sums of a row from sums of products. Of one
row it may so subtract 8 times the sum, too, which four bits stand for less than they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from kernelgen.enclosure.arithmetic import multiply, subtract
from kernelgen.enclosure.interval import Array, Interval, forgotten
from kernelgen.enclosure.rounding import UNIT, widened
from kernelgen.enclosure.sums import multiplied
from kernelgen.semantics.matmul import unpacked
from kernelgen.tensor.dtypes import FLOAT32
from kernelgen.tensor.operator import Application
from kernelgen.tensor.operators.matmul import BITS, HALF_NIBBLE, NIBBLE

PIECE_BYTES = 128
"""Bytes of weights of a group that meet terms of one unit."""

HALF_UNIT = 129 / 128 * UNIT[FLOAT32]
"""Of the greatest term of a piece, what each of its terms is wrong by at most."""

LEAST_HALF_UNIT = 2.0**-127
"""Terms below are lost."""

ROUNDINGS = 4
"""Half units of the sums that a sum with a zero point is made of: both of them, their product with it, the difference."""


def stored_product(operands: Sequence[Interval], node: Application) -> Interval:
    """The product. Nothing is known where sums without their scales overflow, or where scales or zero points are infinite."""
    x, stored, *each = operands
    numbers = stored.map(lambda bound: unpacked(bound, node))
    groups = [of.map(lambda bound: bound.astype(np.float64)[:, None]) for of in each]
    is_apart = node.attrs.int(BITS, 0) == NIBBLE and prod(x.low.shape[:-1]) == 1
    held = numbers.magnitude + 2 * HALF_NIBBLE * is_apart
    for zeros in groups[1:]:
        held, numbers = held + zeros.magnitude, subtract(numbers, zeros, FLOAT32)
    if groups[1:] or is_apart:
        numbers = widened(numbers, ROUNDINGS * UNIT[FLOAT32] / 2 * held)
    sizes = np.matmul(x.magnitude, held.reshape(x.low.shape[-1], -1))
    for scales in groups[:1]:
        sizes = sizes + np.where(np.isinf(scales.magnitude), np.inf, 0.0).max((0, 1))
        numbers = multiply(numbers, scales, FLOAT32)
    weights = numbers.map(lambda bound: bound.reshape(x.low.shape[-1], -1))
    found = multiplied(x, weights, np.matmul, node.out.dtype, float(x.low.shape[-1] + len(each)))
    return forgotten(found, ~(sizes < np.finfo(np.float32).max)) if each or is_apart else found


def product_of_fixed_point(operands: Sequence[Interval], node: Application) -> Interval:
    """The product of rows that are fixed point, each piece in units of its own. Nothing is known of a row with an infinity.

    A piece has so many terms as meet :data:`PIECE_BYTES` of weights; pieces that a kernel makes lie in such ones.
    """
    x, stored, *each = operands
    groups, held, _ = stored.low.shape
    length = PIECE_BYTES * x.low.shape[-1] // (groups * held)
    terms = x.magnitude.reshape(*x.low.shape[:-1], groups, -1)
    starts = range(0, terms.shape[-1], length)
    most = np.concatenate([_most(terms[..., start : start + length]) for start in starts], -1).reshape(x.low.shape)
    rounded = widened(x, np.maximum(HALF_UNIT * most, LEAST_HALF_UNIT))
    found = stored_product((rounded, stored, *each), node)
    return forgotten(found, np.asarray(~np.isfinite(x.magnitude).all(-1, keepdims=True)))


def _most(terms: Array) -> Array:
    """The greatest of the last dim's terms, for each of them."""
    return np.broadcast_to(terms.max(-1, keepdims=True), terms.shape)
