"""Making and taking apart index expressions. The constructors simplify, so that equal indices usually look equal."""

from __future__ import annotations

from collections.abc import Mapping

from kernelgen.dims import Dim, Sym
from kernelgen.nest.nodes import Index, IndexBinary, IndexOp, Num, Var


def add(left: Index, right: Index) -> Index:
    """``left + right``."""
    if isinstance(left, Num) and isinstance(right, Num):
        return Num(left.value + right.value)
    if isinstance(left, Num):
        left, right = right, left
    if right == Num(0):
        return left
    return IndexBinary(IndexOp.ADD, left, right)


def subtract(left: Index, right: Index) -> Index:
    """``left - right``."""
    if isinstance(right, Num):
        return add(left, Num(-right.value))
    if isinstance(left, IndexBinary) and left.op is IndexOp.ADD and left.left == right:
        return left.right
    return Num(0) if left == right else IndexBinary(IndexOp.SUB, left, right)


def multiply(left: Index, right: Index) -> Index:
    """``left * right``; a constant factor goes right."""
    if isinstance(left, Num) and isinstance(right, Num):
        return Num(left.value * right.value)
    if isinstance(left, Num):
        left, right = right, left
    if right == Num(0):
        return Num(0)
    return left if right == Num(1) else IndexBinary(IndexOp.MUL, left, right)


def floor_divide(left: Index, right: Index) -> Index:
    """``floor(left / right)`` for a positive right side."""
    if isinstance(left, Num) and isinstance(right, Num):
        return Num(left.value // right.value)
    return left if right == Num(1) else IndexBinary(IndexOp.DIV, left, right)


def modulo(left: Index, right: Index) -> Index:
    """``left - right * floor(left / right)`` for a positive right side."""
    if isinstance(left, Num) and isinstance(right, Num):
        return Num(left.value % right.value)
    return Num(0) if right == Num(1) else IndexBinary(IndexOp.MOD, left, right)


def minimum(left: Index, right: Index) -> Index:
    """The smaller one."""
    if isinstance(left, Num) and isinstance(right, Num):
        return Num(min(left.value, right.value))
    return left if left == right else IndexBinary(IndexOp.MIN, left, right)


def maximum(left: Index, right: Index) -> Index:
    """The greater one."""
    if isinstance(left, Num) and isinstance(right, Num):
        return Num(max(left.value, right.value))
    return left if left == right else IndexBinary(IndexOp.MAX, left, right)


def from_dim(dim: Dim) -> Index:
    """The extent of a dim as an index over its size symbols."""
    if not isinstance(dim, Sym):
        return Num(dim)
    total: Index = Num(0)
    for symbols, coefficient in dim.terms:
        term: Index = Num(coefficient)
        for name in symbols:
            term = multiply(term, Var(name))
        total = add(total, term)
    return total


_CONSTRUCTORS = {
    IndexOp.ADD: add,
    IndexOp.SUB: subtract,
    IndexOp.MUL: multiply,
    IndexOp.DIV: floor_divide,
    IndexOp.MOD: modulo,
    IndexOp.MIN: minimum,
    IndexOp.MAX: maximum,
}


def binary(op: IndexOp, left: Index, right: Index) -> Index:
    """The simplified operation."""
    return _CONSTRUCTORS[op](left, right)


def substitute(index: Index, values: Mapping[str, Index]) -> Index:
    """Replaces variables by indices."""
    match index:
        case Var(name):
            return values.get(name, index)
        case IndexBinary(op, left, right):
            return binary(op, substitute(left, values), substitute(right, values))
        case _:
            return index


def variables(index: Index) -> frozenset[str]:
    """The names in it."""
    match index:
        case Var(name):
            return frozenset((name,))
        case IndexBinary(_, left, right):
            return variables(left) | variables(right)
        case _:
            return frozenset()


def stride(index: Index, variable: str) -> int | None:
    """By how much the index grows when ``variable`` grows by 1: a constant, or None when it is not constant."""
    match index:
        case Var(name):
            return int(name == variable)
        case IndexBinary(IndexOp.ADD | IndexOp.SUB as op, left, right):
            a, b = stride(left, variable), stride(right, variable)
            if a is None or b is None:
                return None
            return a + b if op is IndexOp.ADD else a - b
        case IndexBinary(IndexOp.MUL, left, Num(factor)):
            a = stride(left, variable)
            return None if a is None else a * factor
        case IndexBinary():
            return 0 if variable not in variables(index) else None
        case _:
            return 0
