"""Index expressions of a nest as scalar expressions of the kernel: element offsets, bounds, multiples."""

from __future__ import annotations

from collections.abc import Mapping

from kernelgen.ascendc.errors import AscendError
from kernelgen.ascendc.expressions import Expression, Number, larger, smaller
from kernelgen.nest.index import add, from_dim, multiply, stride
from kernelgen.nest.nodes import Index, IndexBinary, IndexOp, Num, ValueIndex, Var
from kernelgen.nest.ranges import Range, range_of
from kernelgen.tensor.dims import Dim


def linear(index: tuple[Index, ...], shape: tuple[Dim, ...]) -> Index:
    """The row-major position of an element."""
    total: Index = Num(0)
    for at, extent in zip(index, shape, strict=True):
        total = add(multiply(total, from_dim(extent)), at)
    return total


def to_expression(index: Index, names: Mapping[str, Expression], known: Mapping[str, Range]) -> Expression:
    """The index in C++, whose division goes towards zero: rows of what may be negative are moved up first.

    Raises AscendError for a place that data decides and nobody bound.
    """
    match index:
        case Num(value):
            return Number(value)
        case Var(name):
            return names[name]
        case ValueIndex():
            raise AscendError("data decides this index, and nobody bound it")
        case IndexBinary(op, left, right):
            a, b = to_expression(left, names, known), to_expression(right, names, known)
            return _binary(op, a, b, range_of(left, known).is_nonnegative)


def _binary(op: IndexOp, a: Expression, b: Expression, plain: bool) -> Expression:
    match op:
        case IndexOp.ADD:
            return a + b
        case IndexOp.SUB:
            return a - b
        case IndexOp.MUL:
            return a * b
        case IndexOp.MIN:
            return smaller(a, b)
        case IndexOp.MAX:
            return larger(a, b)
        case IndexOp.MOD:
            return a % b if plain else (a % b + b) % b
        case IndexOp.DIV:
            return a // b if plain else (a - (a % b + b) % b) // b


def element_step(index: tuple[Index, ...], shape: tuple[Dim, ...], variable: str) -> Index | None:
    """By how many elements an access at ``index`` of an array of this ``shape`` moves when ``variable`` grows by 1;
    None when that is not the same everywhere.
    """
    total: Index = Num(0)
    for at, extent in zip(index, shape, strict=True):
        step = stride(at, variable)
        if step is None:
            return None
        total = add(multiply(total, from_dim(extent)), Num(step))
    return total


def divides(factor: int, index: Index, multiples: Mapping[str, int]) -> bool:
    """Whether ``index`` is certainly a multiple of ``factor``; variables are ``multiples`` of the given numbers."""
    match index:
        case Num(value):
            return value % factor == 0
        case Var(name):
            return multiples.get(name, 1) % factor == 0
        case IndexBinary(IndexOp.ADD | IndexOp.SUB | IndexOp.MIN | IndexOp.MAX, left, right):
            return divides(factor, left, multiples) and divides(factor, right, multiples)
        case IndexBinary(IndexOp.MUL, left, right):
            return divides(factor, left, multiples) or divides(factor, right, multiples)
        case _:
            return False


def most(upper: Index, lower: Index) -> int | None:
    """The most that ``upper - lower`` can be; None when a size decides."""
    match upper:
        case IndexBinary(IndexOp.MIN, left, right):
            found = [bound for bound in (most(left, lower), most(right, lower)) if bound is not None]
            return min(found, default=None)
        case Num(value) if isinstance(lower, Num):
            return value - lower.value
        case IndexBinary(IndexOp.ADD, left, Num(value)):
            if left == lower:
                return value
            inner = most(left, lower)
            return None if inner is None else inner + value
        case _:
            return 0 if upper == lower else None
