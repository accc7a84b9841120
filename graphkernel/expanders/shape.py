"""Operators that only change the shape, or fill one."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.base import Declined, Expander, Expansion, expander
from graphkernel.ops import Tensor
from graphkernel.ops.composite import activation
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.shape import EXPAND_DIMS, FLATTEN, SQUEEZE, TILE
from kernelgen.tensor.types import Attrs, Shape, product


def _as_reshape(op: Operator) -> Expander:
    """A Reshape to the shape that the operator's type rule gives."""

    def function(x: Tensor, *, attrs: Attrs) -> Tensor:
        (result,) = op.infer((x.type,), attrs)
        return ops.reshape(x, result.shape)

    function.__doc__ = f"reshape(x, the shape of {op.name})"
    return Expander(op.name, function, wide=False)


EXPAND_DIMS_AS_RESHAPE = _as_reshape(EXPAND_DIMS)
SQUEEZE_AS_RESHAPE = _as_reshape(SQUEEZE)
FLATTEN_AS_RESHAPE = _as_reshape(FLATTEN)


def _repeated(x: Tensor, *, attrs: Attrs) -> Tensor:
    """The same, and of other axes reshape(broadcast_to(x with an axis of repetitions before each))"""
    multiples, shape = attrs.dims("multiples"), _with_all_axes(x, attrs)
    tiled = tuple(map(product, zip(shape, multiples, strict=True)))
    if all(1 in pair for pair in zip(shape, multiples, strict=True)):
        return ops.broadcast_to(x, tiled)
    apart = [part for dim in shape for part in (1, dim)]
    repeated = [part for pair in zip(multiples, shape, strict=True) for part in pair]
    return ops.reshape(ops.broadcast_to(ops.reshape(x, apart), repeated), tiled)


@expander(TILE, wide=False, special={"cpu": _repeated})
def tile(x: Tensor, *, attrs: Attrs) -> Expansion:
    """broadcast_to(x), where only axes of extent 1 are repeated"""
    multiples, shape = attrs.dims("multiples"), _with_all_axes(x, attrs)
    for axis, (dim, multiple) in enumerate(zip(shape, multiples, strict=True)):
        if dim != 1 and multiple != 1:
            return Declined(f"axis {axis} of extent {dim} is repeated {multiple} times, which is not a broadcast")
    return ops.broadcast_to(x, tuple(map(product, zip(shape, multiples, strict=True))))


def _with_all_axes(x: Tensor, attrs: Attrs) -> Shape:
    """The shape of ``x`` with axes of 1 in front, so that each of the multiples has one."""
    return (1,) * (len(attrs.dims("multiples")) - x.ndim) + x.shape


@expander(activation.ONES_LIKE, wide=False)
def ones_like(x: Tensor, *, attrs: Attrs) -> Tensor:
    """broadcast_to(1)"""
    return _filled_like(x, 1)


@expander(activation.ZEROS_LIKE, wide=False)
def zeros_like(x: Tensor, *, attrs: Attrs) -> Tensor:
    """broadcast_to(0)"""
    return _filled_like(x, 0)


def _filled_like(x: Tensor, number: int) -> Tensor:
    value = Tensor(x.builder.constant(number, x.dtype), x.builder)
    return ops.broadcast_to(value, x.shape)
