"""Layouts: FRACTAL_NZ, and layouts that are spelled, such as NHWC, NCHW16c and NC1HWC0.

FRACTAL_NZ stores a matrix ``[.., M, N]`` as ``[.., N/16, M/16, 16, 16]``. In a spelled layout a capital is a dim (of the
number of its blocks, where it is blocked) and ``16c`` the elements of a block of C. Blocks are padded with zeros.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from kernelgen.errors import UnsupportedError
from kernelgen.semantics.algebra import Array
from kernelgen.semantics.shape import result_shape
from kernelgen.tensor.operator import Application

BLOCK = 16
FRACTAL = "FRACTAL_NZ"
SPELLED = {"NC1HWC0": "NCHW16c"}


def to_fractal(matrix: Array) -> Array:
    """Plain to FRACTAL_NZ."""
    rows, columns = matrix.shape[-2:]
    margins = [(0, 0)] * (matrix.ndim - 2) + [(0, -rows % BLOCK), (0, -columns % BLOCK)]
    padded = np.pad(matrix, margins)
    blocks = (padded.shape[-2] // BLOCK, BLOCK, padded.shape[-1] // BLOCK, BLOCK)
    split = padded.reshape(*padded.shape[:-2], *blocks)
    return np.moveaxis(split, -2, -4)


def from_fractal(blocks: Array) -> Array:
    """FRACTAL_NZ to plain, padding included."""
    turned = np.moveaxis(blocks, -4, -2)
    *outer, row_blocks, row, column_blocks, column = turned.shape
    return turned.reshape(*outer, row_blocks * row, column_blocks * column)


def trans_data(operands: Sequence[Array], node: Application) -> Array:
    """TransData and LayoutTransform, from ``src_format`` to ``dst_format``; what was padded is cut off again.

    A vector counts as a matrix of one row.
    """
    source, target = node.attrs.str("src_format", "DefaultFormat"), node.attrs.str("dst_format", "DefaultFormat")
    value = operands[0]
    if target == FRACTAL:
        return to_fractal(value if value.ndim > 1 else value[None])
    if source == FRACTAL:
        shape = result_shape(node)
        rows, columns = shape[-2:] if len(shape) > 1 else (1, *shape)
        return from_fractal(value)[..., :rows, :columns]
    plain = _unblocked(value, _parts(source, value.ndim))
    letters = "".join(part for part in _parts(source, value.ndim) if part.isupper())
    return _blocked(plain, letters, _parts(target, len(node.out.shape)), result_shape(node))


def _parts(layout: str, rank: int) -> list[str]:
    """``NCHW16c -> N, C, H, W, 16c``. Raises UnsupportedError for a word that is no spelled layout of that rank."""
    spelled = SPELLED.get(layout, "NCHW" if layout == "DefaultFormat" else layout)
    parts = re.findall(r"[A-Z]|\d+[a-z]", spelled)
    outer = [part for part in parts if part.isupper()]
    inner = [part[-1].upper() for part in parts if not part.isupper()]
    sound = "".join(parts) == spelled and len(parts) == rank and len(set(outer)) == len(outer)
    if not sound or len(set(inner)) < len(inner) or not set(inner) <= set(outer):
        raise UnsupportedError("unsupported-layout", f"{layout!r} is no layout of a tensor of rank {rank}")
    return parts


def _unblocked(value: Array, parts: Sequence[str]) -> Array:
    """The plain tensor in the order of the capitals, padding included."""
    order = [d for letter in parts if letter.isupper() for d in _places(letter, parts)]
    shape = [_extent(letter, value.shape, parts) for letter in parts if letter.isupper()]
    return np.transpose(value, order).reshape(shape)


def _blocked(plain: Array, letters: str, parts: Sequence[str], shape: tuple[int, ...]) -> Array:
    """The plain tensor in another layout, padded with zeros or cut to the described shape."""
    outer = [part for part in parts if part.isupper()]
    if sorted(outer) != sorted(letters):
        raise UnsupportedError("unsupported-layout", f"layouts of different dims: {letters} and {''.join(parts)}")
    turned = np.transpose(plain, [letters.index(letter) for letter in outer])
    extents = [_extent(letter, shape, parts) for letter in outer]
    cut = turned[tuple(slice(0, extent) for extent in extents)]
    padded = np.pad(cut, [(0, extent - have) for extent, have in zip(extents, cut.shape, strict=True)])
    order = [d for letter in outer for d in _places(letter, parts)]
    return np.transpose(padded.reshape([shape[d] for d in order]), np.argsort(order))


def _places(letter: str, parts: Sequence[str]) -> list[int]:
    """The dims that make up a capital: the blocks, then the elements of a block."""
    return [d for d, part in enumerate(parts) if part[-1].upper() == letter]


def _extent(letter: str, shape: Sequence[int], parts: Sequence[str]) -> int:
    return int(np.prod([shape[d] for d in _places(letter, parts)]))
