"""Conv2D and Pool2D: windows of an image. The tensors' format and rank decide about the order of dims."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgen.composite.description import OpDesc
from kernelgen.composite.window_shapes import is_blocked, pooled_dims
from kernelgen.errors import UnsupportedError
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Expr, Index, IndexValue, Num
from kernelgen.poly.lower.builder import ALGEBRA, Builder, wide_type
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place, Points, computed_place
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.tensor.dims import Dim, divide_exactly
from kernelgen.tensor.dtypes import FLOAT32, INT64

NHWC = (0, 3, 1, 2)
NCHW = (0, 1, 2, 3)
"""Where batch, channel, height and width stand in the layout of that name."""


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
    if is_blocked(op):
        _relate_blocked(axes, op)
        return
    order = _order(op)
    image, weights, result = (axes.of(t) for t in (*op.inputs[:2], op.output))
    axes.pair((image[order[0]], weights[0]), (result[order[0]], result[order[1]]), op)
    axes.hold(*(image[d] for d in order[1:]), *weights, *(result[d] for d in order[1:]))


def _relate_blocked(axes: TensorAxes, op: OpDesc) -> None:
    """Blocks, the places in a block and batches pair up; rows and columns meet at shifted places."""
    image, weights, result = (axes.of(t) for t in (*op.inputs[:2], op.output))
    axes.pair((image[0], weights[0], weights[5]), (result[0], result[1], result[4]), op)
    if _is_depth_wise(op):
        axes.pair((image[1], image[4]), (result[1], result[4]), op)
    else:
        axes.pair((image[1], image[4]), (weights[1], weights[4]), op)
    axes.hold(*image[2:4], *weights[2:4], *result[2:4])


def _conv(builder: Builder, op: OpDesc, name: str) -> None:
    """A sum of products, to which an optional third operand is added; padding has been applied by PadAkg."""
    image, result = op.inputs[0], op.output
    wide = wide_type(image.dtype) if image.dtype.is_float else result.dtype
    points, places, factors = (_blocked_terms if is_blocked(op) else _terms)(builder, op)
    first, second = (ALGEBRA.cast(factor, wide) for factor in factors)

    def biased(total: Expr) -> Expr:
        return ALGEBRA.call("add", total, ALGEBRA.cast(builder.read(op.inputs[2], builder.points(result)), wide))

    term = ALGEBRA.call("mul", first, second)
    builder.reduce(result, points, places, ("add", term, wide), name, biased if len(op.inputs) == 3 else None)


Terms = tuple[Points, Sequence[Place], tuple[Expr, Expr]]
"""All terms, the place in the result that each belongs to, and its two factors."""


def _strides(op: OpDesc) -> tuple[Sequence[int], Sequence[int]]:
    """Strides and dilations of rows and columns: the last two numbers."""
    return op.attrs.ints("stride", (1, 1))[-2:], op.attrs.ints("dilation", (1, 1))[-2:]


def _terms(builder: Builder, op: OpDesc) -> Terms:
    """``out[n, o, y, x] += image[n, c, s y + d ky, s x + d kx] * weights[o, c', ky, kx]``."""
    order = _order(op)
    image, weights, result = op.inputs[0], op.inputs[1], op.output
    channels, height, width = (weights.shape[d] for d in order[1:])
    stride, dilation = _strides(op)
    axes = builder.axes.groups(result)
    points = Points.over([axes[d] for d in order]).counted(height, width, channels)
    n, o, y, x, ky, kx, c = (points.position(d) for d in range(7))
    row, column = _along(y, stride[0], ky, dilation[0]), _along(x, stride[1], kx, dilation[1])
    c_image = _image_channel(op, o, c, result.shape[order[1]], channels)
    first = builder.at(image, _ordered(order, (n, c_image, row, column)))
    second = builder.at(weights, _ordered(order, (o, c, ky, kx)))
    return points, _ordered(order, points.groups[:4]), (first, second)


def _is_depth_wise(op: OpDesc) -> bool:
    return op.attrs.bool("is_depth_wise", False)


def _blocked_terms(builder: Builder, op: OpDesc) -> Terms:
    """``out[n, O, y, x, o] += image[n, C, s y + d ky, s x + d kx, c] * weights[O, C, ky, kx, c, o]``.

    A depth-wise one has no sum over channels: O is C, o is c, and weights are ``[C, 1, ky, kx, 1, c]``.
    """
    image, weights, result = op.inputs[0], op.inputs[1], op.output
    stride, dilation = _strides(op)
    points = Points.over(builder.axes.groups(result)).counted(*weights.shape[2:4])
    batch, outer, _, _, lane = points.groups[:5]
    blocks, channel = outer, lane
    inner: tuple[Place, Place] = ((), ())
    if not _is_depth_wise(op):
        groups = builder.axes.groups(image)
        points = points.extended([groups[1], groups[4]])
        blocks, channel = inner = points.groups[7], points.groups[8]
    y, x, ky, kx = (points.position(d) for d in (2, 3, 5, 6))
    row, column = _along(y, stride[0], ky, dilation[0]), _along(x, stride[1], kx, dilation[1])
    first = builder.at(image, [batch, blocks, row, column, channel])
    second = builder.at(weights, [outer, inner[0], ky, kx, inner[1], lane])
    return points, points.groups[:5], (first, second)


def _image_channel(op: OpDesc, o: Index, c: Index, outer: Dim, channels: Dim) -> Index:
    """The channel of the image that channel ``c`` of the weights belongs to: every group of results has its own ones."""
    groups = op.attrs.int("group", op.attrs.int("groups", 1))
    if groups == 1:
        return c
    share = divide_exactly(outer, groups)
    if share is None:
        raise UnsupportedError("defective-input", f"{op.name}: {outer} channels do not make {groups} equal groups")
    number = ix.add(ix.multiply(ix.floor_divide(o, ix.from_dim(share)), ix.from_dim(channels)), c)
    is_affine = isinstance(share, int) and isinstance(channels, int)
    return number if is_affine else computed_place(number, channels * groups)


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
        number = ALGEBRA.cast(IndexValue(ix.from_dim(count), INT64), wide)
        return ALGEBRA.call("div", total, float(count) if isinstance(count, int) else number)

    function = "maximum" if is_max else "add"
    builder.reduce(result, points, points.groups[:rank], (function, value, wide), name, None if is_max else mean)


CONVOLUTION = Lowering(_relate_conv, _conv)
POOL = Lowering(_relate_pool, _pool)
