"""Axes as AKG names them: also those of scalars, and one of a reduction twice. And how large a dim is at least."""

from __future__ import annotations

from kernelgen.tensor.dims import Dim, Sym, evaluate
from kernelgen.tensor.operator import Application
from kernelgen.tensor.operators.type_rules import axis_of


def reduced_axes(node: Application) -> tuple[int, ...]:
    """The dims that a reduction removes, sorted and non-negative; an absent or empty ``axis`` means all."""
    rank = len(node.args[0].shape)
    axes = node.attrs.ints("axis", ())
    return tuple(sorted({normal_axis(a, rank) for a in axes})) if axes else tuple(range(rank))


def normal_axis(axis: int, rank: int) -> int:
    """The axis counted from the front; that of a scalar is 0, for AKG writes scalars as one element as well.

    Raises TypeRuleError when there is none of that number.
    """
    return axis_of(axis, max(rank, 1))


def least_extent(dim: Dim) -> int:
    """What the extent is at least for all sizes of its symbols, which are 1 or more; 0 when that cannot be told."""
    if not isinstance(dim, Sym):
        return dim
    falls = any(symbols and factor < 0 for symbols, factor in dim.terms)
    return 0 if falls else max(evaluate(dim, dict.fromkeys(dim.symbols, 1)), 0)
