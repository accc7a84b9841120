"""Operators that pick elements: slices, pieces, and extremes with their places."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.base import expander
from graphkernel.ops import Tensor
from graphkernel.ops.composite import extremes, split_sizes
from graphkernel.ops.composite.extremes import value_attrs
from kernelgen.tensor.operators import pieces
from kernelgen.tensor.types import Attrs


@expander(pieces.SLICE, wide=False)
def slice_(x: Tensor, *, attrs: Attrs) -> Tensor:
    """strided_slice(x, begin, begin + size)"""
    begin, size = attrs.ints("begin"), attrs.dims("size")
    return ops.strided_slice(x, begin, tuple(first + count for first, count in zip(begin, size, strict=True)))


@expander(split_sizes.SPLIT_WITH_SIZE, wide=False)
def split_with_size(x: Tensor, *, attrs: Attrs) -> tuple[Tensor, ...]:
    """split(x, sizes)"""
    return ops.split(x, attrs.ints("split_sizes"), attrs.int("axis", 0))


@expander(extremes.ARG_MAX_WITH_VALUE, wide=False)
def arg_max_with_value(x: Tensor, *, attrs: Attrs) -> tuple[Tensor, Tensor]:
    """(argmax(x), max(x))

    MindSpore declines where both results are used, since its library computes both at once. Here no library does, and
    a result that nobody uses is dead.
    """
    value = ops.reduce_max(x, value_attrs(attrs).ints("axis"), attrs.bool("keep_dims", False))
    return ops.reshape(ops.argmax(x, attrs.int("axis", 0)), value.shape), value


@expander(extremes.ARG_MIN_WITH_VALUE, wide=False)
def arg_min_with_value(x: Tensor, *, attrs: Attrs) -> tuple[Tensor, Tensor]:
    """(argmin(x), min(x)); see ArgMaxWithValue"""
    value = ops.reduce_min(x, value_attrs(attrs).ints("axis"), attrs.bool("keep_dims", False))
    return ops.reshape(ops.argmin(x, attrs.int("axis", 0)), value.shape), value
