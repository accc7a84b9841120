"""Operators that fill a shape or repeat into one: all are a BroadcastTo."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.base import expander
from graphkernel.ops import Tensor
from kernelgen.tensor.operators import creation
from kernelgen.tensor.types import Attrs, Dim, DType, dtype


@expander(creation.FILL_V2, wide=False)
def fill_v2(value: Tensor, *, attrs: Attrs) -> Tensor:
    """broadcast_to(value, shape)"""
    return ops.broadcast_to(ops.reshape(value, ()) if value.ndim else value, attrs.dims("shape"))


@expander(creation.CONSTANT_OF_SHAPE, wide=False)
def constant_of_shape(extents: Tensor, *, attrs: Attrs) -> Tensor:
    """broadcast_to(value, shape); the operand repeats the attribute shape and is not needed"""
    return _filled(attrs.number("value", 0.0), dtype(attrs.str("dtype", "float32")), attrs.dims("shape"), extents)


@expander(creation.ZEROS_LIKE_EXT, wide=False)
def zeros_like_ext(x: Tensor, *, attrs: Attrs) -> Tensor:
    """broadcast_to(0, the shape of x)"""
    return _filled(0, dtype(attrs.str("dtype", x.dtype.name)), x.shape, x)


@expander(creation.REPEAT_INTERLEAVE_INT, wide=False)
def repeat_interleave_int(x: Tensor, *, attrs: Attrs) -> Tensor:
    """reshape(broadcast_to(reshape(x, [.., d, 1, ..]), [.., d, repeats, ..])), without reshapes where d is 1"""
    repeats = attrs.int("repeats")
    source = x if "dim" in attrs else ops.reshape(x, (x.size,))
    axis = attrs.int("dim") % x.ndim if "dim" in attrs else 0
    before, extent, after = source.shape[:axis], source.shape[axis], source.shape[axis + 1 :]
    if extent == 1:
        return ops.broadcast_to(source, (*before, repeats, *after))
    spread = ops.reshape(source, (*before, extent, 1, *after))
    repeated = ops.broadcast_to(spread, (*before, extent, repeats, *after))
    return ops.reshape(repeated, (*before, extent * repeats, *after))


def _filled(number: float, of: DType, shape: tuple[Dim, ...], like: Tensor) -> Tensor:
    return ops.broadcast_to(Tensor(like.builder.constant(number, of), like.builder), shape)
