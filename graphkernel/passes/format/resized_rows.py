"""Resized images with channels last: columns and then rows are copied, or mixed from two that lie beside each other.

Nearest by whole factors           y = Reshape(BroadcastTo(Reshape(x)))
nearest                            y = Gather(Gather(x, columns), rows)
linear, for either dim in turn     y = a + (b - a) * share, with a = Gather(x, first), b = Gather(x, second)

Which rows and shares these are is told by the operator itself: it is asked to resize an image whose pixels are the numbers of
their rows, and one whose rows are 0 and 1 by turns. ONNX has five ways to place pixels and four to round, some in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from graphkernel.ops.library.host import attribute_values, is_onnx
from graphkernel.passes.format.layouts import FLOAT, IMAGE, order
from kernelgen.tensor.graph import Builder, Node, Value
from kernelgen.tensor.operators.elemwise import ADD, MUL, SUB
from kernelgen.tensor.operators.indexing import GATHER
from kernelgen.tensor.operators.shape import BROADCAST_TO, RESHAPE

SPACE = (3, 2)
"""The dims of an image that may change, the one that is done first before the other: fewer pixels are moved twice."""
MODES = ("", "nearest", "linear")
"""Nearest is the default."""
OF_A_PART = "tf_crop_and_resize"


@dataclass(frozen=True)
class Mixture:
    """For each row of a result the rows that it is made of, and the share of the second one; nothing where there is no such."""

    first: np.ndarray
    second: np.ndarray | None = None
    share: np.ndarray | None = None

    def is_all_of(self, extent: int) -> bool:
        """Whether it is so many rows as they are."""
        return np.array_equal(self.first, np.arange(extent)) and (self.share is None or not self.share.any())


def is_resized(node: Node) -> bool:
    """Whether rows and columns of an image are copied or mixed by what is known now."""
    if not is_onnx(node, "Resize") or node.out.type.dtype != FLOAT or not all(arg.is_known for arg in node.args[1:]):
        return False
    have, wanted = node.args[0].type.shape, node.out.type.shape
    is_known = len(have) == IMAGE and all(isinstance(extent, int) and extent > 0 for extent in (*have[2:], *wanted[2:]))
    if not is_known or have[:2] != wanted[:2]:
        return False
    if attribute_values(node).get("antialias", 0) or _text(node, "mode") not in MODES:
        return False
    return _text(node, "coordinate_transformation_mode") != OF_A_PART


def is_enlarged(node: Node) -> bool:
    """Whether it is such an operator that makes more pixels than it is given."""
    return is_resized(node) and prod(_space(node.out)) > prod(_space(node.args[0]))


def resized(node: Node, args: Sequence[Value], builder: Builder) -> tuple[Value, ...]:
    """The image, resized, with channels last."""
    image, is_linear = args[0], _text(node, "mode") == "linear"
    mixtures = {axis: _mixture(node, axis, is_linear) for axis in SPACE}
    if all(mixture.second is None for mixture in mixtures.values()) and (factors := _factors(node, mixtures)):
        return (_repeated(image, factors, builder),)
    for axis, mixture in mixtures.items():
        if not mixture.is_all_of(_space(node.args[0])[axis - 2]):
            image = _mixed(image, order(IMAGE).index(axis), mixture, builder)
    return (image,)


def _mixture(node: Node, axis: int, is_linear: bool) -> Mixture:
    """What the rows (``axis`` 2) or columns (3) of a result are made of."""
    extent = _space(node.args[0])[axis - 2]
    numbers = np.arange(extent)
    places = _asked(node, axis, numbers)
    if not is_linear:
        return Mixture(np.rint(places).astype(np.int64))
    first = np.clip(np.floor(places).astype(np.int64), 0, extent - 1)
    odd = _asked(node, axis, numbers % 2)
    return Mixture(first, np.minimum(first + 1, extent - 1), np.where(first % 2 == 0, odd, 1 - odd).astype(np.float32))


def _asked(node: Node, axis: int, rows: np.ndarray) -> np.ndarray:
    """What the operator makes of an image of one channel with equal pixels in each row."""
    rows = rows[:, None] if axis == 2 else rows
    pixels = np.broadcast_to(rows, _space(node.args[0])).astype(np.float32)[None, None]
    known = [_of_one_channel(np.asarray(arg.constant)) for arg in node.args[1:]]
    found = node.op.meaning(pixels, *known, attrs=node.attrs.with_(result_types=(_type_of(node),)))
    return np.asarray(found)[0, 0].take(0, axis=1 if axis == 2 else 0)


def _type_of(node: Node) -> str:
    height, width = _space(node.out)
    return f"f32[1, 1, {height}, {width}]"


def _space(image: Value) -> tuple[int, ...]:
    """Rows and columns, which are known."""
    return tuple(extent for extent in image.type.shape[2:] if isinstance(extent, int))


def _of_one_channel(known: np.ndarray) -> np.ndarray:
    """Sizes of a batch and channels as those of one image; scales are what they are."""
    return np.concatenate([[1, 1], known[2:]]) if known.dtype == np.int64 and known.size == IMAGE else known


def _factors(node: Node, mixtures: dict[int, Mixture]) -> tuple[int, ...]:
    """How often each row and each column is repeated; nothing where some are repeated more often than others."""
    factors = tuple(wanted // have for have, wanted in zip(_space(node.args[0]), _space(node.out), strict=True))
    repeated = (np.repeat(np.arange(n), factor) for n, factor in zip(_space(node.args[0]), factors, strict=True))
    is_whole = all(np.array_equal(mixtures[axis].first, rows) for axis, rows in enumerate(repeated, 2))
    return factors if is_whole else ()


def _repeated(image: Value, factors: Sequence[int], builder: Builder) -> Value:
    count, height, width, channels = image.type.shape
    down, across = factors
    apart = builder.emit(RESHAPE, image, shape=(count, height, 1, width, 1, channels))
    many = builder.emit(BROADCAST_TO, apart, shape=(count, height, down, width, across, channels))
    return builder.emit(RESHAPE, many, shape=(count, height * down, width * across, channels))


def _mixed(image: Value, axis: int, mixture: Mixture, builder: Builder) -> Value:
    first = builder.emit(GATHER, image, builder.constant(mixture.first), axis=axis)
    if mixture.second is None or mixture.share is None:
        return first
    second = builder.emit(GATHER, image, builder.constant(mixture.second), axis=axis)
    share = builder.constant(mixture.share.reshape([-1 if dim == axis else 1 for dim in range(1, IMAGE)]))
    return builder.emit(ADD, first, builder.emit(MUL, builder.emit(SUB, second, first), share))


def _text(node: Node, name: str) -> str:
    """An attribute that is a text; an empty one where it has its default."""
    return attribute_values(node).get(name, "")
