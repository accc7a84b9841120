"""A convolution's gradient by its image, ONNX's ConvTranspose, as one convolution without strides, whose results lie apart.

With a stride of ``s`` and ``T = ceil(K / s)``, element ``s q + r`` of the image, padding included, is that of phase ``r``::

    dx[s q + r] = sum over t < T of dy[q - t] w[r + s t]

For all phases together that is one convolution with ``s`` times as many results, over all ``q`` that meet ``dy``. With
channels last the phases of a row lie where they belong, and those of rows are moved there. No multiplication is with a zero
put between elements of ``dy``; where ``s`` does not divide ``K`` some are with zeros behind ``w``. (Sub-pixel convolution:
Shi et al., 2016.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphkernel import ops
from graphkernel.ops import Tensor
from graphkernel.ops.library.conv_gradients import CONV2D_BACKPROP_INPUT
from kernelgen.tensor.graph import Builder, Node, Value
from kernelgen.tensor.operators.nn import CONV2D, NHWC
from kernelgen.tensor.operators.type_rules import OWN_KERNEL
from kernelgen.tensor.types import TensorType


def has_phases(node: Node) -> bool:
    """Whether a ``node`` of known extents is such a gradient, by constant weights, that reaches all its image."""
    if node.op is not CONV2D_BACKPROP_INPUT or not node.args[1].is_known:
        return False
    is_plain = set(node.attrs.ints("dilation", (1, 1))) == {1}
    return is_plain and all(axis.is_reached for axis in _axes(node))


def of_phases(node: Node, dy: Value, weights: Value, builder: Builder) -> Value:
    """What a ``node`` makes of ``dy``, both with channels last, and of its ``weights`` [O, I, H, W]; ``builder`` has it."""
    rows, columns = _axes(node)
    count, inner = (int(str(dim)) for dim in weights.type.shape[:2])
    parts = TensorType((rows.taps, columns.taps, count, rows.stride * columns.stride * inner), weights.type.dtype)
    held = builder.derived(_Phases((rows.stride, columns.stride)), weights, of=parts)
    attrs = {"stride": (1, 1), "dilation": (1, 1), "group": 1, "format": NHWC, OWN_KERNEL: True}
    phases = builder.emit(CONV2D, dy, held, name=node.name, pad=(*rows.margins, *columns.margins), **attrs)
    images, height, width = (int(str(dim)) for dim in phases.type.shape[:3])
    apart = ops.reshape(Tensor(phases, builder), (images, height, width, rows.stride, columns.stride, inner))
    beside = apart if 1 in (rows.stride, width) else ops.transpose(apart, (0, 1, 3, 2, 4, 5))
    whole = ops.reshape(beside, (images, height * rows.stride, width * columns.stride, inner))
    return whole[:, rows.inside, columns.inside, :].value


@dataclass(frozen=True)
class _Axis:
    """One axis: elements of ``dy``, of the image and of a window, the stride, and the padding before the image."""

    count: int
    extent: int
    window: int
    stride: int
    before: int

    @property
    def taps(self) -> int:
        """Of one phase."""
        return -(-self.window // self.stride)

    @property
    def is_reached(self) -> bool:
        """Whether the image ends where windows do: no element behind is without any ``dy``."""
        return self.before + self.extent <= (self.count + self.taps - 1) * self.stride

    @property
    def margins(self) -> tuple[int, int]:
        """What is put around ``dy`` so that ``q`` runs from the first to the last that the image needs, or further."""
        last = (self.before + self.extent - 1) // self.stride
        return max(0, self.taps - 1 - self.before // self.stride), max(0, last - self.count + 1)

    @property
    def inside(self) -> slice:
        """Where the image is in the results of all ``q``."""
        first = self.before - (self.taps - 1 - self.margins[0]) * self.stride
        return slice(first, first + self.extent)


@dataclass(frozen=True)
class _Phases:
    """Weights [O, I, H, W] as [ceil(H / s), ceil(W / t), O, s t I], with taps turned round, for a ``stride`` of (s, t)."""

    stride: tuple[int, int]

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        count, inner, *window = weights.shape
        (down, right), (rows, columns) = self.stride, (-(-k // s) for k, s in zip(window, self.stride, strict=True))
        whole = np.zeros((count, inner, rows * down, columns * right), weights.dtype)
        whole[:, :, : window[0], : window[1]] = weights
        taps = whole.reshape(count, inner, rows, down, columns, right)[:, :, ::-1, :, ::-1]
        return np.ascontiguousarray(taps.transpose(2, 4, 0, 3, 5, 1)).reshape(rows, columns, count, -1)


def _axes(node: Node) -> list[_Axis]:
    """Rows and columns."""
    top, _, left, _ = node.attrs.ints("pad", (0, 0, 0, 0))
    of = (node.args[0], node.out, node.args[1])
    counts, extents, windows = ([int(str(dim)) for dim in value.type.shape[2:]] for value in of)
    parts = zip(counts, extents, windows, node.attrs.ints("stride", (1, 1)), (top, left), strict=True)
    return [_Axis(*part) for part in parts]
