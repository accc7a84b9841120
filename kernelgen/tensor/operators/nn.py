"""Convolution and pooling: operators that stay on the host library in the layout NCHW, and may be kernels in NHWC.

Attributes as in MindSpore: ``stride`` and ``dilation`` per spatial axis, ``pad`` is (top, bottom, left, right), ``format``
is the layout. Weights are OIHW beside NCHW and HWIO beside NHWC.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Kind, Traits
from kernelgen.tensor.operators.attributes import dims, flag, plain, repeated, whole
from kernelgen.tensor.operators.families import Array, declare, rounded
from kernelgen.tensor.operators.type_rules import expect_dtype, floating
from kernelgen.tensor.types import Attrs, Dim, DType, Shape, Sym, TensorType, dtype

Types = tuple[TensorType, ...]

NHWC = "NHWC"
BYTE_SUMS, FLOAT32 = dtype("int32"), dtype("float32")
SUMS_OF_BYTES: Mapping[tuple[DType, DType], DType] = {
    (dtype("uint8"), dtype("int8")): BYTE_SUMS, (dtype("uint8"), FLOAT32): FLOAT32
}  # fmt: skip
"""What a convolution of an image of bytes sums, by the data types of the image and of the weights."""

FORMAT = plain("format", "str", "NCHW")._replace(quiet=True)
PLACES = dims("places", ())._replace(quiet=True)
"""How many windows there are down and across, where strides over symbols do not say: other places of theirs are outside."""

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
    places: Dim | None = None

    @property
    def span(self) -> int:
        """From the first element of a window to its last."""
        return self.dilation * (self.kernel - 1) + 1

    def count(self, extent: Dim) -> Dim:
        """The number of windows: ``places`` where it is said; with ``ceil`` a last one may hang over, but must start inside.

        Raises TypeRuleError for a symbol that is not gone through step by step.
        """
        if self.places is not None:
            return self.places
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
        """The windows of ``x`` along ``axis`` with ``fill`` around it; their elements become a new last axis."""
        count = int(str(self.count(x.shape[axis])))
        reach = max(count - 1, 0) * self.stride + self.span
        pads = [(0, 0)] * x.ndim
        pads[axis] = (self.before, max(0, reach - self.before - x.shape[axis]))
        padded = np.pad(x, pads, constant_values=np.asarray(fill, np.float32).astype(x.dtype))
        windows = np.lib.stride_tricks.sliding_window_view(padded, self.span, axis)
        return np.moveaxis(np.moveaxis(windows, axis, 0)[: reach : self.stride][:count], 0, axis)[..., :: self.dilation]


def is_nhwc(attrs: Attrs) -> bool:
    """Whether images have their channels last. Raises TypeRuleError for a layout that is neither NCHW nor NHWC."""
    layout = attrs.str("format", "NCHW")
    if layout not in ("NCHW", NHWC):
        raise TypeRuleError(f"has the layouts NCHW and NHWC, not {layout!r}")
    return layout == NHWC


def window_axes(kernel: tuple[int, ...], attrs: Attrs) -> tuple[WindowAxis, WindowAxis]:
    """How windows of ``kernel`` rows and columns slide. Raises TypeRuleError for attributes of other lengths."""
    stride, dilation = attrs.ints("stride", (1, 1)), attrs.ints("dilation", (1, 1))
    pad, ceil = attrs.ints("pad", (0, 0, 0, 0)), attrs.bool("ceil_mode", False)
    if not len(kernel) == len(stride) == len(dilation) == 2 or len(pad) != 4:
        raise TypeRuleError("expects two kernel extents, two strides, two dilations and four pads")
    rows, columns = attrs.dims("places", ()) or (None, None)
    vertical = WindowAxis(kernel[0], stride[0], pad[0], pad[1], dilation[0], ceil, rows)
    return vertical, WindowAxis(kernel[1], stride[1], pad[2], pad[3], dilation[1], ceil, columns)


def _image(x: TensorType, attrs: Attrs) -> tuple[Dim, Dim, Shape]:
    """Images, channels, and rows with columns."""
    if x.rank != 4:
        raise TypeRuleError(f"expects an {attrs.str('format', 'NCHW')} operand, got rank {x.rank}")
    number, a, b, c = x.shape
    return (number, c, (a, b)) if is_nhwc(attrs) else (number, a, (b, c))


def _windowed(x: TensorType, kernel: tuple[int, ...], attrs: Attrs, channels: Dim) -> Shape:
    """The shape of what is computed from windows, with so many ``channels``."""
    number, _, extents = _image(x, attrs)
    rows, columns = (axis.count(each) for axis, each in zip(window_axes(kernel, attrs), extents, strict=True))
    return (number, rows, columns, channels) if is_nhwc(attrs) else (number, channels, rows, columns)


def _on_planes(meaning: Callable[[Array], Array], x: Array, attrs: Attrs) -> Array:
    """What a meaning on NCHW is in the layout of the attributes."""
    return np.moveaxis(meaning(np.moveaxis(x, -1, 1)), 1, -1) if is_nhwc(attrs) else meaning(x)


def windows_of(x: Array, kernel: tuple[int, ...], attrs: Attrs, fill: float) -> Array:
    """The windows of ``x`` in NCHW, with ``fill`` around it: [n, c, h, w, rows and columns of the ``kernel``], by ``attrs``."""
    vertical, horizontal = window_axes(kernel, attrs)
    return horizontal.view(vertical.view(x, 2, fill), 3, fill)


def conv_sizes(weight: Shape, attrs: Attrs) -> tuple[Dim, Dim, Shape]:
    """Channels of a result, channels of a group of the image, and rows and columns of the windows, by the weight's shape."""
    a, b, c, d = weight
    return (d, c, (a, b)) if is_nhwc(attrs) else (a, b, (c, d))


def _conv_type(types: Types, attrs: Attrs) -> Types:
    x, weight = types
    result = SUMS_OF_BYTES.get((x.dtype, weight.dtype)) or expect_dtype(floating, x, weight)
    group = attrs.int("group", 1)
    if x.rank != 4 or weight.rank != 4 or not all(isinstance(dim, int) for dim in weight.shape):
        raise TypeRuleError("expects four dims and a static weight, NCHW with OIHW or NHWC with HWIO")
    out, inner, kernel = conv_sizes(weight.shape, attrs)
    channels = _image(x, attrs)[1]
    if channels != inner * group or not isinstance(out, int) or out % group:
        raise TypeRuleError(f"{channels} channels do not fit a weight with {inner} in {group} groups to {out}")
    return (TensorType(_windowed(x, tuple(d for d in kernel if isinstance(d, int)), attrs, out), result),)


def _conv(x: Array, weight: Array, *, attrs: Attrs) -> Array:
    """Two-dimensional convolution, NCHW and OIHW or NHWC and HWIO; pad is one amount or (top, bottom, left, right); a bias
    is a BiasAdd. Images of uint8 and weights of int8 give sums of int32, those with weights of float32 sums of float32."""
    if x.dtype == np.uint8:
        of = np.int32 if weight.dtype == np.int8 else weight.dtype
        x, weight = x.astype(of), weight.astype(of)
    planes = np.transpose(weight, (3, 2, 0, 1)) if is_nhwc(attrs) else weight
    group, (out, inner, *kernel) = attrs.int("group", 1), planes.shape

    def compute(wide_x: Array, wide_weight: Array) -> Array:
        windows = windows_of(wide_x, tuple(kernel), attrs, 0.0)
        n, _, height, width = windows.shape[:4]
        columns = windows.reshape(n, group, inner, height, width, *kernel)
        weights = wide_weight.reshape(group, out // group, inner, *kernel)
        result = np.einsum("ngihwab,goiab->ngohw", columns, weights, optimize=True)
        return result.reshape(n, out, height, width)

    return _on_planes(lambda image: rounded(compute)(image, planes), x, attrs)


def _pool_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    expect_dtype(floating, x)
    return (TensorType(_windowed(x, attrs.ints("kernel_size"), attrs, _image(x, attrs)[1]), x.dtype),)


def _max_pool(x: Array, *, attrs: Attrs) -> Array:
    """The maximum of each window, NCHW or NHWC."""
    kernel = attrs.ints("kernel_size")
    pooled = rounded(lambda wide: windows_of(wide, kernel, attrs, -np.inf).max(axis=(-2, -1)))
    return _on_planes(pooled, x, attrs)


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

    return _on_planes(rounded(compute), x, attrs)


CONV2D = declare(
    "Conv2D",
    Kind.OPAQUE,
    2,
    _conv_type,
    _conv,
    attributes=(*CONV_ATTRIBUTES, FORMAT, PLACES),
    traits=Traits(factors=(0, 1)),
)
POOL_ATTRIBUTES = (KERNEL, STRIDE, PAD, CEIL, SPREAD, FORMAT, PLACES)
MAX_POOL = declare("MaxPool", Kind.OPAQUE, 1, _pool_type, _max_pool, attributes=POOL_ATTRIBUTES)
AVG_POOL = declare(
    "AvgPool",
    Kind.OPAQUE,
    1,
    _pool_type,
    _avg_pool,
    attributes=(*POOL_ATTRIBUTES[:4], flag("count_include_pad"), *POOL_ATTRIBUTES[4:]),
    doc="The mean of each window, NCHW or NHWC.",
)
