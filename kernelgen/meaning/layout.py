"""FRACTAL_NZ: a matrix ``[.., M, N]`` stored as ``[.., N/16, M/16, 16, 16]``, padded with zeros to whole blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.desc import OpDesc
from kernelgen.errors import UnsupportedError
from kernelgen.meaning.algebra import Array
from kernelgen.meaning.shape import result_shape

BLOCK = 16


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


def trans_data(operands: Sequence[Array], op: OpDesc) -> Array:
    """Default or NCHW to FRACTAL_NZ and back; what was padded is cut off again."""
    source, target = op.attrs.str("src_format", "DefaultFormat"), op.attrs.str("dst_format", "DefaultFormat")
    if target == "FRACTAL_NZ":
        return to_fractal(operands[0])
    if source == "FRACTAL_NZ":
        rows, columns = result_shape(op)[-2:]
        return from_fractal(operands[0])[..., :rows, :columns]
    raise UnsupportedError("unsupported-layout", f"TransData from {source} to {target}")
