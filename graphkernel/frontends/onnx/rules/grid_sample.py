"""GridSample: images read at places that a grid says, between pixels. One gather of whole pixels for each neighbour:

    y[n, i, j, :] = sum over dy, dx in {0, 1} of share(dy, dx) * x[n, clip(r + dy), clip(c + dx), :]
    with (r, c) = floor((row, column) that grid[n, i, j] says), and shares that are 0 outside where zeros are padded

Places are clipped before they are looked at, so that all of them are there. Coordinates are those of the operator's
specification; 1 pixel is 2 / n apart, or 2 / (n - 1) where corners are aligned.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as pairs_of

from graphkernel import ops
from graphkernel.frontends.onnx.rules.base import Declined, OnnxCall, Operand, Results, onnx_op, shape_of, static
from graphkernel.frontends.onnx.rules.positions import positions
from graphkernel.ops.library.places import PLACES, is_provable
from graphkernel.ops.tensor.apply import apply
from graphkernel.ops.tensor.tensor import Tensor
from kernelgen.tensor.types import dtype, product

IMAGE = 4
LINEAR = ("bilinear", "linear")


@onnx_op("GridSample")
def grid_sample(call: OnnxCall) -> Results:
    """Of float32 images of known sides, of any number, by the nearest pixel or the four around."""
    x, grid = call.tensor(0), call.tensor(1)
    count, channels, *sides = shape_of(x)
    extents, mode = static(sides), call.attribute("mode", LINEAR[0])
    if (
        len(shape_of(x)) != IMAGE
        or extents is None
        or not all(call.derive.is_nonnegative(dim - 1) for dim in shape_of(grid))
    ):
        return Declined("no images, or sides or places that only a call tells")
    if mode not in (*LINEAR, "nearest") or {dtype(x.dtype), dtype(grid.dtype)} != {dtype("float32")}:
        return Declined("cubic, or no float32")
    if min(extents) < 2 or not is_provable(pixels := product((count, *extents))):
        return Declined("images of one row or column, or more numbers of pixels than a proof knows")
    align, padding = bool(call.attribute("align_corners", 0)), call.attribute("padding_mode", "zeros")
    rows, columns = (
        _around(_padded(_coordinate(grid, axis, side, align, mode), side, padding, align), side, mode, padding)
        for axis, side in ((1, extents[0]), (0, extents[1]))
    )
    image = ops.mul(positions(call, count), extents[0])
    image = ops.reshape(image, (count, 1, 1))
    flat = ops.reshape(ops.transpose(x, (0, 2, 3, 1)), (pixels, channels))
    total: Operand | None = None
    for (row, high), (column, wide) in pairs_of(rows, columns):
        place = ops.add(ops.mul(ops.add(image, row), extents[1]), column)
        place = apply(PLACES, place, extent=pixels, reader=call.op_type)
        found = ops.gather(flat, place, axis=0)
        shares = [share for share in (high, wide) if share is not None]
        if shares:
            found = ops.mul(found, ops.expand_dims(shares[0] * shares[1] if len(shares) > 1 else shares[0], -1))
        total = found if total is None else ops.add(total, found)
    return ops.transpose(total, (0, 3, 1, 2))


def _coordinate(grid: Tensor, axis: int, side: int, align: bool, mode: str) -> Operand:
    """Where -1 is the first corner and 1 the last, or where these are the outer edges of the pixels there: [N, I, J].

    The nearest pixel is taken before what is outside is mirrored, as onnxruntime does.
    """
    place = ops.add(grid[..., axis], 1.0)
    place = ops.mul(place, (side - 1) / 2) if align else ops.sub(ops.mul(place, side / 2), 0.5)
    return place if mode in LINEAR else ops.round(place)


def _padded(place: Operand, side: int, padding: str, align: bool) -> Operand:
    """Within the image, or for zeros where it is."""
    if padding == "zeros":
        return place
    if padding == "reflection":
        first, span = (0.0, float(side - 1)) if align else (-0.5, float(side))
        away = ops.abs(ops.sub(place, first))
        times = ops.floor(ops.div(away, span))
        rest = ops.sub(away, ops.mul(times, span))
        is_even = ops.equal(ops.mul(ops.floor(ops.mul(times, 0.5)), 2.0), times)
        place = ops.add(ops.select(is_even, rest, ops.sub(span, rest)), first)
    return _clipped(place, side)


def _around(place: Operand, side: int, mode: str, padding: str) -> Sequence[tuple[Operand, Operand | None]]:
    """The pixels that a place is between along an axis, or the nearest one: their numbers, and their shares but for 1."""
    if mode not in LINEAR:
        return [(_number(place, side), _inside(place, side) if padding == "zeros" else None)]
    first = ops.floor(place)
    share, second = ops.sub(place, first), ops.add(first, 1.0)
    found = [(first, ops.sub(1.0, share)), (second, share)]
    if padding == "zeros":
        found = [(pixel, ops.mul(part, _inside(pixel, side))) for pixel, part in found]
    return [(_number(pixel, side), part) for pixel, part in found]


def _inside(pixel: Operand, side: int) -> Operand:
    """1 for a pixel that is there, else 0."""
    is_there = ops.logical_and(ops.greater_equal(pixel, 0.0), ops.less_equal(pixel, float(side - 1)))
    return ops.cast(is_there, dtype("float32"))


def _number(pixel: Operand, side: int) -> Operand:
    """Of a pixel that is there; one that is no number is the first, whose share is none either."""
    known = ops.select(ops.is_nan(pixel), 0.0, _clipped(pixel, side))
    return ops.cast(known, dtype("int64"))


def _clipped(place: Operand, side: int) -> Operand:
    return ops.minimum(ops.maximum(place, 0.0), float(side - 1))
