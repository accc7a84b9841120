"""The terms of operators on complex numbers: a pair of terms for each.

Sums, and whatever moves elements, work on both parts alike; products are those of complex numbers, and quotients are
``a w / b w`` with ``w`` the conjugate of b over its larger part. In the ring of terms it is the same how the sums of a
product are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import numpy as np

from kernelgen.checker.algebra import TermAlgebra, Terms
from kernelgen.checker.operators import MOVES, has_real_terms, known_operands, real_value
from kernelgen.composite.description import Tensor
from kernelgen.composite.document import Operation
from kernelgen.tensor.dtypes import COMPLEX64, FLOAT32, FLOAT64, Category, DType


@dataclass(frozen=True)
class Pair:
    """Real and imaginary parts."""

    real: Terms
    imaginary: Terms

    def each(self, change: Callable[[Terms], Terms]) -> Pair:
        """Both parts changed alike."""
        return Pair(change(self.real), change(self.imaginary))


Value = Terms | Pair

PARTS_ALIKE = MOVES | frozenset({
    "Add", "TensorAdd", "Sub", "Neg", "AddN", "ZerosLike", "TensorMove", "ReduceSum", "CumSum", "PadAkg", "TransData",
    "LayoutTransform", "Gather", "GatherNd", "TensorScatterAdd", "UnsortedSegmentSum", "OneHot", "Select",
})  # fmt: skip
PRODUCTS = frozenset({"Mul", "Square", "MatMul", "BatchMatMul"})


def real_kind(kind: DType) -> DType:
    """The data type of the parts."""
    if kind.category is not Category.COMPLEX:
        return kind
    return FLOAT32 if kind == COMPLEX64 else FLOAT64


def is_complex(tensor: Tensor) -> bool:
    """Whether its elements are pairs."""
    return tensor.dtype.category is Category.COMPLEX


def has_terms(op: Operation) -> bool:
    """Whether the operator has a meaning in terms, real or complex."""
    if not any(map(is_complex, (*op.args, *op.outs))):
        return has_real_terms(op)
    return op.name in PARTS_ALIKE | PRODUCTS or op.name in OTHERS


def complex_value(op: Operation, operands: Sequence[Value], algebra: TermAlgebra) -> list[Value]:
    """The results of an operator of which an operand or a result is complex."""
    if op.name in OTHERS:
        return [OTHERS[op.name](op, operands, algebra)]
    if op.name in PRODUCTS:
        left, right = (_pair(each, algebra) for each in (*operands, *operands)[:2])
        return [_product(op, left, right, operands[2:], algebra)]
    first, second = (
        _alike(op, [_part(k, v, op, algebra)[part] for k, v in enumerate(operands)], part, algebra) for part in (0, 1)
    )
    return [Pair(a, b) for a, b in zip(first, second, strict=True)]


def _alike(op: Operation, operands: Sequence[Terms], part: int, algebra: TermAlgebra) -> list[Terms]:
    attrs = op.attrs.without("pad_val") if part else op.attrs
    return real_value(replace(_real_op(op), attrs=attrs), operands, algebra)


def _part(place: int, value: Value, op: Operation, algebra: TermAlgebra) -> tuple[Terms, Terms]:
    """What the operator on real, and the one on imaginary parts takes; ids and conditions are the same for both."""
    chooses = place in known_operands(op) or (op.name == "Select" and place == 0)
    if chooses and isinstance(value, Terms):
        return value, value
    pair = _pair(value, algebra)
    return pair.real, pair.imaginary


def _pair(value: Value, algebra: TermAlgebra) -> Pair:
    if isinstance(value, Pair):
        return value
    return Pair(value, Terms(np.full(value.numbers.shape, 0, object), value.kind))


def _real_op(op: Operation) -> Operation:
    inputs, outputs = (
        tuple(replace(tensor, dtype=real_kind(tensor.dtype)) for tensor in tensors) for tensors in (op.args, op.outs)
    )
    return replace(op, args=inputs, outs=outputs)


def _product(op: Operation, a: Pair, b: Pair, more: Sequence[Value], algebra: TermAlgebra) -> Pair:
    """The product of numbers or of matrices, plus what a matrix product adds."""
    plain = replace(_real_op(op), name="Mul" if op.name == "Square" else op.name)
    plain = replace(plain, args=(plain.args * 2)[:2])

    def times(x: Terms, y: Terms) -> Terms:
        (found,) = real_value(plain, (x, y), algebra)
        return found

    found = _multiplied(times, a, b, algebra)
    for bias in (_pair(each, algebra) for each in more):
        real, imaginary = found.real, found.imaginary
        found = Pair(algebra.call("add", real, bias.real), algebra.call("add", imaginary, bias.imaginary))
    return found


def _multiplied(times: Callable[[Terms, Terms], Terms], a: Pair, b: Pair, algebra: TermAlgebra) -> Pair:
    """``(a0 b0 - a1 b1) + (a0 b1 + a1 b0) i``."""
    real = algebra.call("sub", times(a.real, b.real), times(a.imaginary, b.imaginary))
    return Pair(real, algebra.call("add", times(a.real, b.imaginary), times(a.imaginary, b.real)))


def _quotient(op: Operation, operands: Sequence[Value], algebra: TermAlgebra) -> Pair:
    """``a w / b w``, where ``w`` is some multiple of the conjugate of b, so that ``b w`` is real; a reciprocal is that of 1.

    Both are products of complex numbers. A real b divides part by part.
    """
    *dividend, b = (_pair(each, algebra) for each in operands)
    one = algebra.literal(1, real_kind(op.out.dtype))
    a = dividend[0] if dividend else Pair(one, algebra.literal(0, one.kind))
    if not is_complex(op.args[-1]):
        return a.each(lambda part: algebra.call("div", part, b.real))
    w = _conjugate_over_larger_part(b, one, algebra)
    times = partial(algebra.call, "mul")
    size = _multiplied(times, b, w, algebra).real
    return _multiplied(times, a, w, algebra).each(lambda part: algebra.call("div", part, size))


def _conjugate_over_larger_part(b: Pair, one: Terms, algebra: TermAlgebra) -> Pair:
    """``conj(b) / p``: ``1 - q/p i`` where p is the real part of b, and ``q/p - i`` where it is the imaginary one."""
    sizes = b.each(lambda part: algebra.call("abs", part))
    is_real = algebra.call("greater_equal", sizes.real, sizes.imaginary)
    smaller = algebra.call("select", is_real, b.imaginary, b.real)
    ratio = algebra.call("div", smaller, algebra.call("select", is_real, b.real, b.imaginary))
    real, imaginary = algebra.call("select", is_real, one, ratio), algebra.call("select", is_real, ratio, one)
    return Pair(real, algebra.call("neg", imaginary))


def _complex(op: Operation, operands: Sequence[Value], algebra: TermAlgebra) -> Pair:
    real, imaginary = (_pair(each, algebra).real for each in operands)
    return Pair(real, imaginary)


def _taken(op: Operation, operands: Sequence[Value], algebra: TermAlgebra) -> Terms:
    pair = _pair(operands[0], algebra)
    return pair.imaginary if op.name == "CImag" else pair.real


def _cast(op: Operation, operands: Sequence[Value], algebra: TermAlgebra) -> Value:
    """A complex number as a real one is its real part."""
    pair = _pair(operands[0], algebra)
    return pair if is_complex(op.out) else pair.real


def _comparison(op: Operation, operands: Sequence[Value], algebra: TermAlgebra) -> Terms:
    """Equal where both parts are; not finite, or NaN, where a part is."""
    pairs = [_pair(each, algebra) for each in operands]
    function = {"Equal": "equal", "NotEqual": "not_equal", "IsNan": "is_nan", "IsInf": "is_inf"}.get(
        op.name, "is_finite"
    )
    real = algebra.call(function, *(pair.real for pair in pairs))
    imaginary = algebra.call(function, *(pair.imaginary for pair in pairs))
    return algebra.call("logical_and" if op.name in ("Equal", "IsFinite") else "logical_or", real, imaginary)


OTHERS: Mapping[str, Callable[[Operation, Sequence[Value], TermAlgebra], Value]] = MappingProxyType({
    **dict.fromkeys(("Div", "RealDiv", "Reciprocal"), _quotient), "Complex": _complex,
    **dict.fromkeys(("CReal", "CImag"), _taken), "Cast": _cast,
    **dict.fromkeys(("Equal", "NotEqual", "IsNan", "IsInf", "IsFinite"), _comparison),
    **dict.fromkeys(("Assign", "InplaceAssign"), lambda op, operands, algebra: operands[1]),
})  # fmt: skip
