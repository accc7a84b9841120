"""Convolution and pooling: operators that stay on the host library. Layout NCHW.

Attributes as in MindSpore: ``stride`` and ``dilation`` per spatial axis, ``pad`` is (top, bottom, left, right).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Kind, Traits
from kernelgen.tensor.operators.attributes import flag, repeated, whole
from kernelgen.tensor.operators.families import Array, declare, rounded
from kernelgen.tensor.operators.type_rules import expect_dtype, floating
from kernelgen.tensor.types import Attrs, Dim, Shape, Sym, TensorType

Types = tuple[TensorType, ...]

STRIDE, PAD = repeated("stride", 2, 1), repeated("pad", 4, 0)
CONV_ATTRIBUTES = (STRIDE, PAD, repeated("dilation", 2, 1), whole("group", 1))
KERNEL, CEIL, SPREAD = repeated("kernel_size", 2), flag("ceil_mode"), repeated("dilation", 2, 1, quiet=True)


@dataclass(frozen=True)
class WindowAxis:
    """How windows slide along one spatial axis."""

    kernel: int
    stride: int
    before: int = 0
    after: int = 0
    dilation: int = 1
    ceil: bool = False

    @property
    def span(self) -> int:
        """From the first element of a window to its last."""
        return self.dilation * (self.kernel - 1) + 1

    def count(self, extent: Dim) -> Dim:
        """The number of windows; with ``ceil`` a last one may hang over, but must start inside.

        Raises TypeRuleError for a symbol that is not gone through step by step.
        """
        room = extent + (self.before + self.after - self.span)
        if self.stride == 1:
            return room + 1
        if isinstance(room, Sym) or isinstance(extent, Sym):
            raise TypeRuleError(f"the symbolic spatial extent {extent} needs stride 1")
        if not self.ceil:
            return room // self.stride + 1
        windows = -(-room // self.stride) + 1
        return windows - 1 if (windows - 1) * self.stride >= extent + self.before else windows

    def view(self, x: Array, axis: int, fill: float) -> Array:
        """The windows of the padded axis; their elements become a new last axis."""
        count = int(str(self.count(x.shape[axis])))
        reach = (count - 1) * self.stride + self.span
        pads = [(0, 0)] * x.ndim
        pads[axis] = (self.before, max(0, reach - self.before - x.shape[axis]))
        padded = np.pad(x, pads, constant_values=np.asarray(fill, np.float32).astype(x.dtype))
        windows = np.lib.stride_tricks.sliding_window_view(padded, self.span, axis)
        return np.moveaxis(np.moveaxis(windows, axis, 0)[: reach : self.stride][:count], 0, axis)[..., :: self.dilation]


def _axes(kernel: tuple[int, ...], attrs: Attrs) -> tuple[WindowAxis, WindowAxis]:
    stride, dilation = attrs.ints("stride", (1, 1)), attrs.ints("dilation", (1, 1))
    pad, ceil = attrs.ints("pad", (0, 0, 0, 0)), attrs.bool("ceil_mode", False)
    if not len(kernel) == len(stride) == len(dilation) == 2 or len(pad) != 4:
        raise TypeRuleError("expects two kernel extents, two strides, two dilations and four pads")
    vertical = WindowAxis(kernel[0], stride[0], pad[0], pad[1], dilation[0], ceil)
    return vertical, WindowAxis(kernel[1], stride[1], pad[2], pad[3], dilation[1], ceil)


def _spatial(x: TensorType, kernel: tuple[int, ...], attrs: Attrs) -> Shape:
    if x.rank != 4:
        raise TypeRuleError(f"expects an NCHW operand, got rank {x.rank}")
    vertical, horizontal = _axes(kernel, attrs)
    return (vertical.count(x.shape[2]), horizontal.count(x.shape[3]))


def windows_of(x: Array, kernel: tuple[int, ...], attrs: Attrs, fill: float) -> Array:
    """[n, c, h, w, kernel height, kernel width]."""
    vertical, horizontal = _axes(kernel, attrs)
    return horizontal.view(vertical.view(x, 2, fill), 3, fill)


def _conv_type(types: Types, attrs: Attrs) -> Types:
    x, weight = types
    shared = expect_dtype(floating, x, weight)
    group = attrs.int("group", 1)
    if x.rank != 4 or weight.rank != 4 or not all(isinstance(dim, int) for dim in weight.shape):
        raise TypeRuleError("expects NCHW and a static weight [out, in / group, kernel height, kernel width]")
    out, inner, *kernel = (dim for dim in weight.shape if isinstance(dim, int))
    if x.shape[1] != inner * group or out % group:
        raise TypeRuleError(f"{x.shape[1]} channels do not fit a weight with {inner} in {group} groups to {out}")
    return (TensorType((x.shape[0], out, *_spatial(x, tuple(kernel), attrs)), shared),)


def _conv(x: Array, weight: Array, *, attrs: Attrs) -> Array:
    """Two-dimensional convolution, NCHW and OIHW; pad is one amount or (top, bottom, left, right); a bias is a
    BiasAdd."""
    group, (out, inner, *kernel) = attrs.int("group", 1), weight.shape

    def compute(wide_x: Array, wide_weight: Array) -> Array:
        windows = windows_of(wide_x, tuple(kernel), attrs, 0.0)
        n, _, height, width = windows.shape[:4]
        columns = windows.reshape(n, group, inner, height, width, *kernel)
        weights = wide_weight.reshape(group, out // group, inner, *kernel)
        result = np.einsum("ngihwab,goiab->ngohw", columns, weights, optimize=True)
        return result.reshape(n, out, height, width)

    return rounded(compute)(x, weight)


def _pool_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    expect_dtype(floating, x)
    return (TensorType((*x.shape[:2], *_spatial(x, attrs.ints("kernel_size"), attrs)), x.dtype),)


def _max_pool(x: Array, *, attrs: Attrs) -> Array:
    """The maximum of each window, NCHW."""
    return rounded(lambda wide: windows_of(wide, attrs.ints("kernel_size"), attrs, -np.inf).max(axis=(-2, -1)))(x)


def _avg_pool(x: Array, *, attrs: Attrs) -> Array:
    """The mean of each window; padding counts only when ``count_include_pad``, an overhanging rim never."""
    kernel = attrs.ints("kernel_size")

    def compute(wide: Array) -> Array:
        counted = np.ones_like(wide[:1, :1])
        if attrs.bool("count_include_pad", False):
            top, bottom, left, right = attrs.ints("pad", (0, 0, 0, 0))
            counted = np.pad(counted, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=1)
            counts = windows_of(counted, kernel, attrs.with_(pad=(0, 0, 0, 0)), 0.0).sum(axis=(-2, -1))
        else:
            counts = windows_of(counted, kernel, attrs, 0.0).sum(axis=(-2, -1))
        sums = windows_of(wide, kernel, attrs, 0.0).sum(axis=(-2, -1))
        height, width = sums.shape[2:]
        return sums / counts[:, :, :height, :width]  # what is padded for real may hold a window more

    return rounded(compute)(x)


CONV2D = declare("Conv2D", Kind.OPAQUE, 2, _conv_type, _conv, attributes=CONV_ATTRIBUTES, traits=Traits(factors=(0, 1)))
MAX_POOL = declare("MaxPool", Kind.OPAQUE, 1, _pool_type, _max_pool, attributes=(KERNEL, STRIDE, PAD, CEIL, SPREAD))
AVG_POOL = declare(
    "AvgPool",
    Kind.OPAQUE,
    1,
    _pool_type,
    _avg_pool,
    attributes=(KERNEL, STRIDE, PAD, CEIL, flag("count_include_pad"), SPREAD),
    doc="The mean of each window, NCHW.",
)
