"""What shapes an operator's results must have, given its operands. One rule per operator; no rule, no opinion.

A rule returns the shapes of all results, or raises ValueError or TypeRuleError with what is wrong with the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kernelgen.composite import sparse_shapes as desc_sparse
from kernelgen.composite import window_shapes as desc_windows
from kernelgen.composite.scalar_rules import ELEMENTWISE, REDUCTIONS
from kernelgen.composite.slice_shapes import sliced_shape
from kernelgen.composite.vocabulary import (
    ELEM_ALL,
    INPLACE_ASSIGN,
    STANDARD_NORMAL,
    STRIDED_SLICE_V2,
    VIEWS,
    by_operator,
    is_declared,
)
from kernelgen.tensor.dims import Dim, Shape, product
from kernelgen.tensor.operator import Application, Operator
from kernelgen.tensor.operators import catalogue as basic
from kernelgen.tensor.operators.matmul import product_shape
from kernelgen.tensor.operators.pieces import concatenated_shape
from kernelgen.tensor.operators.shape import transposed_shape
from kernelgen.tensor.operators.type_rules import broadcast_shapes, normal_axis, reduced_axes, reduced_shape
from kernelgen.tensor.types import TensorType

ShapeRule = Callable[[Application], tuple[Shape, ...]]


def expected_shapes(node: Application) -> tuple[Shape, ...] | None:
    """The results' shapes, None when no rule is known. Raises ValueError or TypeRuleError for operands that do not fit."""
    rule = _inferred if is_declared(node.op) else SHAPE_RULES.get(node.op)
    return rule(node) if rule else None


# ---------------------------------------------------------------- rules


def _inferred(node: Application) -> tuple[Shape, ...]:
    """What the operator's own type rule says; other attributes of AKG's tell nothing about shapes."""
    rule = node.op
    types = tuple(TensorType(t.shape, t.dtype) for t in node.args)
    attrs = node.attrs.without(*(name for name in node.attrs if name not in rule.attribute_names))
    return tuple(type_.shape for type_ in rule.infer(types, attrs))


def _elementwise(node: Application) -> tuple[Shape, ...]:
    """Results may be larger than the operands: AKG lets operators on constants broadcast to their result."""
    return (broadcast_shapes(t.shape for t in (*node.args, *node.outs)),)


def _same(node: Application) -> tuple[Shape, ...]:
    return (node.args[0].shape,)


def _single(node: Application) -> tuple[Shape, ...]:
    return ((1,),)


def _assign(node: Application) -> tuple[Shape, ...]:
    destination, source = node.args[0].shape, node.args[1].shape
    if _core(broadcast_shapes((destination, source))) != _core(destination):
        raise ValueError(f"shape {list(source)} cannot be assigned to {list(destination)}")
    return (node.args[-1].shape if node.op is INPLACE_ASSIGN else destination,)


def _reduce(node: Application) -> tuple[Shape, ...]:
    return (reduced_shape(node.args[0].shape, reduced_axes(node), node.attrs.bool("keep_dims", False)),)


def _reshape(node: Application) -> tuple[Shape, ...]:
    source, result = node.args[0].shape, node.outs[0].shape
    if product(source) != product(result):
        raise ValueError(f"{list(source)} and {list(result)} differ in their number of elements")
    return (result,)


def _transpose(node: Application) -> tuple[Shape, ...]:
    shape = node.args[0].shape
    perm = node.attrs.ints("perm", tuple(reversed(range(len(shape)))))
    return (transposed_shape(shape, [normal_axis(axis, len(shape)) for axis in perm]),)


def _concat(node: Application) -> tuple[Shape, ...]:
    shapes = [t.shape for t in node.args]
    return (concatenated_shape(shapes, normal_axis(node.attrs.int("axis", 0), len(shapes[0]))),)


def _split(node: Application) -> tuple[Shape, ...]:
    shape = node.args[0].shape
    axis = normal_axis(node.attrs.int("axis", 0), len(shape))
    total: Dim = 0
    for result in node.outs:
        total = total + result.shape[axis]
    if total != shape[axis]:
        raise ValueError(f"the parts' extents along axis {axis} add up to {total}, not to {shape[axis]}")
    return tuple((*shape[:axis], result.shape[axis], *shape[axis + 1 :]) for result in node.outs)


def _described(node: Application) -> tuple[Shape, ...]:
    """StandardNormal: the attribute ``shape`` repeats the result's."""
    return (node.attrs.dims("shape", node.outs[0].shape),)


def _matmul(node: Application) -> tuple[Shape, ...]:
    formats = {node.attrs.str("left_format", "DefaultFormat"), node.attrs.str("right_format", "DefaultFormat")}
    if "FRACTAL_NZ" in formats | {t.layout for t in node.args}:
        return (node.outs[0].shape,)
    return (product_shape(node.args[0].shape, node.args[1].shape, node.attrs),)


def _core(shape: Shape) -> Shape:
    """The shape without its extents of 1."""
    return tuple(dim for dim in shape if dim != 1)


def same_up_to_ones(left: Shape, right: Shape) -> bool:
    """True when both shapes name the same elements in the same order, and differ at most in extents of 1."""
    return _core(left) == _core(right)


INFERRED = (
    basic.TILE, basic.PAD_AKG, basic.UNPAD_AKG, basic.GATHER, basic.GATHER_ND, basic.ONE_HOT, basic.TENSOR_SCATTER_ADD,
    basic.UNSORTED_SEGMENT_SUM,
)  # fmt: skip
"""Operators that AKG writes as graphs do; it leaves attributes of the others away, or lets more shapes pass."""

SHAPE_RULES: Mapping[Operator, ShapeRule] = MappingProxyType({
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(REDUCTIONS, _reduce),
    **by_operator({
        (basic.BROADCAST_TO, basic.COMPLEX): _elementwise, (basic.C_REAL, basic.C_IMAG, basic.CUM_SUM, basic.CUM_PROD): _same,
        VIEWS: _reshape, (basic.ELEM_ANY, ELEM_ALL): _single, (basic.MATMUL, basic.BATCH_MATMUL): _matmul,
        (basic.ASSIGN, INPLACE_ASSIGN): _assign, basic.TRANSPOSE: _transpose, basic.CONCAT: _concat, basic.SPLIT: _split,
        INFERRED: _inferred, (basic.STRIDED_SLICE, STRIDED_SLICE_V2, basic.SLICE): sliced_shape,
        (basic.ARGMAX, basic.ARGMIN): desc_sparse.extreme_position_shape,
        (basic.CSR_MUL, basic.CSR_DIV): desc_sparse.csr_elementwise_shape,
        (basic.CSR_MV, basic.CSR_MM): desc_sparse.csr_matmul_shape, basic.CSR_GATHER: desc_sparse.csr_gather_shape,
        basic.CSR_REDUCE_SUM: desc_sparse.csr_reduce_sum_shape, basic.CSR_TO_COO: desc_sparse.csr_to_coo_shape,
        basic.COO_TO_CSR: desc_sparse.coo_to_csr_shape, basic.CONV2D: desc_windows.conv2d_shape,
        basic.POOL2D: desc_windows.pool2d_shape, STANDARD_NORMAL: _described,
    }),
})  # fmt: skip
