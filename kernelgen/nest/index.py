"""Making and taking apart index expressions. The constructors simplify, so that equal indices usually look equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kernelgen.nest.indices import values as values
from kernelgen.nest.nodes import Call, Expr, Index, IndexBinary, IndexOp, IndexValue, Load, Num, Ref, ValueIndex, Var
from kernelgen.tensor.dims import Dim, Sym, sym


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
    if isinstance(right, IndexBinary) and right.op is IndexOp.ADD and right.right == left:
        return multiply(right.left, Num(-1))
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


def to_dim(index: Index) -> Dim | None:
    """The index as a polynomial over its names, the inverse of :func:`from_dim`; None where it is none."""
    match index:
        case Num(value):
            return value
        case Var(name):
            return sym(name)
        case IndexBinary(op, left, right) if op in _POLYNOMIAL:
            one, other = to_dim(left), to_dim(right)
            return None if one is None or other is None else _POLYNOMIAL[op](one, other)
        case _:
            return None


_POLYNOMIAL: Mapping[IndexOp, Callable[[Dim, Dim], Dim]] = {
    IndexOp.ADD: lambda one, other: one + other,
    IndexOp.SUB: lambda one, other: one - other,
    IndexOp.MUL: lambda one, other: one * other,
}

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
        case IndexBinary() if not index.is_by_data and index.variables.isdisjoint(values):
            return index
        case IndexBinary(op, left, right):
            return binary(op, substitute(left, values), substitute(right, values))
        case ValueIndex(value):
            return ValueIndex(substitute_in(value, values))
        case _:
            return index


def substitute_in(expr: Expr, values: Mapping[str, Index]) -> Expr:
    """Replaces variables in all indices of a scalar expression."""
    match expr:
        case Load(buffer, index):
            return Load(buffer, tuple([substitute(i, values) for i in index]))
        case IndexValue(index, dtype):
            return IndexValue(substitute(index, values), dtype)
        case Call(_, args):
            return Call(expr.function, tuple([substitute_in(arg, values) for arg in args]), expr.dtype)
        case _:
            return expr


def clamp(index: Index, extent: Dim) -> Index:
    """The nearest index inside ``0 <= index < extent``; the extent is at least 1."""
    return minimum(maximum(index, Num(0)), subtract(from_dim(extent), Num(1)))


def is_by_data(*indices: Index) -> bool:
    """Whether data decides one of them."""
    return any([index.is_by_data for index in indices])


def map_values(index: Index, edit: Callable[[Expr], Expr]) -> Index:
    """The index with the scalars that decide it rewritten."""
    match index:
        case ValueIndex(value):
            return ValueIndex(edit(value))
        case IndexBinary(op, left, right):
            return binary(op, map_values(left, edit), map_values(right, edit))
        case _:
            return index


def settle(index: Index, places: Mapping[Expr, Index]) -> Index:
    """The index with scalars that decide it replaced by indices."""
    match index:
        case ValueIndex(value):
            return places.get(value, index)
        case IndexBinary(op, left, right):
            return binary(op, settle(left, places), settle(right, places))
        case _:
            return index


def references(index: Index) -> frozenset[str]:
    """The bindings whose values decide the index."""
    return frozenset(value.name for value in values(index) if isinstance(value, Ref))


def variables(index: Index) -> frozenset[str]:
    """The names in it."""
    return _names([index]) if index.is_by_data else index.variables


def variables_in(expr: Expr) -> frozenset[str]:
    """The names of variables in the indices of a scalar expression."""
    return _names([expr])


def _names(waiting: list[Index | Expr]) -> frozenset[str]:
    """The names of variables in all of these, which are used up."""
    found: set[str] = set()
    while waiting:
        match waiting.pop():
            case Var(name):
                found.add(name)
            case IndexBinary() as each:
                found |= each.variables
                waiting += values(each)
            case ValueIndex(value):
                waiting.append(value)
            case Load(_, index):
                waiting += index
            case IndexValue(index):
                waiting.append(index)
            case Call(_, args):
                waiting += args
            case _:
                pass
    return frozenset(found)


def stride(index: Index, variable: str) -> int | None:
    """By how much the index grows when ``variable`` grows by 1: a constant, or None when it is not constant.

    An index that data decides is None: a binding it names may change with the variable.
    """
    match index:
        case Var(name):
            return int(name == variable)
        case IndexBinary() if not index.is_by_data and variable not in index.variables:
            return 0
        case IndexBinary(IndexOp.ADD | IndexOp.SUB as op, left, right):
            a, b = stride(left, variable), stride(right, variable)
            if a is None or b is None:
                return None
            return a + b if op is IndexOp.ADD else a - b
        case IndexBinary(IndexOp.MUL, left, Num(factor)):
            a = stride(left, variable)
            return None if a is None else a * factor
        case IndexBinary() | ValueIndex():
            return None
        case _:
            return 0


def is_affine(index: Index) -> bool:
    """Whether the index is a quasi-affine function of its variables: products and divisors are with constants, no data."""
    match index:
        case Num() | Var():
            return True
        case IndexBinary(IndexOp.MUL, left, right):
            return (_is_constant(left) and is_affine(right)) or (is_affine(left) and _is_constant(right))
        case IndexBinary(IndexOp.DIV | IndexOp.MOD, left, right):
            return is_affine(left) and isinstance(right, Num)
        case IndexBinary(_, left, right):
            return is_affine(left) and is_affine(right)
        case _:
            return False


def _is_constant(index: Index) -> bool:
    return not variables(index) and not is_by_data(index)


def lies_along(load: Load, variable: str) -> bool:
    """Whether neighbours in memory are neighbours in the loop over ``variable``."""
    steps = [stride(index, variable) for index in load.index]
    return steps[-1:] == [1] and not any(steps[:-1])
