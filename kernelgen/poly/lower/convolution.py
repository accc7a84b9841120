"""Conv2D and Pool2D: windows of an image. The tensors' format decides about the order of dims."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgen.desc import OpDesc
from kernelgen.desc_windows import pooled_dims
from kernelgen.dims import Dim
from kernelgen.dtypes import FLOAT32
from kernelgen.errors import UnsupportedError
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Expr, Index, Num
from kernelgen.poly.lower.builder import ALGEBRA, Builder, wide_type
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place, Points
from kernelgen.poly.pairing import TensorAxes

NHWC = (0, 3, 1, 2)
NCHW = (0, 1, 2, 3)


def _order(op: OpDesc) -> tuple[int, ...]:
    """The dims of batch, channel, row and column."""
    if len(op.inputs[0].shape) != 4:
        raise UnsupportedError("unsupported-layout", f"{op.name} of rank {len(op.inputs[0].shape)}")
    return NHWC if op.inputs[0].format == "NHWC" else NCHW


def _ordered(order: Sequence[int], places: Sequence[Place]) -> list[Place]:
    """Places given as batch, channel, row, column in the order of a tensor's dims."""
    found: list[Place] = [()] * 4
    for dim, place in zip(order, places, strict=True):
        found[dim] = place
    return found


def _along(output: Index, stride: int, window: Index, dilation: int) -> Index:
    return ix.add(ix.multiply(output, Num(stride)), ix.multiply(window, Num(dilation)))


def _relate_conv(axes: TensorAxes, op: OpDesc) -> None:
    order = _order(op)
    image, weights, result = (axes.of(t) for t in (*op.inputs[:2], op.output))
    axes.pair((image[order[0]], weights[0]), (result[order[0]], result[order[1]]), op)
    axes.hold(*(image[d] for d in order[1:]), *weights, *(result[d] for d in order[1:]))


def _conv(builder: Builder, op: OpDesc, name: str) -> None:
    """``out[n, o, y, x] += image[n, c, s y + d ky, s x + d kx] * weights[o, c', ky, kx]``, padding applied by PadAkg."""
    order = _order(op)
    image, weights, result = op.inputs[0], op.inputs[1], op.output
    channels, height, width = (weights.shape[d] for d in order[1:])
    groups = op.attrs.int("group", op.attrs.int("groups", 1))
    stride, dilation = op.attrs.ints("stride", (1, 1))[-2:], op.attrs.ints("dilation", (1, 1))[-2:]
    axes = builder.axes.groups(result)
    points = Points.over([axes[d] for d in order]).counted(height, width, channels)
    n, o, y, x, ky, kx, c = (points.position(d) for d in range(7))
    row, column = _along(y, stride[0], ky, dilation[0]), _along(x, stride[1], kx, dilation[1])
    if groups > 1:
        share = _static(result.shape[order[1]], op) // groups
        c_image = ix.add(ix.multiply(ix.floor_divide(o, Num(share)), ix.from_dim(channels)), c)
    else:
        c_image = c
    wide = wide_type(image.dtype) if image.dtype.is_float else result.dtype
    first = builder.at(image, _ordered(order, (n, c_image, row, column)))
    second = builder.at(weights, _ordered(order, (o, c, ky, kx)))
    term = ALGEBRA.call("mul", ALGEBRA.cast(first, wide), ALGEBRA.cast(second, wide))
    places = _ordered(order, points.groups[:4])
    finish = None
    if len(op.inputs) == 3:

        def biased(total: Expr) -> Expr:
            return ALGEBRA.call("add", total, ALGEBRA.cast(builder.read(op.inputs[2], builder.points(result)), wide))

        finish = biased
    builder.reduce(result, points, places, ("add", term, wide), name, finish)


def _static(dim: Dim, op: OpDesc) -> int:
    if not isinstance(dim, int):
        raise UnsupportedError("unsupported-layout", f"{op.name} with {dim} of something that must be known")
    return dim


def _relate_pool(axes: TensorAxes, op: OpDesc) -> None:
    image, result = axes.of(op.inputs[0]), axes.of(op.output)
    pooled = pooled_dims(op)
    for d, (a, b) in enumerate(zip(image, result, strict=True)):
        if d in pooled:
            axes.hold(a, b)
        else:
            axes.pair((a,), (b,), op)


def _pool(builder: Builder, op: OpDesc, name: str) -> None:
    """Pool2D: the maximum or the mean of every window of rows and columns; a mean counts the padding."""
    image, result, pooled = op.inputs[0], op.output, pooled_dims(op)
    rows, columns = (image.shape[d] for d in pooled)
    rank = len(image.shape)
    if op.attrs.bool("global", False):
        size: tuple[Dim, Dim] = (rows, columns)
        stride, head = (1, 1), (0, 0)
    else:
        height, width = op.attrs.ints("kernel_size")
        size, stride = (height, width), op.attrs.ints("strides")
        head = op.attrs.ints("pad", (0, 0, 0, 0))[:2]
    is_max = op.attrs.str("pool_type") == "max"
    points = Points.over(builder.axes.groups(result)).counted(*size)
    places: list[Place] = list(points.groups[:rank])
    for d, dim in enumerate(pooled):
        window = _along(points.position(dim), stride[d], points.position(rank + d), 1)
        places[dim] = ix.subtract(window, Num(head[d]))
    padded = () if op.attrs.bool("global", False) else pooled
    value = builder.within(image, places, padded, float("-inf") if is_max and image.dtype.is_float else 0.0)
    wide = image.dtype if is_max else wide_type(image.dtype) if image.dtype.is_float else FLOAT32
    count = size[0] * size[1]

    def mean(total: Expr) -> Expr:
        return ALGEBRA.call("div", total, float(_static(count, op)))

    function = "maximum" if is_max else "add"
    builder.reduce(result, points, points.groups[:rank], (function, value, wide), name, None if is_max else mean)


CONVOLUTION = Lowering(_relate_conv, _conv)
POOL = Lowering(_relate_pool, _pool)
