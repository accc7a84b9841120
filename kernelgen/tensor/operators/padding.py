"""PadAkg and UnPadAkg: padding to whole tiles, and its removal. Attributes as AKG writes them."""

from __future__ import annotations

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Kind, Traits
from kernelgen.tensor.operators.attributes import element, ints
from kernelgen.tensor.operators.families import Array, declare, scalar_of
from kernelgen.tensor.operators.type_rules import surely_nonnegative
from kernelgen.tensor.types import Attrs, TensorType, dtype

Types = tuple[TensorType, ...]


def _margins(name: str, x: TensorType, attrs: Attrs) -> tuple[int, ...]:
    amounts = attrs.ints(name)
    if len(amounts) != x.rank or min(amounts, default=0) < 0:
        raise TypeRuleError(f"{name} needs a non-negative amount for each of the {x.rank} axes, got {amounts}")
    return amounts


def _pad_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    margins = zip(x.shape, _margins("head", x, attrs), _margins("tail", x, attrs), strict=True)
    scalar_of(attrs, "pad_val", x.dtype, 0)
    return (TensorType(tuple(dim + head + tail for dim, head, tail in margins), x.dtype, x.layout),)


def _pad(x: Array, *, attrs: Attrs) -> Array:
    """head elements of pad_val before each axis and tail elements behind it."""
    margins = tuple(zip(attrs.ints("head"), attrs.ints("tail"), strict=True))
    value = np.asarray(scalar_of(attrs, "pad_val", dtype(x.dtype), 0)).astype(x.dtype)
    return np.pad(x, margins, constant_values=value)


def _unpad_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    tails = _margins("tail", x, attrs)
    shape = tuple(dim - tail for dim, tail in zip(x.shape, tails, strict=True))
    if not all(map(surely_nonnegative, shape)):
        raise TypeRuleError(f"cannot drop {tails} elements")
    return (TensorType(shape, x.dtype, x.layout),)


def _unpad(x: Array, *, attrs: Attrs) -> Array:
    """Without the last tail elements of each axis."""
    return x[tuple(slice(0, extent - tail) for extent, tail in zip(x.shape, attrs.ints("tail"), strict=True))]


PAD_AKG = declare(
    "PadAkg",
    Kind.OPAQUE,
    1,
    _pad_type,
    _pad,
    attributes=(ints("head"), ints("tail"), element("pad_val", 0.0)),
    traits=Traits(moves=True),
)
UNPAD_AKG = declare(
    "UnPadAkg", Kind.OPAQUE, 1, _unpad_type, _unpad, attributes=(ints("tail"),), traits=Traits(moves=True)
)
