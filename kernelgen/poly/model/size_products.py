"""Products of sizes as sizes of their own: isl then knows what is below ``N * M``, and what is not.

    c0 + 1024 <= N * M   and   4 * M * N < c0 + 1024        ->   c0 + 1024 <= P   and   4 * P < c0 + 1024,   P = N * M >= 1

Two places that exclude each other so are told apart, though isl has no products. What connects ``P`` with ``N`` and ``M`` is
forgotten: there are more sizes than can be, never fewer, and what is shown for all of them holds for those that can be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Bind, For, Grid, If, Index, IndexBinary, IndexOp, Num, Var
from kernelgen.nest.walk import statements

SIGN = "*"
"""Between the symbols in the name of a product: no symbol has it in its own."""


def size_products(grids: Sequence[Grid], symbols: Collection[str]) -> tuple[str, ...]:
    """The products of two sizes or more that decide how often something runs, sorted."""
    found = {name for grid in grids for index in _deciding(grid) for name in _names(index, symbols)}
    return tuple(sorted(found))


def with_products(index: Index, sizes: Collection[str]) -> Index:
    """The index with a variable in place of each product that is among the sizes."""
    if not isinstance(index, IndexBinary):
        return index
    name, factor = _product(index, sizes)
    if name in sizes:
        return ix.multiply(Var(name), Num(factor))
    return ix.binary(index.op, with_products(index.left, sizes), with_products(index.right, sizes))


def _deciding(grid: Grid) -> Iterator[Index]:
    """Numbers of blocks, bounds of loops, conditions, and what is bound to names."""
    yield grid.blocks
    for part in statements(grid.body):
        match part:
            case For(_, lower, upper):
                yield from (lower, upper)
            case If(conditions):
                yield from (side for condition in conditions for side in (condition.left, condition.right))
            case Bind(_, index):
                yield index
            case _:
                pass


def _names(index: Index, symbols: Collection[str]) -> Iterator[str]:
    if isinstance(index, IndexBinary):
        name, _ = _product(index, symbols)
        if name:
            yield name
        else:
            yield from _names(index.left, symbols)
            yield from _names(index.right, symbols)


def _product(index: IndexBinary, sizes: Collection[str]) -> tuple[str, int]:
    """The name and the factor of a product of sizes and numbers; no name for anything else."""
    names: list[str] = []
    factor = 1
    waiting: list[Index] = [index]
    while waiting:
        match waiting.pop():
            case Num(value):
                factor *= value
            case Var(name) if name in sizes:
                names.append(name)
            case IndexBinary(IndexOp.MUL, left, right):
                waiting += (left, right)
            case _:
                return "", 1
    return (SIGN.join(sorted(names)), factor) if len(names) > 1 else ("", 1)
