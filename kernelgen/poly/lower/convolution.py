"""Conv2D and Pool2D: windows of an image. The tensors' format and rank decide about the order of dims."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgen.composite.window_shapes import (
    are_in_lanes,
    is_blocked,
    is_by_channel,
    is_channels_last,
    pooled_dims,
)
from kernelgen.errors import UnsupportedError
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Expr, Index, IndexValue, Num
from kernelgen.poly.lower.builder import ALGEBRA, Builder, inside, where, wide_type
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place, Points, computed_place, nearest_place
from kernelgen.poly.lower.products import with_bias
from kernelgen.poly.model.axes import Axis
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.tensor.dims import Dim, divide_exactly
from kernelgen.tensor.dtypes import FLOAT32, INT64
from kernelgen.tensor.graph import Node

NHWC = (0, 3, 1, 2)
NCHW = (0, 1, 2, 3)
"""Where batch, channel, height and width stand in the layout of that name."""


def _order(node: Node) -> tuple[int, ...]:
    """The dims of batch, channel, row and column."""
    if len(node.args[0].shape) != 4:
        raise UnsupportedError("unsupported-layout", f"{node.op.name} of rank {len(node.args[0].shape)}")
    return NHWC if "NHWC" in (node.args[0].layout, node.attrs.str("format", "NCHW")) else NCHW


def _weight_order(node: Node) -> tuple[int, ...]:
    """The dims of result channel, image channel, row and column of the weights."""
    return (3, 2, 0, 1) if is_channels_last(node) else _order(node)


def _ordered(order: Sequence[int], places: Sequence[Place]) -> list[Place]:
    """Places given as batch, channel, row, column in the order of a tensor's dims."""
    found: list[Place] = [()] * 4
    for dim, place in zip(order, places, strict=True):
        found[dim] = place
    return found


def _along(output: Index, stride: int, window: Index, dilation: int) -> Index:
    return ix.add(ix.multiply(output, Num(stride)), ix.multiply(window, Num(dilation)))


def _relate_conv(axes: TensorAxes, node: Node) -> None:
    if is_blocked(node):
        _relate_blocked(axes, node)
        return
    order, outer = _order(node), _weight_order(node)[0]
    image, weights, result = (axes.of(t) for t in (*node.args[:2], node.out))
    axes.pair((image[order[0]], weights[outer]), (result[order[0]], result[order[1]]), node)
    if _has_groups(node):
        _relate_groups(axes, node)
        axes.hold(*image[1:3], *weights[:3], *result[1:3])
    else:
        axes.hold(*(image[d] for d in order[1:]), *weights, *(result[d] for d in order[1:]))


def _has_groups(node: Node) -> bool:
    """Whether channels last are in groups of so many results each that these are an axis of their own."""
    is_whole = is_by_channel(node) or are_in_lanes(node)
    return is_channels_last(node) and not is_whole and node.attrs.int("group", 1) > 1


def _relate_groups(axes: TensorAxes, node: Node) -> None:
    """Channels of image and result are groups, each with its own share: the last of them lie together."""
    groups = Axis(node.attrs.int("group", 1))
    for role, value in (("image", node.args[0]), ("result", node.out)):
        share = divide_exactly(value.shape[-1], groups.extent)
        if share is None:
            raise UnsupportedError(
                "defective-input", f"{node.op.name}: channels do not make {groups.extent} equal groups"
            )
        own = (*axes.of(value)[:-1], groups, None if share == 1 else Axis(share))
        shape = (*value.shape[:-1], groups.extent, share)
        axes.reshapes.append((value, axes.temporary(f"{axes.name(node.out)}_{role}_groups", shape, value.dtype, own)))


def _relate_blocked(axes: TensorAxes, node: Node) -> None:
    """Blocks, the places in a block and batches pair up; rows and columns meet at shifted places."""
    image, weights, result = (axes.of(t) for t in (*node.args[:2], node.out))
    axes.pair((image[0], weights[0], weights[5]), (result[0], result[1], result[4]), node)
    if _is_depth_wise(node):
        axes.pair((image[1], image[4]), (result[1], result[4]), node)
    else:
        axes.pair((image[1], image[4]), (weights[1], weights[4]), node)
    axes.hold(*image[2:4], *weights[2:4], *result[2:4])


def _conv(builder: Builder, node: Node, name: str) -> None:
    """A sum of products, to which an optional third operand is added; padding has been applied by PadAkg, but where there
    is a window for each channel: there a term outside of the image is 0.
    """
    image, result = node.args[0], node.out
    wide = wide_type(image.dtype) if image.dtype.is_float else result.dtype
    points, places, conditions, factors = (_blocked_terms if is_blocked(node) else _terms)(builder, node)
    first, second = (ALGEBRA.cast(factor, wide) for factor in factors)

    term = where(conditions, ALGEBRA.call("mul", first, second), ALGEBRA.literal(0.0, wide))
    builder.reduce(result, points, places, ("add", term, wide), name, with_bias(builder, node, wide))


Terms = tuple[Points, Sequence[Place], list[Expr], tuple[Expr, Expr]]
"""All terms, the place in the result that each belongs to, when it counts, and its two factors."""


def _strides(node: Node) -> tuple[Sequence[int], Sequence[int]]:
    """Strides and dilations of rows and columns: the last two numbers."""
    return node.attrs.ints("stride", (1, 1))[-2:], node.attrs.ints("dilation", (1, 1))[-2:]


def _terms(builder: Builder, node: Node) -> Terms:
    """``out[n, o, y, x] += image[n, c, s y + d ky, s x + d kx] * weights[o, c', ky, kx]``."""
    order, inner = _order(node), _weight_order(node)
    image, weights, result = node.args[0], node.args[1], node.out
    channels, height, width = (weights.shape[d] for d in inner[1:])
    stride, dilation = _strides(node)
    axes = builder.axes.groups(result)
    points = Points.over(axes).counted(height, width, channels)
    n, o, y, x, ky, kx, c = (points.position(d) for d in (*order, 4, 5, 6))
    row, column = _along(y, stride[0], ky, dilation[0]), _along(x, stride[1], kx, dilation[1])
    conditions: list[Expr] = []
    if is_channels_last(node):
        margins = node.attrs.ints("pad", (0, 0, 0, 0))
        is_counted = "places" in node.attrs
        row, column = (
            _margin(place, image.shape[dim], ends, conditions) if is_counted or any(ends) else place
            for place, dim, ends in ((row, 1, margins[:2]), (column, 2, margins[2:]))
        )
    c_image: Place = _image_channel(node, o, c, result.shape[order[1]], channels)
    if (
        _has_groups(node)
        and len(points.groups[3]) == 2
        and len(builder.axes.groups(image)[3]) == 1 + len(points.groups[6])
    ):
        c_image = (points.groups[3][0], *points.groups[6])
        return (
            points,
            points.groups[:4],
            conditions,
            (
                builder.at(image, (n, row, column, c_image)),
                builder.at(weights, (ky, kx, c, points.groups[3])),
            ),
        )
    first = builder.at(image, _ordered(order, (n, c_image, row, column)))
    second = builder.at(weights, _ordered(inner, (o, c, ky, kx)))
    return points, points.groups[:4], conditions, (first, second)


def _margin(place: Index, extent: Dim, ends: Sequence[int], conditions: list[Expr]) -> Index:
    """A place counted from the image's first element, inside; when it was there is among the ``conditions``."""
    moved = ix.subtract(place, Num(ends[0]))
    conditions.append(inside(moved, extent))
    return nearest_place(moved, extent)


def _is_depth_wise(node: Node) -> bool:
    return node.attrs.bool("is_depth_wise", False)


def _blocked_terms(builder: Builder, node: Node) -> Terms:
    """``out[n, O, y, x, o] += image[n, C, s y + d ky, s x + d kx, c] * weights[O, C, ky, kx, c, o]``.

    A depth-wise one has no sum over channels: O is C, o is c, and weights are ``[C, 1, ky, kx, 1, c]``.
    """
    image, weights, result = node.args[0], node.args[1], node.out
    stride, dilation = _strides(node)
    points = Points.over(builder.axes.groups(result)).counted(*weights.shape[2:4])
    batch, outer, _, _, lane = points.groups[:5]
    blocks, channel = outer, lane
    inner: tuple[Place, Place] = ((), ())
    if not _is_depth_wise(node):
        groups = builder.axes.groups(image)
        points = points.extended([groups[1], groups[4]])
        blocks, channel = inner = points.groups[7], points.groups[8]
    y, x, ky, kx = (points.position(d) for d in (2, 3, 5, 6))
    row, column = _along(y, stride[0], ky, dilation[0]), _along(x, stride[1], kx, dilation[1])
    first = builder.at(image, [batch, blocks, row, column, channel])
    second = builder.at(weights, [outer, inner[0], ky, kx, inner[1], lane])
    return points, points.groups[:5], [], (first, second)


def _image_channel(node: Node, o: Index, c: Index, outer: Dim, channels: Dim) -> Index:
    """The channel of the image that channel ``c`` of the weights belongs to: every group of results has its own ones."""
    groups = node.attrs.int("group", node.attrs.int("groups", 1))
    if groups == 1:
        return c
    share = divide_exactly(outer, groups)
    if share is None:
        raise UnsupportedError("defective-input", f"{node.op.name}: {outer} channels do not make {groups} equal groups")
    number = ix.add(ix.multiply(ix.floor_divide(o, ix.from_dim(share)), ix.from_dim(channels)), c)
    is_affine = isinstance(share, int) and isinstance(channels, int)
    return number if is_affine else computed_place(number, channels * groups)


def _relate_pool(axes: TensorAxes, node: Node) -> None:
    image, result = axes.of(node.args[0]), axes.of(node.out)
    pooled = pooled_dims(node)
    for d, (a, b) in enumerate(zip(image, result, strict=True)):
        if d in pooled:
            axes.hold(a, b)
        else:
            axes.pair((a,), (b,), node)


def _pool(builder: Builder, node: Node, name: str) -> None:
    """Pool2D: the maximum or the mean of every window of rows and columns; a mean counts the padding."""
    image, result, pooled = node.args[0], node.out, pooled_dims(node)
    rows, columns = (image.shape[d] for d in pooled)
    rank = len(image.shape)
    if node.attrs.bool("global", False):
        size: tuple[Dim, Dim] = (rows, columns)
        stride, head = (1, 1), (0, 0)
    else:
        height, width = node.attrs.ints("kernel_size")
        size, stride = (height, width), node.attrs.ints("strides")
        head = node.attrs.ints("pad", (0, 0, 0, 0))[:2]
    is_max, is_global = node.attrs.str("pool_type") == "max", node.attrs.bool("global", False)
    if is_global:  # in the order in which the image lies
        points = Points.over(builder.axes.groups(image))
        results: list[Place] = [() if d in pooled else place for d, place in enumerate(points.groups)]
        places: list[Place] = list(points.groups)
    else:
        points = Points.over(builder.axes.groups(result)).counted(*size)
        results, places = list(points.groups[:rank]), list(points.groups[:rank])
        for d, dim in enumerate(pooled):
            window = _along(points.position(dim), stride[d], points.position(rank + d), 1)
            places[dim] = ix.subtract(window, Num(head[d]))
    padded = () if is_global else pooled
    value = builder.within(image, places, padded, float("-inf") if is_max and image.dtype.is_float else 0.0)
    wide = image.dtype if is_max else wide_type(image.dtype) if image.dtype.is_float else FLOAT32
    count = size[0] * size[1]

    def mean(total: Expr) -> Expr:
        number = ALGEBRA.cast(IndexValue(ix.from_dim(count), INT64), wide)
        return ALGEBRA.call("div", total, float(count) if isinstance(count, int) else number)

    function = "maximum" if is_max else "add"
    builder.reduce(result, points, results, (function, value, wide), name, None if is_max else mean)


CONVOLUTION = Lowering(_relate_conv, _conv)
POOL = Lowering(_relate_pool, _pool)
