"""Pool2D: AKG's pooling, NCHW or NHWC, in terms of MaxPool and AvgPool."""

from __future__ import annotations

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Attribute, Kind, Operator
from kernelgen.tensor.operators.attributes import ints, text
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.operators.nn import AVG_POOL, MAX_POOL, NHWC, PLACES
from kernelgen.tensor.operators.type_rules import expect_dtype, floating
from kernelgen.tensor.types import Attrs, Dim, Shape, Sym, TensorType

Types = tuple[TensorType, ...]


def pooling_of(attrs: Attrs) -> Operator:
    """MaxPool or AvgPool. Raises TypeRuleError for another pool_type."""
    kinds = {"max": MAX_POOL, "avg": AVG_POOL}
    if attrs.str("pool_type", "max") not in kinds:
        raise TypeRuleError(f"pool_type must be 'max' or 'avg', got {attrs.str('pool_type')!r}")
    return kinds[attrs.str("pool_type", "max")]


def as_pooling(shape: Shape, attrs: Attrs) -> Attrs:
    """The attributes of the MaxPool or AvgPool: pads in their order, and wide enough for the last window of "ceil"."""
    kernel, stride = attrs.ints("kernel_size"), attrs.ints("strides")
    top, left, bottom, right = attrs.ints("pad", (0, 0, 0, 0))
    pad = (top, bottom, left, right)
    if attrs.str("round_mode", "floor") == "ceil":
        widths = zip(_rows_and_columns(shape, attrs), kernel, stride, ((top, bottom), (left, right)), strict=True)
        pad = tuple(amount for width in widths for amount in _widened_pad(*width))
    counted = {"count_include_pad": True} if pooling_of(attrs) is AVG_POOL else {}
    layout = {"format": NHWC} if _is_last(attrs) else {}
    places = {"places": attrs.dims("places")} if "places" in attrs else {}
    return Attrs.of(kernel_size=kernel, stride=stride, pad=pad, **counted, **layout, **places)


def _is_last(attrs: Attrs) -> bool:
    """Whether channels come last. Raises TypeRuleError for a layout that is neither NCHW nor NHWC."""
    layout = attrs.str("data_layout", "NCHW")
    if layout not in ("NCHW", NHWC):
        raise TypeRuleError(f"has the layouts NCHW and NHWC, not {layout!r}")
    return layout == NHWC


def _rows_and_columns(shape: Shape, attrs: Attrs) -> Shape:
    return shape[1:3] if _is_last(attrs) else shape[2:]


def _widened_pad(extent: Dim, kernel: int, stride: int, pad: tuple[int, int]) -> tuple[int, int]:
    before, after = pad
    room = extent + (before + after - kernel)
    if stride == 1 or isinstance(room, Sym):
        return pad
    return before, after + -room % stride


def _type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    expect_dtype(floating, x)
    if x.rank != 4:
        raise TypeRuleError(f"expects four dims, got {x}")
    pooling = pooling_of(attrs)
    if attrs.bool("global", False):
        number, *others = x.shape
        return (TensorType((number, 1, 1, others[2]) if _is_last(attrs) else (number, others[0], 1, 1), x.dtype),)
    return pooling.infer(types, as_pooling(x.shape, attrs))


def _meaning(x: Array, *, attrs: Attrs) -> Array:
    """The maximum or mean ('max', 'avg') of each window, or of the whole image ('global'); pad is (top, left, bottom,
    right) and counts in a mean; round_mode 'ceil' pads on until the last window fits."""
    if not attrs.bool("global", False):
        return pooling_of(attrs).meaning(x, attrs=as_pooling(x.shape, attrs))
    function = np.max if pooling_of(attrs) is MAX_POOL else np.mean
    return function(x.astype(np.float64), axis=(1, 2) if _is_last(attrs) else (2, 3), keepdims=True).astype(x.dtype)


POOL2D = declare(
    "Pool2D",
    Kind.OPAQUE,
    1,
    _type,
    _meaning,
    attributes=(
        text("pool_type", None),
        Attribute("global", "bool", parameter="global_"),
        ints("kernel_size", None),
        ints("strides", None),
        ints("pad", None),
        text("round_mode", None),
        text("data_layout", None),
        PLACES,
    ),
)
