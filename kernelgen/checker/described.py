"""The terms that a description gives to its outputs, one numpy array of numbers (see ``terms``) for each.

Operators without a meaning in terms (products of matrices, scans, scatters) are reported, not guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelgen.checker import terms
from kernelgen.checker.terms import Function
from kernelgen.desc import IN_PLACE_OPS, KernelDesc, OpDesc, TensorDesc
from kernelgen.desc_bind import specialize
from kernelgen.desc_rules import reduced_axes
from kernelgen.dtypes import BOOL, UINT64, Category, DType
from kernelgen.meaning.table import MEANINGS
from kernelgen.nest.scalars import SCALARS, Result
from kernelgen.vocabulary import ELEMENTWISE, REDUCTIONS, constant, operand_dtypes

Array = np.ndarray[Any, Any]  # of Python integers

MOVES = frozenset({
    "Reshape", "ExpandDims", "Squeeze", "Flatten", "EquivFormat", "BroadcastTo", "Transpose", "Tile", "Concat",
    "StridedSlice", "Slice", "UnPadAkg", "Split",
})  # fmt: skip
"""Operators whose numpy meaning only moves elements, whatever they are."""
SUMS_OF_PRODUCTS = frozenset({"MatMul", "BatchMatMul", "Conv2D", "CumSum", "CumProd", "TransData", "PadAkg"})
"""Operators whose numpy meaning on unsigned integers is that of the ring of terms: sums, products, and zeros around."""


@dataclass(frozen=True)
class Terms:
    """The numbers of the elements of a tensor."""

    numbers: Array
    kind: DType


def without_terms(desc: KernelDesc) -> str:
    """The first operator that has no meaning in terms; empty when there is none."""
    return next((op.name for op in desc.ops if not _has_terms(op)), "")


def _has_terms(op: OpDesc) -> bool:
    """Whether its table is here; complex numbers are pairs in a nest, and only zeros may pad."""
    if any(tensor.dtype.category is Category.COMPLEX for tensor in (*op.inputs, *op.outputs)):
        return False
    if op.name == "PadAkg" and op.attrs.get("pad_val"):
        return False
    return any(op.name in table for table in (ELEMENTWISE, REDUCTIONS, MOVES, SUMS_OF_PRODUCTS, IN_PLACE_OPS))


def described_terms(desc: KernelDesc, sizes: Mapping[str, int]) -> tuple[Array, ...]:
    """The terms of every output, then of every updated input, flat."""
    desc = specialize(desc, sizes)
    values: dict[str, Terms] = {}
    for position, tensor in enumerate(desc.inputs):
        shape = _sizes(tensor)
        numbers = [terms.element(position, offset) for offset in range(int(np.prod(shape)))]
        values[tensor.name] = Terms(_array(numbers, shape), tensor.dtype)
    for op in desc.ops:
        _run(op, values)
    results = [_operand(tensor, values) for tensor in (*desc.outputs, *(desc.inputs[k] for k in desc.updated_inputs))]
    return tuple(result.numbers.reshape(-1) for result in results)


def _run(op: OpDesc, values: dict[str, Terms]) -> None:
    operands = [_operand(tensor, values) for tensor in op.inputs]
    if op.name in IN_PLACE_OPS:
        values[op.inputs[0].name] = _described(operands[1], op.inputs[0])
        values[op.output.name] = _described(operands[-1], op.output)
        return
    if op.name in ELEMENTWISE:
        found = [ELEMENTWISE[op.name](ALGEBRA, operands, op)]
    elif op.name in REDUCTIONS:
        found = [_reduced(operands[0], op)]
    elif op.name in SUMS_OF_PRODUCTS:
        found = [_ring_value(operands, op)]
    else:
        moved = MEANINGS[op.name]([operand.numbers for operand in operands], op)
        found = [Terms(part, operands[0].kind) for part in (moved if isinstance(moved, tuple) else (moved,))]
    for tensor, value in zip(op.outputs, found, strict=True):
        values[tensor.name] = _described(value, tensor)


def _ring_value(operands: Sequence[Terms], op: OpDesc) -> Terms:
    """The meaning of the operator in uint64, whose sums and products are those of the ring."""
    integral = replace(
        op,
        inputs=tuple(replace(tensor, dtype=UINT64) for tensor in op.inputs),
        outputs=tuple(replace(tensor, dtype=UINT64) for tensor in op.outputs),
    )
    found = MEANINGS[op.name]([operand.numbers.astype(np.uint64) for operand in operands], integral)
    return Terms(np.asarray(found).astype(object), operands[0].kind)


def _reduced(value: Terms, op: OpDesc) -> Terms:
    """Folds the reduced axes, the last one first."""
    reduction = REDUCTIONS[op.name]
    value = ALGEBRA.cast(value, op.output.dtype)
    fold = np.frompyfunc(terms.function(reduction, value.kind), 2, 1)
    numbers = value.numbers
    for axis in sorted(reduced_axes(op), reverse=True):
        if numbers.shape[axis]:
            numbers = np.asarray(fold.reduce(numbers, axis=axis, keepdims=True), object)
        else:
            shape = (*numbers.shape[:axis], 1, *numbers.shape[axis + 1 :])
            numbers = np.full(shape, terms.neutral(reduction, value.kind), object)
    return Terms(numbers, value.kind)


def _operand(tensor: TensorDesc, values: Mapping[str, Terms]) -> Terms:
    if tensor.value is None:
        return values[tensor.name]
    return Terms(np.full(_sizes(tensor), terms.literal(tensor.value, tensor.dtype), object), tensor.dtype)


def _described(value: Terms, tensor: TensorDesc) -> Terms:
    """In the described data type and shape: reshaped when only extents of 1 differ, else broadcast."""
    value = ALGEBRA.cast(value, tensor.dtype)
    numbers, shape = value.numbers, _sizes(tensor)
    if [d for d in numbers.shape if d != 1] == [d for d in shape if d != 1]:
        return Terms(numbers.reshape(shape), value.kind)
    kept = numbers.shape[max(numbers.ndim - len(shape), 0) :]
    return Terms(np.broadcast_to(numbers.reshape(kept), shape), value.kind)


class TermAlgebra:
    """The :class:`~kernelgen.vocabulary.Algebra` of terms."""

    def call(self, function: str, *args: Terms | float) -> Terms:
        """The scalar function on every element, operands broadcast."""
        given = tuple(arg.kind if isinstance(arg, Terms) else None for arg in args)
        kinds = operand_dtypes(function, given)
        operands = [self._operand(arg, kind).numbers for arg, kind in zip(args, kinds, strict=True)]
        result = BOOL if SCALARS[function].result is Result.BOOL else kinds[-1]
        return Terms(_mapped(terms.function(function, kinds[-1]), *operands), result)

    def cast(self, value: Terms, target: DType) -> Terms:
        """The terms after a conversion."""
        convert = terms.conversion(value.kind, target)
        return Terms(value.numbers if convert is None else _mapped(convert, value.numbers), target)

    def literal(self, value: float, target: DType) -> Terms:
        """A constant of rank 0."""
        return Terms(_array([terms.literal(constant(value, target), target)], ()), target)

    def dtype(self, value: Terms) -> DType:
        """The data type of the elements."""
        return value.kind

    def _operand(self, value: Terms | float, target: DType) -> Terms:
        return self.cast(value, target) if isinstance(value, Terms) else self.literal(value, target)


ALGEBRA = TermAlgebra()


def _mapped(compute: Function, *operands: Array) -> Array:
    return np.asarray(np.frompyfunc(compute, len(operands), 1)(*operands), object)


def _array(numbers: Sequence[int], shape: tuple[int, ...]) -> Array:
    made = np.empty(len(numbers), object)
    made[:] = numbers
    return made.reshape(shape)


def _sizes(tensor: TensorDesc) -> tuple[int, ...]:
    return tuple(int(dim) for dim in tensor.shape)  # pyright: ignore[reportArgumentType]  # specialised
