"""Sums and means over axes that several expanders need. Symbolic extents become scalars of the trace (``ops.extent``)."""

from __future__ import annotations

from collections.abc import Sequence

from graphkernel import ops
from graphkernel.ops import Tensor
from kernelgen.tensor.types import Dim, Shape, product


def number_of(dim: Dim, like: Tensor) -> Tensor | float:
    """A dim as something to calculate with in the data type of ``like``: a constant, or an Extent when it is symbolic."""
    return float(dim) if isinstance(dim, int) else ops.extent(dim, like, like.dtype)


def count_of(x: Tensor, axes: Sequence[int]) -> Tensor | float:
    """How many elements the axes have."""
    return number_of(product(x.shape[axis] for axis in axes), x)


def mean_of(x: Tensor, axes: Sequence[int], keep_dims: bool = True) -> Tensor:
    """sum(x) / count over ``axes``, of which there is at least one; ``keep_dims`` leaves them in the shape as 1."""
    return ops.reduce_sum(x, axes, keep_dims) / count_of(x, axes)


def moments(x: Tensor, axes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Mean and variance over axes, of which there is at least one; they stay as 1.

    A sum rounds, so that the mean of equal numbers need not be that number. The mean of what is left takes the error away:
    equal numbers have exactly themselves as their mean. It is summed in the pass that sums the squares. A variance that is
    less than what rounding leaves, or lost in infinities on both sides, is none.
    """
    first = mean_of(x, axes)
    rest = x - first
    error = mean_of(rest, axes)
    square, excess = mean_of(rest * rest, axes), error * error
    return first + error, ops.select(square <= excess, 0, square - excess)


def sum_over(x: Tensor, axes: Sequence[int]) -> Tensor:
    """The sum over exactly these axes, of which there may be none; they disappear."""
    return ops.reduce_sum(x, axes) if axes else x


def summed_to(x: Tensor, shape: Shape) -> Tensor:
    """The sum over the axes along which an operand of this shape was repeated to give x."""
    extra = x.ndim - len(shape)
    axes = tuple(a for a in range(x.ndim) if a < extra or (shape[a - extra] == 1 and x.shape[a] != 1))
    total = sum_over(x, axes)
    return total if total.shape == shape else ops.reshape(total, shape)
