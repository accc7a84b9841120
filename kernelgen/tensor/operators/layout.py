"""Operators that store the same tensor in another layout. The result's type carries the layout.

FRACTAL_NZ stores a matrix ``[.., M, N]`` as ``[.., N/16, M/16, 16, 16]``, padded with zeros to whole blocks. Channel-blocked
layouts are written as AKG does: ``NCHW16c`` is ``[N, C/16, H, W, 16]``; ``NCHW`` and ``DefaultFormat`` are the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Kind, Traits
from kernelgen.tensor.operators.attributes import dims, text
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.operators.type_rules import shape_text
from kernelgen.tensor.types import DEFAULT_LAYOUT, Attrs, Dim, Shape, Sym, TensorType, divide_exactly

Types = tuple[TensorType, ...]

FRACTAL = "FRACTAL_NZ"
BLOCK = 16
PLAIN = ("DefaultFormat", "NCHW", "ND")


def layout_name(layout: str) -> str:
    """The layout as types write it: the plain ones are the default."""
    return DEFAULT_LAYOUT if layout in PLAIN else layout


def _formats(x: TensorType, attrs: Attrs) -> tuple[str, str]:
    source, target = (attrs.str(name, DEFAULT_LAYOUT) for name in ("src_format", "dst_format"))
    if x.layout not in (DEFAULT_LAYOUT, layout_name(source)):
        raise TypeRuleError(f"src_format is {source}, the operand has the layout {x.layout}")
    return source, target


# ---------------------------------------------------------------- TransData


def _trans_data_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    source, target = map(layout_name, _formats(x, attrs))
    if (source, target) == (DEFAULT_LAYOUT, FRACTAL):
        return (TensorType(fractal_shape(x.shape), x.dtype, FRACTAL),)
    if (source, target) == (FRACTAL, DEFAULT_LAYOUT):
        shape = attrs.dims("shape")
        if fractal_shape(shape) != x.shape:
            raise TypeRuleError(f"shape {shape_text(shape)} is stored as {shape_text(fractal_shape(shape))}")
        return (TensorType(shape, x.dtype),)
    raise TypeRuleError(f"TransData is between {DEFAULT_LAYOUT} and {FRACTAL}, not from {source} to {target}")


def fractal_shape(shape: Shape) -> Shape:
    """The shape in which FRACTAL_NZ stores a matrix; a symbolic extent must be a multiple of 16.

    Raises TypeRuleError for fewer than two dims.
    """
    if len(shape) < 2:
        raise TypeRuleError(f"{FRACTAL} needs rank 2 at least, got {shape_text(shape)}")
    rows, columns = map(_blocks, shape[-2:])
    return (*shape[:-2], columns, rows, BLOCK, BLOCK)


def _blocks(extent: Dim) -> Dim:
    if not isinstance(extent, Sym):
        return -(-extent // BLOCK)
    blocks = divide_exactly(extent, BLOCK)
    if blocks is None:
        raise TypeRuleError(f"the number of blocks of {BLOCK} in {extent} is not known")
    return blocks


def _trans_data(x: Array, *, attrs: Attrs) -> Array:
    """To FRACTAL_NZ and back; on the way back shape says what the padding is cut to."""
    if layout_name(attrs.str("dst_format", DEFAULT_LAYOUT)) == FRACTAL:
        return _to_fractal(x)
    rows, columns = attrs.ints("shape")[-2:]
    *outer, column_blocks, row_blocks, _, _ = x.shape
    whole = np.moveaxis(x, -4, -2).reshape(*outer, row_blocks * BLOCK, column_blocks * BLOCK)
    return whole[..., :rows, :columns]


def _to_fractal(x: Array) -> Array:
    *outer, rows, columns = x.shape
    padded = np.pad(x, [(0, 0)] * len(outer) + [(0, -rows % BLOCK), (0, -columns % BLOCK)])
    row_blocks, column_blocks = padded.shape[-2] // BLOCK, padded.shape[-1] // BLOCK
    return np.moveaxis(padded.reshape(*outer, row_blocks, BLOCK, column_blocks, BLOCK), -2, -4)


TRANS_DATA = declare(
    "TransData",
    Kind.OPAQUE,
    1,
    _trans_data_type,
    _trans_data,
    attributes=(text("src_format"), text("dst_format"), dims("shape", None)),
    traits=Traits(moves=True),
)


# ---------------------------------------------------------------- LayoutTransform


def _axes(layout: str) -> tuple[tuple[str, int], ...]:
    """The stored axes, outermost first: ``("C", 0)`` is an axis (or its blocks), ``("C", 16)`` the places in a block."""
    written = "NCHW" if layout_name(layout) == DEFAULT_LAYOUT else layout
    parts = re.findall(r"([A-Z])|(\d+)([a-z])", written)
    axes = tuple((whole, 0) if whole else (inner.upper(), int(size)) for whole, size, inner in parts)
    names = [name for name, size in axes if size == 0]
    inner = [name for name, size in axes if size]
    spelled = "".join(name if size == 0 else f"{size}{name.lower()}" for name, size in axes)
    if (
        spelled != written
        or len(set(names)) != len(names)
        or len(set(inner)) != len(inner)
        or not set(inner) <= set(names)
    ):
        raise TypeRuleError(f"{layout!r} is no layout such as NCHW, NHWC or NCHW16c")
    return axes


def _blocks_of(axes: Sequence[tuple[str, int]]) -> Mapping[str, int]:
    return {name: size for name, size in axes if size}


def _layout_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    source, target = _formats(x, attrs)
    stored, wanted = _axes(source), _axes(target)
    if len(stored) != x.rank or {name for name, _ in stored} != {name for name, _ in wanted}:
        raise TypeRuleError(f"cannot store {shape_text(x.shape)} in {source} as {target}")
    extents: dict[str, Dim] = {}
    for (name, size), extent in zip(stored, x.shape, strict=True):
        if size and extent != size:
            raise TypeRuleError(f"the blocks of {source} have {size} elements, got {extent}")
        extents[name] = extents.get(name, 1) * extent
    shape = tuple(size or _divided(extents[name], _blocks_of(wanted).get(name, 1), name) for name, size in wanted)
    return (TensorType(shape, x.dtype, layout_name(target)),)


def _divided(extent: Dim, block: int, name: str) -> Dim:
    count = divide_exactly(extent, block)
    if count is None:
        raise TypeRuleError(f"axis {name} of extent {extent} does not divide into blocks of {block}")
    return count


def _layout_transform(x: Array, *, attrs: Attrs) -> Array:
    """The same elements in another order of axes and blocks, such as NCHW to NCHW16c; an axis must divide into whole
    blocks."""
    stored, wanted = (_axes(attrs.str(name, DEFAULT_LAYOUT)) for name in ("src_format", "dst_format"))
    names = [name for name, size in stored if size == 0]
    plain = np.transpose(x, [place for name in names for place in _places(stored, name)])
    extents = [prod(x.shape[place] for place in _places(stored, name)) for name in names]
    blocks = _blocks_of(wanted)
    split = [
        (extent // blocks[n], blocks[n]) if n in blocks else (extent,) for n, extent in zip(names, extents, strict=True)
    ]
    order = [(n, size) for n in names for size in ((0, blocks[n]) if n in blocks else (0,))]
    pieces = plain.reshape(extents).reshape([extent for parts in split for extent in parts])
    return np.transpose(pieces, [order.index(axis) for axis in wanted])


def _places(axes: Sequence[tuple[str, int]], name: str) -> list[int]:
    """Where a logical axis is stored: its blocks before the places in a block."""
    return sorted((place for place, axis in enumerate(axes) if axis[0] == name), key=lambda place: axes[place][1])


LAYOUT_TRANSFORM = declare(
    "LayoutTransform",
    Kind.OPAQUE,
    1,
    _layout_type,
    _layout_transform,
    attributes=(text("src_format"), text("dst_format")),
    traits=Traits(moves=True),
)
