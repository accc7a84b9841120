"""Layouts become shapes: after this, no operator mixes FRACTAL_NZ tensors with plain ones.

FRACTAL_NZ stores a matrix ``[.., M, N]`` as ``[.., N/16, M/16, 16, 16]``. AKG's writer leaves two things implicit, which
are written out here as Reshape and Transpose: a plain operand beside FRACTAL_NZ ones, and TransData without padding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernelgen.composite.description import Tensor
from kernelgen.composite.document import Document, Operation
from kernelgen.composite.scalar_rules import ELEMENTWISE
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import Dim, Shape, divide_exactly, product
from kernelgen.tensor.operators.layout import TRANS_DATA
from kernelgen.tensor.operators.shape import RESHAPE, TRANSPOSE

FRACTAL = "FRACTAL_NZ"
PLAIN = frozenset({"DefaultFormat", "NCHW", "ND"})
BLOCK = 16


def write_out_layouts(desc: Document) -> Document:
    """The description with implicit changes of layout written out; the same object when there are none."""
    ops = tuple(step for op in desc.ops for step in _explicit(op))
    return desc if ops == desc.ops else replace(desc, ops=ops)


def _explicit(op: Operation) -> Iterator[Operation]:
    if op.op is TRANS_DATA:
        yield from _trans_data(op)
        return
    if op.op not in ELEMENTWISE or op.outs[0].layout != FRACTAL:
        yield op
        return
    operands: list[Tensor] = []
    for operand in op.args:
        steps = _like_result(operand, op.outs[0])
        yield from steps
        operands.append(steps[-1].out if steps else operand)
    yield replace(op, args=tuple(operands))


def _like_result(operand: Tensor, result: Tensor) -> list[Operation]:
    """The operators that bring a plain operand into the layout of a FRACTAL_NZ result; none when it fits as it is."""
    if operand.layout == FRACTAL or operand.value is not None or all(dim == 1 for dim in operand.shape):
        return []
    steps = _to_fractal(operand, f"{operand.name}_in_{result.name}") or []
    return steps if steps and len(steps[-1].out.shape) <= len(result.shape) else []


def _trans_data(op: Operation) -> list[Operation]:
    source, target = op.attrs.str("src_format", ""), op.attrs.str("dst_format", "")
    result = op.out
    if source in PLAIN and target == FRACTAL:
        steps = _to_fractal(op.args[0], f"{result.name}_blocks")
    elif source == FRACTAL and target in PLAIN:
        steps = _from_fractal(op.args[0], f"{result.name}_blocks", result.shape)
    else:
        steps = None
    if steps is None:
        return [op]
    last = steps[-1]
    return [*steps[:-1], replace(last, outs=(result,))] if last.out.shape == result.shape else [op]


def _to_fractal(tensor: Tensor, name: str) -> list[Operation] | None:
    """``[.., M, N] -> [.., M/16, 16, N/16, 16] -> [.., N/16, M/16, 16, 16]``; None when a block would be padded."""
    *outer, rows, columns = tensor.shape if len(tensor.shape) > 1 else (1, *tensor.shape)
    row_split, column_split = _blocks(rows), _blocks(columns)
    if row_split is None or column_split is None:
        return None
    (row_blocks, row), (column_blocks, column) = row_split, column_split
    result = (*outer, column_blocks, row_blocks, row, column)
    if rows == 1 or columns == 1:
        return [_reshape(tensor, name, result)]
    split = _reshape(tensor, f"{name}_split", (*outer, row_blocks, row, column_blocks, column))
    return [split, _transpose(split.out, name, (2, 0, 1, 3), result)]


def _from_fractal(tensor: Tensor, name: str, shape: Shape) -> list[Operation] | None:
    """``[.., N/16, M/16, 16, 16] -> [.., M/16, 16, N/16, 16] -> [.., M, N]``; None when a block was padded."""
    *outer, column_blocks, row_blocks, row, column = tensor.shape
    if product(tensor.shape) != product(shape):
        return None
    turned = _transpose(tensor, f"{name}_split", (1, 2, 0, 3), (*outer, row_blocks, row, column_blocks, column))
    return [turned, _reshape(turned.out, name, shape)]


def _blocks(extent: Dim) -> tuple[Dim, Dim] | None:
    """(number of blocks, extent of a block); an extent of 1 is broadcast and stays one."""
    if extent == 1:
        return 1, 1
    count = divide_exactly(extent, BLOCK)
    return None if count is None else (count, BLOCK)


def _reshape(source: Tensor, name: str, shape: Shape) -> Operation:
    return Operation(RESHAPE.name, (source,), (Tensor(name, shape, source.dtype),), Attrs.of(shape=shape))


def _transpose(source: Tensor, name: str, inner: tuple[int, ...], shape: Shape) -> Operation:
    outer = len(shape) - len(inner)
    perm = (*range(outer), *(outer + axis for axis in inner))
    return Operation(TRANSPOSE.name, (source,), (Tensor(name, shape, source.dtype),), Attrs.of(perm=perm))
