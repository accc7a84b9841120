"""Images with channels last beside images whose channels come before rows and columns: where dims stand, and the way between.

Channels may stand in two dims, ``[N, G, C/G, H, W]`` beside ``[N, H, W, G, C/G]``: so a channel shuffle is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernelgen.tensor.graph import Builder, Node, Value
from kernelgen.tensor.operators.shape import RESHAPE, TRANSPOSE
from kernelgen.tensor.operators.type_rules import OWN_KERNEL
from kernelgen.tensor.types import dtype

Form = Callable[[Node, Sequence[Value], Builder], tuple[Value, ...]]
"""Makes an operator's results from operands with channels last."""

FLOAT = dtype("float32")
PLAIN_PRODUCT = {"transpose_a": False, "transpose_b": False, OWN_KERNEL: True}
IMAGE = 4

VOLUME = 5
"""How many dims a volume has, [N, C, D, H, W]."""

DEPTHS_FIRST, CHANNELS_FIRST = (2, 0, 1, 3, 4), (1, 2, 0, 3, 4)
"""The order of a volume's dims where its depths are images, and back."""

TURNED = (0, 2, 1)
"""Channels of lines or tokens before them, or behind again."""


def order(rank: int) -> tuple[int, ...]:
    """Where dims of a tensor with channels last stand in the one whose channels come before rows and columns."""
    return (0, rank - 2, rank - 1, *range(1, rank - 2))


def inverse(rank: int) -> tuple[int, ...]:
    """The other way round."""
    return tuple(order(rank).index(axis) for axis in range(rank))


def is_image(value: Value) -> bool:
    """Whether a value has dims for images, channels, rows and columns, and is not known."""
    return len(value.shape) == IMAGE and not value.is_known


def is_pixel(value: Value) -> bool:
    """Whether the images of a value have one row and one column."""
    return value.type.rank == IMAGE and value.type.shape[2:] == (1, 1)


def moved(value: Value, perm: tuple[int, ...], builder: Builder) -> Value:
    """A value in another order of its dims; itself where that is no other, a Reshape where it moves nothing."""
    shape = value.type.shape
    if perm == tuple(range(len(perm))):
        return value
    if sorted(axis for axis in perm if shape[axis] != 1) == [axis for axis in perm if shape[axis] != 1]:
        return builder.emit(RESHAPE, value, shape=tuple(shape[axis] for axis in perm))
    return builder.emit(TRANSPOSE, value, perm=perm)
