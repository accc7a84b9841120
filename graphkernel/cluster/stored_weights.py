"""Weights of products that are stored narrower than they are computed with, as models have them.

Quantizers write ``DequantizeLinear(integers, scales, zero points)`` in front of a product, with a scale for all of a matrix,
for each column, or for each block of terms; ``MatMulNBits`` is a product with such weights. Others save numbers of 16 bits as
float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from graphkernel.ops.library.host import attribute_values, is_onnx
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.matmul import HALF_NIBBLE, NIBBLE
from kernelgen.tensor.types import dtype

Array = np.ndarray[Any, np.dtype[Any]]
FLOAT, BFLOAT16, HALF = dtype("float32"), dtype("bfloat16"), dtype("float16")
BYTE_HALF = 128
SAMPLE = 4096
"""So many weights of a matrix say whether the others are worth a look."""

NIBBLES = frozenset({"int4", "uint4"})
BYTES = frozenset({"int8", "uint8"})


class Stored(NamedTuple):
    """Numbers ``[groups, terms, columns]``, two terms in a byte where they have four bits; scales and zero points
    ``[groups, columns]``: what the operands of StoredMatMul are.
    """

    numbers: Array
    scales: Array | None = None
    zeros: Array | None = None
    bits: int = 0

    @property
    def operands(self) -> tuple[Array, ...]:
        """Those that are there: of zero points alone there are none."""
        return tuple(each for each in (self.numbers, self.scales, self.zeros) if each is not None)


def dequantized(weights: Value, is_transposed: bool) -> Stored | None:
    """The constant integers that ``weights``, a matrix of terms by columns or the other way round, is made of; None for
    others.
    """
    node = weights.node
    if not is_onnx(node, "DequantizeLinear") or weights.type.dtype != FLOAT:
        return None
    numbers, scales = known(node.args[0]), known(node.args[1])
    zeros = known(node.args[2]) if len(node.args) > 2 else np.zeros((), np.int8)
    if numbers is None or scales is None or zeros is None or numbers.ndim != 2 or scales.dtype != np.float32:
        return None
    named = attribute_values(node)
    spread = [_by_groups(each, numbers.shape, named, is_transposed) for each in (scales, zeros)]
    if spread[0] is None or spread[1] is None:
        return None
    return _stored(numbers.T if is_transposed else numbers, spread[0], spread[1])


def _by_groups(given: Array, shape: tuple[int, ...], named: Mapping[str, Any], is_transposed: bool) -> Array | None:
    """Scales or zero points as ``[groups, columns]``; None where terms have some that are no groups."""
    axis, block = named.get("axis", 1) % len(shape), named.get("block_size", 0)
    terms = 1 if is_transposed else 0
    columns = shape[1 - terms]
    if given.size == 1:
        return np.broadcast_to(given.reshape(1, 1), (1, columns))
    if block and given.ndim == 2:
        is_whole = axis == terms and shape[terms] == block * given.shape[terms]
        return (given.T if is_transposed else given) if is_whole else None
    return given.reshape(1, columns) if axis != terms and given.shape == (columns,) else None


def _stored(numbers: Array, scales: Array, zeros: Array) -> Stored | None:
    """Signed integers; of four bits what is 8 more than each."""
    name, groups = numbers.dtype.name, max(len(scales), len(zeros))
    if name not in NIBBLES | BYTES or (name in NIBBLES and len(numbers) // groups % 2):
        return None
    middle = {"uint8": BYTE_HALF, "uint4": HALF_NIBBLE}.get(name, 0)
    wide = numbers.astype(np.int16) - middle
    offsets = np.broadcast_to(zeros.astype(np.float32) - middle, (groups, numbers.shape[1]))
    parts = wide.reshape(groups, -1, numbers.shape[1])
    if name in NIBBLES:
        halves = (parts + HALF_NIBBLE).astype(np.uint8)
        kept = halves[:, ::2] | halves[:, 1::2] << NIBBLE
    else:
        kept = parts.astype(np.int8)
    spread = np.ascontiguousarray(np.broadcast_to(scales, offsets.shape))
    return Stored(kept, spread, np.ascontiguousarray(offsets) if offsets.any() else None, NIBBLE * (name in NIBBLES))


def blocks_of_bits(node: Node) -> Stored | None:
    """The weights of a MatMulNBits of four or eight bits, whose blocks of terms are whole; None for other operators."""
    if not is_onnx(node, "MatMulNBits"):
        return None
    named = attribute_values(node)
    bits, block, terms, columns = (named.get(name, 0) for name in ("bits", "block_size", "K", "N"))
    operands = [known(arg) for arg in node.args[1:]]
    if bits not in (NIBBLE, 2 * NIBBLE) or terms % block or not _are_first(node, len(node.args)):
        return None
    packed, scales = operands[:2]
    if packed is None or scales is None or scales.dtype != np.float32 or any(each is None for each in operands):
        return None
    groups = terms // block
    numbers = _unpacked(packed.reshape(columns, -1), bits)[:, :terms].T
    zeros = np.full((groups, columns), 1 << bits - 1, np.float32)
    if len(operands) > 2:
        given = operands[2]
        assert given is not None
        each = (
            _unpacked(given.reshape(columns, -1), bits)[:, :groups]
            if given.dtype == np.uint8
            else given.reshape(columns, -1)
        )
        zeros = each.T.astype(np.float32)
    import ml_dtypes  # most graphs have no numbers of four bits

    kind = np.dtype(ml_dtypes.uint4) if bits == NIBBLE else np.dtype(np.uint8)
    return _stored(numbers.astype(kind), scales.reshape(columns, groups).T, zeros)


def _are_first(node: Node, count: int) -> bool:
    """Whether the operands that are there are rows, numbers, scales and perhaps zero points."""
    present = node.attrs.get("present", ())
    return count in (3, 4) and isinstance(present, tuple) and all(present[:count])


def _unpacked(rows: Array, bits: int) -> Array:
    """The numbers in each row of bytes, the first in the low bits."""
    return rows if bits > NIBBLE else np.stack((rows & 15, rows >> NIBBLE), axis=2).reshape(len(rows), -1)


def halves(weights: Array) -> Stored | None:
    """Float32 weights, a matrix of terms by columns, all of which are numbers of 16 bits; None for others."""
    for kind in (BFLOAT16.numpy, HALF.numpy):
        if _is_of(weights.flat[:SAMPLE], kind) and _is_of(weights, kind):
            return Stored(weights.astype(kind)[None])
    return None


def _is_of(weights: Array, kind: np.dtype[Any]) -> bool:
    with np.errstate(over="ignore"):
        return bool((weights.astype(kind).astype(np.float32) == weights).all())


def known(value: Value) -> Array | None:
    """The content of a constant, also of one that no kernel holds."""
    node = value.node
    if is_onnx(node, "Constant"):
        return np.asarray(node.op.meaning(attrs=node.attrs))
    return value.constant
