"""Axes as operators name them: negative ones count from the back, reductions without axes take all, shapes broadcast.

And how large a dim is at least.
"""

from __future__ import annotations

from kernelgen.tensor.dims import Dim, Shape, Sym, evaluate
from kernelgen.tensor.operator import Application


def broadcast(*shapes: Shape) -> Shape:
    """numpy's broadcasting over dims; equal symbols are equal extents. Raises ValueError."""
    result: list[Dim] = []
    for place in range(1, max(map(len, shapes), default=0) + 1):
        extents = {shape[-place] for shape in shapes if len(shape) >= place} - {1}
        if len(extents) > 1:
            raise ValueError(f"shapes {' and '.join(str(list(s)) for s in shapes)} do not broadcast")
        result.append(extents.pop() if extents else 1)
    return tuple(reversed(result))


def reduced_axes(node: Application) -> tuple[int, ...]:
    """The dims that a reduction removes, sorted and non-negative; an absent or empty ``axis`` means all."""
    rank = len(node.args[0].shape)
    axes = node.attrs.ints("axis", ())
    return tuple(sorted({normal_axis(a, rank) for a in axes})) if axes else tuple(range(rank))


def normal_axis(axis: int, rank: int) -> int:
    """The axis counted from the front. Raises ValueError when there is none of that number."""
    if not -rank <= axis < max(rank, 1):
        raise ValueError(f"axis {axis} does not exist in a tensor of rank {rank}")
    return axis % rank if rank else 0


def least_extent(dim: Dim) -> int:
    """What the extent is at least for all sizes of its symbols, which are 1 or more; 0 when that cannot be told."""
    if not isinstance(dim, Sym):
        return dim
    falls = any(symbols and factor < 0 for symbols, factor in dim.terms)
    return 0 if falls else max(evaluate(dim, dict.fromkeys(dim.symbols, 1)), 0)
