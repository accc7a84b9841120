"""Tensor: a value together with the builder that records it. There is no ambient state: the builder travels in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import EllipsisType
from typing import TypeAlias

import numpy as np

from graphkernel.errors import FrontendError
from graphkernel.ops.composite.normalize import REDUCE_MEAN
from graphkernel.ops.tensor.arguments import IndexItem, index_ranges
from graphkernel.ops.tensor.untraceable import Untraceable
from graphkernel.ops.tensor.weak_typing import Scalar, operand_types, weak_array
from kernelgen.tensor.graph import Builder, Value
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.attributes import Axes, normal_axes, resolved_shape
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.elemwise import ABS, ADD, FLOOR_DIV, FLOOR_MOD, MUL, NEG, POW, REAL_DIV, SUB
from kernelgen.tensor.operators.families import Array
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.operators.pieces import STRIDED_SLICE
from kernelgen.tensor.operators.reduce import REDUCE_MAX, REDUCE_MIN, REDUCE_SUM
from kernelgen.tensor.operators.select import (
    EQUAL,
    GREATER,
    GREATER_EQUAL,
    LESS,
    LESS_EQUAL,
    LOGICAL_AND,
    LOGICAL_NOT,
    LOGICAL_OR,
    NOT_EQUAL,
)
from kernelgen.tensor.operators.shape import RESHAPE, TRANSPOSE
from kernelgen.tensor.operators.type_rules import axis_of
from kernelgen.tensor.types import Attrs, Dim, DType, Shape, TensorType, dtype

Binary: TypeAlias = "Callable[[Tensor, Operand], Tensor]"


def _both_sides(op: Operator) -> tuple[Binary, Binary]:
    """Python's methods for an operator: with the tensor on its left, and on its right."""

    def left(self: Tensor, other: Operand) -> Tensor:
        return record(op, self, other)

    def right(self: Tensor, other: Operand) -> Tensor:
        return record(op, other, self)

    return left, right


@dataclass(frozen=True, eq=False, repr=False)
class Tensor(Untraceable):
    """A symbolic tensor. Operators on it are recorded; its elements are not known."""

    value: Value
    builder: Builder

    __hash__ = object.__hash__

    @property
    def type(self) -> TensorType:
        """Shape, data type and layout."""
        return self.value.type

    @property
    def shape(self) -> Shape:
        """The extents; some may be symbols."""
        return self.value.type.shape

    @property
    def dtype(self) -> DType:
        """The data type."""
        return self.value.type.dtype

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return self.value.type.rank

    @property
    def size(self) -> Dim:
        """The number of elements."""
        return self.value.type.size

    def __repr__(self) -> str:
        return f"<Tensor {self.type}>"

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Operand, **options: object) -> Tensor:
        """An operator with an array of numpy on its left is recorded; numpy's functions are refused."""
        op = LEFT_OPERATORS.get(ufunc.__name__)
        if method != "__call__" or options or op is None:
            return self.__array_function__(ufunc, (), operands, options)
        return self.__rmatmul__(operands[0]) if op is MATMUL else record(op, *operands)

    @property
    def T(self) -> Tensor:  # numpy's name
        """The axes in reverse order."""
        return self.transpose()

    def reshape(self, *shape: Dim) -> Tensor:
        """The same elements in another shape; one extent may be -1."""
        return record(RESHAPE, self, shape=resolved_shape(self.shape, shape))

    def transpose(self, *perm: int) -> Tensor:
        """Result axis i is axis ``perm[i]``; without ``perm`` the axes are reversed."""
        order = tuple(axis_of(axis, self.ndim) for axis in perm) or tuple(reversed(range(self.ndim)))
        return record(TRANSPOSE, self, perm=order)

    def astype(self, dst_type: str | DType) -> Tensor:
        """To another data type."""
        return record(CAST, self, dst_type=dtype(dst_type).name)

    def sum(self, axis: Axes = None, keep_dims: bool = False) -> Tensor:
        """The sum over axes; None means all."""
        return self._reduce(REDUCE_SUM, axis, keep_dims)

    def mean(self, axis: Axes = None, keep_dims: bool = False) -> Tensor:
        """The mean over axes; None means all."""
        return self._reduce(REDUCE_MEAN, axis, keep_dims)

    def max(self, axis: Axes = None, keep_dims: bool = False) -> Tensor:
        """The maximum over axes; None means all."""
        return self._reduce(REDUCE_MAX, axis, keep_dims)

    def min(self, axis: Axes = None, keep_dims: bool = False) -> Tensor:
        """The minimum over axes; None means all."""
        return self._reduce(REDUCE_MIN, axis, keep_dims)

    def _reduce(self, op: Operator, axis: Axes, keep_dims: bool) -> Tensor:
        return record(op, self, axis=normal_axes(axis, self.ndim), keep_dims=keep_dims)

    def __getitem__(self, key: IndexItem | tuple[IndexItem, ...]) -> Tensor:
        items = key if isinstance(key, tuple) else (key,)
        ranges, kept = index_ranges(self.shape, tuple(map(_index_item, items)))
        begin, end, strides = (tuple(part[i] for part in ranges) for i in range(3))
        whole = all(part == (0, extent, 1) for part, extent in zip(ranges, self.shape, strict=True))
        cut = self if whole else record(STRIDED_SLICE, self, begin=begin, end=end, strides=strides)
        shape = tuple(1 if axis is None else cut.shape[axis] for axis in kept)
        return cut if shape == cut.shape else record(RESHAPE, cut, shape=shape)

    __add__, __radd__ = _both_sides(ADD)
    __sub__, __rsub__ = _both_sides(SUB)
    __mul__, __rmul__ = _both_sides(MUL)
    __truediv__, __rtruediv__ = _both_sides(REAL_DIV)
    __floordiv__, __rfloordiv__ = _both_sides(FLOOR_DIV)
    __mod__, __rmod__ = _both_sides(FLOOR_MOD)
    __pow__, __rpow__ = _both_sides(POW)
    __and__, __rand__ = _both_sides(LOGICAL_AND)
    __or__, __ror__ = _both_sides(LOGICAL_OR)
    __lt__, __gt__ = _both_sides(LESS)[0], _both_sides(GREATER)[0]
    __le__, __ge__ = _both_sides(LESS_EQUAL)[0], _both_sides(GREATER_EQUAL)[0]

    def __matmul__(self, other: Operand) -> Tensor:
        return record(MATMUL if self.ndim == 2 and rank_of(other) == 2 else BATCH_MATMUL, self, other)

    def __rmatmul__(self, other: Operand) -> Tensor:
        return record(MATMUL if self.ndim == 2 and rank_of(other) == 2 else BATCH_MATMUL, other, self)

    def __neg__(self) -> Tensor:
        return record(NEG, self)

    def __pos__(self) -> Tensor:
        return self

    def __abs__(self) -> Tensor:
        return record(ABS, self)

    def __invert__(self) -> Tensor:
        return record(LOGICAL_NOT, self)

    def __eq__(self, other: Operand) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return record(EQUAL, self, other)

    def __ne__(self, other: Operand) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return record(NOT_EQUAL, self, other)


Operand = Tensor | Array | Scalar

LEFT_OPERATORS: Mapping[str, Operator] = {
    "add": ADD, "subtract": SUB, "multiply": MUL, "divide": REAL_DIV, "floor_divide": FLOOR_DIV, "remainder": FLOOR_MOD,
    "power": POW, "matmul": MATMUL, "less": LESS, "less_equal": LESS_EQUAL, "greater": GREATER,
    "greater_equal": GREATER_EQUAL, "equal": EQUAL, "not_equal": NOT_EQUAL, "bitwise_and": LOGICAL_AND,
    "bitwise_or": LOGICAL_OR,
}  # fmt: skip
"""What numpy calls its operators, where an array of it stands on the left."""


def _index_item(item: object) -> IndexItem:
    """What basic indexing takes; ``FrontendError`` says what to write for indexing by values."""
    if isinstance(item, Tensor) and item.dtype == dtype("bool"):
        raise FrontendError(
            "x[mask] would have a shape that depends on values: use ops.select(mask, x, other), and reduce that"
        )
    if isinstance(item, Tensor | np.ndarray | list):
        raise FrontendError("a traced tensor is indexed by numbers and slices: use ops.gather(x, indices, axis)")
    if isinstance(item, int | np.integer) and not isinstance(item, bool):
        return int(item)
    if item is None or isinstance(item, slice | EllipsisType):
        return item
    raise FrontendError(f"a traced tensor is indexed by numbers and slices, not by {item!r}")


def record(op: Operator, /, *operands: Operand, **attrs: object) -> Tensor:
    """Applies an operator with one result, at least one operand being a Tensor."""
    (result,) = record_all(op, *operands, **attrs)
    return result


def record_all(op: Operator, /, *operands: Operand, **attrs: object) -> tuple[Tensor, ...]:
    """Applies an operator with any number of results, at least one operand being a Tensor.

    Raises FrontendError where no operand is a Tensor, or two are of different traces.
    """
    first = next((operand for operand in operands if isinstance(operand, Tensor)), None)
    if first is None:
        raise FrontendError(f"{op.name}: no operand is a traced tensor")
    kinds = operand_types(op, [x.dtype if isinstance(x, Tensor) else None for x in operands])
    values = tuple(_lifted(x, first.builder, kind).value for x, kind in zip(operands, kinds, strict=True))
    if any(isinstance(operand, Tensor) and operand.builder is not first.builder for operand in operands):
        raise FrontendError(f"{op.name}: operands come from two different traces")
    node = first.builder.node(op, values, Attrs.of(attrs))
    return tuple(Tensor(value, first.builder) for value in node.outs)


def _lifted(operand: Operand, builder: Builder, like: DType) -> Tensor:
    """The operand as a Tensor of a trace; numbers and arrays become constants (weak typing)."""
    return operand if isinstance(operand, Tensor) else Tensor(builder.constant(weak_array(operand, like)), builder)


def rank_of(operand: Operand) -> int:
    """The number of dims; 0 for a scalar."""
    return operand.ndim if isinstance(operand, Tensor) else np.ndim(operand)
