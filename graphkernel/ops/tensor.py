"""Tensor: a value together with the builder that records it, and ``apply``, through which every operator goes.

There is no ambient state: the builder travels in the operands. Without any Tensor among the operands an operator
computes at once on numpy arrays.

Weak typing of what is not a Tensor: a Python scalar takes the data type of the first tensor operand when it fits
without loss of kind (no float into an integer tensor, no integer into bool; ``TypeRuleError`` says to cast the tensor).
A numpy array does so between floats and between integers and keeps its own data type otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from graphkernel.errors import FrontendError, TypeRuleError
from graphkernel.ir.graph import Builder, Value
from graphkernel.ir.opdef import OpDef
from graphkernel.ir.types import Attrs, Category, Dim, DType, Shape, TensorType, dtype
from graphkernel.ops.elemwise import ABS, ADD, FLOOR_DIV, FLOOR_MOD, MUL, NEG, POW, REAL_DIV, SUB
from graphkernel.ops.families import Array
from graphkernel.ops.matmul import BATCH_MATMUL, MATMUL
from graphkernel.ops.select import (
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

Scalar = bool | int | float


@dataclass(frozen=True, eq=False, repr=False)
class Tensor:
    """A symbolic tensor. Operators on it are recorded; its elements are not known."""

    value: Value
    builder: Builder

    __array_ufunc__ = None  # numpy arrays on the left leave the operator to us
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

    def __bool__(self) -> bool:
        raise FrontendError("a traced tensor has no truth value: use ops.select instead of if, and & | ~ instead of and or not")

    def __iter__(self) -> Any:  # noqa: ANN401  # never returns
        raise FrontendError("a traced tensor cannot be iterated over: use ops.split")

    def __add__(self, other: Operand) -> Tensor:
        return record(ADD, self, other)

    def __radd__(self, other: Operand) -> Tensor:
        return record(ADD, other, self)

    def __sub__(self, other: Operand) -> Tensor:
        return record(SUB, self, other)

    def __rsub__(self, other: Operand) -> Tensor:
        return record(SUB, other, self)

    def __mul__(self, other: Operand) -> Tensor:
        return record(MUL, self, other)

    def __rmul__(self, other: Operand) -> Tensor:
        return record(MUL, other, self)

    def __truediv__(self, other: Operand) -> Tensor:
        return record(REAL_DIV, self, other)

    def __rtruediv__(self, other: Operand) -> Tensor:
        return record(REAL_DIV, other, self)

    def __floordiv__(self, other: Operand) -> Tensor:
        return record(FLOOR_DIV, self, other)

    def __mod__(self, other: Operand) -> Tensor:
        return record(FLOOR_MOD, self, other)

    def __pow__(self, other: Operand) -> Tensor:
        return record(POW, self, other)

    def __rpow__(self, other: Operand) -> Tensor:
        return record(POW, other, self)

    def __matmul__(self, other: Operand) -> Tensor:
        return record(MATMUL if self.ndim == 2 and rank_of(other) == 2 else BATCH_MATMUL, self, other)

    def __rmatmul__(self, other: Operand) -> Tensor:
        return record(MATMUL if self.ndim == 2 and rank_of(other) == 2 else BATCH_MATMUL, other, self)

    def __neg__(self) -> Tensor:
        return record(NEG, self)

    def __abs__(self) -> Tensor:
        return record(ABS, self)

    def __and__(self, other: Operand) -> Tensor:
        return record(LOGICAL_AND, self, other)

    def __or__(self, other: Operand) -> Tensor:
        return record(LOGICAL_OR, self, other)

    def __invert__(self) -> Tensor:
        return record(LOGICAL_NOT, self)

    def __lt__(self, other: Operand) -> Tensor:
        return record(LESS, self, other)

    def __le__(self, other: Operand) -> Tensor:
        return record(LESS_EQUAL, self, other)

    def __gt__(self, other: Operand) -> Tensor:
        return record(GREATER, self, other)

    def __ge__(self, other: Operand) -> Tensor:
        return record(GREATER_EQUAL, self, other)

    def __eq__(self, other: Operand) -> Tensor:  # type: ignore[override]  # element by element, as numpy's
        return record(EQUAL, self, other)

    def __ne__(self, other: Operand) -> Tensor:  # type: ignore[override]  # element by element, as numpy's
        return record(NOT_EQUAL, self, other)


Operand = Tensor | Array | Scalar
TensorLike = TypeVar("TensorLike", Tensor, Array)


def record(op: OpDef, *operands: Operand, **attrs: object) -> Tensor:
    """Applies an operator with one result, at least one operand being a Tensor."""
    (result,) = record_all(op, *operands, **attrs)
    return result


def record_all(op: OpDef, *operands: Operand, **attrs: object) -> tuple[Tensor, ...]:
    """Applies an operator with any number of results, at least one operand being a Tensor."""
    first = next((operand for operand in operands if isinstance(operand, Tensor)), None)
    if first is None:
        raise FrontendError(f"{op.name}: no operand is a traced tensor")
    values = tuple(lift(operand, first).value for operand in operands)
    if any(isinstance(operand, Tensor) and operand.builder is not first.builder for operand in operands):
        raise FrontendError(f"{op.name}: operands come from two different traces")
    node = first.builder.node(op, values, Attrs.of(attrs))
    return tuple(Tensor(value, first.builder) for value in node.outs)


def compute_all(op: OpDef, *operands: Array | Scalar, **attrs: object) -> tuple[Array, ...]:
    """Computes an operator on numpy arrays by its meaning, operands checked by its type rule."""
    array = next((operand for operand in operands if isinstance(operand, np.ndarray | np.generic)), None)
    like = dtype(array.dtype) if array is not None else dtype("float32")
    arrays = tuple(x if isinstance(x, np.ndarray) else weak_array(x, like) for x in operands)
    frozen = Attrs.of(attrs)
    op.infer(tuple(TensorType(tuple(x.shape), dtype(x.dtype)) for x in arrays), frozen)
    found = op.meaning(*arrays, attrs=frozen)
    return tuple(found) if isinstance(found, tuple) else (np.asarray(found),)


def apply_all(op: OpDef, *operands: Any, **attrs: object) -> tuple[Any, ...]:  # noqa: ANN401  # Tensors give Tensors, arrays arrays
    """Records the operator when an operand is a Tensor, otherwise computes it."""
    traced = any(isinstance(operand, Tensor) for operand in operands)
    return record_all(op, *operands, **attrs) if traced else compute_all(op, *operands, **attrs)


def apply(op: OpDef, *operands: Any, **attrs: object) -> Any:  # noqa: ANN401  # as apply_all
    """As :func:`apply_all` for an operator with one result."""
    (result,) = apply_all(op, *operands, **attrs)
    return result


def lift(operand: Operand, like: Tensor) -> Tensor:
    """The operand as a Tensor of the same trace; scalars and arrays become constants (weak typing, see above)."""
    if isinstance(operand, Tensor):
        return operand
    return Tensor(like.builder.constant(weak_array(operand, like.dtype)), like.builder)


def weak_array(operand: object, like: DType) -> Array:
    """A Python scalar or array as an array of the data type ``like``, where weak typing allows it."""
    if isinstance(operand, bool | int | float):
        return _weak_scalar(operand, like)
    array = np.asarray(operand)
    own = dtype(array.dtype)
    same_kind = (own.is_float and like.is_float) or (own.is_integer and like.is_integer)
    return array.astype(like.numpy) if same_kind else array


def rank_of(operand: Operand) -> int:
    """The number of dims; 0 for a scalar."""
    return operand.ndim if isinstance(operand, Tensor) else np.ndim(operand)


def _weak_scalar(scalar: Scalar, like: DType) -> Array:
    lossy = (isinstance(scalar, float) and like.category in (Category.BOOL, Category.INT, Category.UINT)) or (
        not isinstance(scalar, bool) and like.category is Category.BOOL
    )
    if lossy:
        raise TypeRuleError(f"the scalar {scalar!r} does not fit a tensor of {like.name}; cast the tensor first (ops.cast)")
    try:
        return np.asarray(scalar, like.numpy)
    except OverflowError as error:
        raise TypeRuleError(f"the scalar {scalar!r} is out of range for {like.name}") from error
