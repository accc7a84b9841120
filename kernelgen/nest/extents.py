"""The value of an index expression once every size symbol is known: how many blocks a launch has."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kernelgen.nest.nodes import Index, IndexOp, Num, ValueIndex, Var

OPERATIONS: Mapping[IndexOp, Callable[[int, int], int]] = {
    IndexOp.ADD: lambda left, right: left + right,
    IndexOp.SUB: lambda left, right: left - right,
    IndexOp.MUL: lambda left, right: left * right,
    IndexOp.DIV: lambda left, right: left // right,
    IndexOp.MOD: lambda left, right: left % right,
    IndexOp.MIN: min,
    IndexOp.MAX: max,
}


def extent(index: Index, symbols: Mapping[str, int]) -> int:
    """The value of ``index``. Raises KeyError for a variable that is no size symbol, and for what data decides."""
    if isinstance(index, Num):
        return index.value
    if isinstance(index, Var):
        return symbols[index.name]
    if isinstance(index, ValueIndex):
        raise KeyError("the size of a launch cannot depend on data")
    return OPERATIONS[index.op](extent(index.left, symbols), extent(index.right, symbols))
