"""What convolutions and their gradients cost as kernels of ours and in a library, as cycles of one core.

A library computes a whole chain of them in a layout of its own, so what is compared is a region, with the changes of layout
at its borders. Shares of what a core multiplies at most are measured, per kind of convolution.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf, prod

from graphkernel.cluster.product_cost import (
    BYTES_PER_CYCLE,
    CALL,
    FLOAT_BYTES,
    LANES,
    TERMS_PER_CYCLE,
    USUAL_ROWS,
    WORD_BYTES,
    Cycles,
)
from graphkernel.ops.library.conv_gradients import CONV2D_BACKPROP_FILTER, CONV2D_BACKPROP_INPUT
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.types import Dim, Shape, dtype

FLOAT32 = dtype("float32")

WINDOW, WINDOW_TERMS, TILE_TERMS, TILE_SIDE = (3, 3), 9, 16, 2
"""A window that tiles are for; multiplications for its result, and for those of a tile, which are as many down and across."""

CACHED_BYTES_PER_CYCLE = 20.0
"""Of what one kernel hands to the next through the third cache, written and read."""

FAR_BYTES, FAR_BYTES_PER_CYCLE = 8 << 20, 10.0
"""Of what one kernel hands to the next: more than that much leaves the third cache, which others use as well. Measured: 128
channels of 56 x 56 and 32 of 256 x 256 in tiles."""

NEAR_BYTES_PER_CYCLE = 60.0
"""Of what a kernel writes and reads again in the second cache."""

ROW_OF_PLACE = 500.0
"""Cycles of the products of one place in a row of tiles: those that fill no block of registers. Measured: 64 channels take as
long with rows of 14 tiles in one kernel as with all tiles in three, and 1.26 times as long with rows of 7."""

CALL_OF_KERNEL = 2_000.0
"""Cycles of the start of a kernel more: tens of nanoseconds, and its first lines."""


OPEN_PLANES = 0.33
"""Measured: windows of 3 x 3 over 144 channels of 56 x 56 take 1.35 times as long as with rows of known length."""

OF_ONE_ROW = 0.7
"""Measured: for 64 and 128 channels of 2000 columns two threads take as long as one, and 1.5 times as long as for lines."""

OF_ADDED_TAPS = 0.85
"""onnxruntime adds up the taps of a transposed convolution behind their products. Measured: for 64 channels of 16 x 16 it takes
1.2 times as long as a kernel with 1.13 times as many multiplications, for 128 of 8 x 8 as long as one with 1.27."""

SECOND_CACHE_BYTES = 1 << 19
"""Of weights that the second cache keeps while row after row of an image passes them."""

POINTS_AT_ONCE = 6
"""Results of a channel that a kernel of ours holds in registers while all their weights pass."""


class Windows(Enum):
    """What a convolution is to a kernel: of one element, side by side, of one channel each, of some, of all channels."""

    POINTS = "points"
    PATCHES = "patches"
    PLANES = "planes"
    GROUPS = "groups"
    DENSE = "dense"


OWN_SHARES = {
    Windows.POINTS: 0.85, Windows.PATCHES: 0.8, Windows.PLANES: 0.45, Windows.GROUPS: 0.45, Windows.DENSE: 0.85,
}  # fmt: skip
LIBRARY_SHARES = {
    Windows.POINTS: 0.8, Windows.PATCHES: 0.6, Windows.PLANES: 0.4, Windows.GROUPS: 0.4, Windows.DENSE: 0.8,
}  # fmt: skip
"""In chains, where a library's blocked layout stays from one convolution to the next."""

LEAST_GROUP, NARROW_GROUPS = 8, 0.15
"""Channels of a group that fill a block of a library's layout, and its share for groups of fewer, which it computes one by one.
Measured with AVX2, shares of ours and onnxruntime's: of 4 channels 0.49 and 0.19, of 8 0.60 and 0.37, of 16 0.73 and 0.63.
"""


class ConvolutionSizes(NamedTuple):
    """The shapes of a convolution, in NCHW and OIHW: of its image, its weights and its result."""

    image: Shape
    weights: Shape
    result: Shape


def sizes_of(node: Node) -> ConvolutionSizes:
    """Those of a ``node`` that is a convolution, or of the one whose gradient it is: both have as many multiplications."""
    first, second = (value.type.shape for value in node.args[:2])
    if node.op is CONV2D_BACKPROP_INPUT:
        return ConvolutionSizes(node.out.type.shape, second, first)
    if node.op is CONV2D_BACKPROP_FILTER:
        return ConvolutionSizes(second, node.out.type.shape, first)
    return ConvolutionSizes(first, second, node.out.type.shape)


def windows_of(node: Node) -> Windows:
    """The kind of a ``node`` that is a convolution in NCHW, or of the one whose gradient it is."""
    sizes = sizes_of(node)
    (_, channels, *extents), (_, inner, *window) = sizes.image, sizes.weights
    group, stride = node.attrs.int("group", 1), node.attrs.ints("stride", (1, 1))
    if group > 1:
        return Windows.PLANES if inner == 1 and group == channels else Windows.GROUPS
    plain = set(node.attrs.ints("dilation", (1, 1))) == {1} and not any(node.attrs.ints("pad", (0, 0, 0, 0)))
    if not plain or stride != tuple(window):
        return Windows.DENSE
    if set(window) == {1}:
        return Windows.POINTS
    is_whole = all(isinstance(extent, int) and extent % side == 0 for extent, side in zip(extents, stride, strict=True))
    return Windows.PATCHES if is_whole else Windows.DENSE


@dataclass(frozen=True)
class Ways:
    """Cycles of a convolution of 3 x 3 windows by its sums, and by products of tiles of 4 x 4 pixels.

    These are handed from kernel to kernel, all of them (``apart``), or stay in one, row of tiles by row of tiles
    (``inside``), where all tiles have whole rows; infinite in a way that it cannot go.
    """

    direct: float
    apart: float
    inside: float = inf

    @property
    def tiles(self) -> float:
        """Of the faster way by tiles."""
        return min(self.apart, self.inside)

    @property
    def by_tiles(self) -> bool:
        """Whether those take no longer."""
        return self.tiles <= self.direct

    @property
    def is_inside(self) -> bool:
        """Whether all of it is one kernel."""
        return self.inside <= self.apart

    def __str__(self) -> str:
        where = "in one kernel" if self.is_inside else "in three"
        return f"modelled {self.tiles / 1e3:.0f} thousand cycles by tiles {where}, {self.direct / 1e3:.0f} by windows"


def tiles_cost(node: Node, is_learnt: bool = False) -> Ways:
    """The cycles of a float32 convolution with channels last, of known rows and columns; tiles and products pass a cache.

    Weights that are learnt (``is_learnt``) are transformed in each run, by a kernel of its own.
    """
    count, *sides, results = node.out.type.shape
    return _ways(count, sides, (node.args[1].type.shape[2], results), node, is_learnt)


def _ways(count: Dim, sides: Sequence[Dim], channels: tuple[Dim, Dim], node: Node, is_learnt: bool) -> Ways:
    """Of ``count`` images of results of these ``sides``, from so many ``channels`` to so many."""
    read, made = (int(str(dim)) for dim in channels)
    steps = node.attrs.ints("dilation", (1, 1))
    down, across = (tiles_along(int(str(side)), step) * step for side, step in zip(sides, steps, strict=True))
    points, products = _elements((count, *sides)), TILE_TERMS * _elements((count, down, across))
    each = _cycles_of_terms(made)
    moved = 2 * FLOAT_BYTES * products * (read + made)
    weights = FLOAT_BYTES * read * made / BYTES_PER_CYCLE
    sums = max(products * read * each, TILE_TERMS * weights)
    learnt = (WINDOW_TERMS + TILE_TERMS) * weights + CALL_OF_KERNEL if is_learnt else 0.0
    stays = not is_learnt and {*steps} == {1} and int(str(sides[0])) % TILE_SIDE == 0
    return Ways(
        max(points * WINDOW_TERMS * read * each, WINDOW_TERMS * weights),
        sums + moved / _bytes_per_cycle(moved) + 2 * CALL_OF_KERNEL + learnt,
        sums + moved / NEAR_BYTES_PER_CYCLE + _by_rows(_elements((count, down)), read * made) if stays else inf,
    )


def _bytes_per_cycle(moved: float) -> float:
    """Of so many that one kernel writes and another one reads."""
    return CACHED_BYTES_PER_CYCLE if moved <= 2 * FAR_BYTES else FAR_BYTES_PER_CYCLE


def _by_rows(rows: float, weights: int) -> float:
    """The cycles that so many ``rows`` of tiles add, each of which passes all ``weights`` of all places."""
    size = FLOAT_BYTES * TILE_TERMS * weights
    again = (rows - 1) * size / CACHED_BYTES_PER_CYCLE if size > SECOND_CACHE_BYTES else 0.0
    return again + rows * TILE_TERMS * ROW_OF_PLACE


def tiles_along(side: int, step: int) -> int:
    """How many tiles a ``side`` has, in each phase of windows whose pixels lie this ``step`` apart."""
    return -(-side // (step * TILE_SIDE))


def fits_tiles(node: Node, window: Shape, extents: Iterable[Dim]) -> bool:
    """Whether products of tiles may compute a ``node`` that is a convolution: its ``window`` is of 3 x 3 pixels of all
    channels, in steps of one, and its ``extents`` are known.
    """
    is_known = all(isinstance(extent, int) for extent in extents)
    is_dense = node.attrs.int("group", 1) == 1 and {*node.attrs.ints("stride", (1, 1))} == {1}
    return node.out.type.dtype == FLOAT32 and window == WINDOW and is_dense and is_known


def gradient_cost(node: Node) -> Ways:
    """The cycles of a float32 gradient of windows of 3 x 3, a ``node`` in NCHW: by a product of patches, and by tiles."""
    sizes = sizes_of(node)
    results, channels = (int(_elements((1, dim))) for dim in sizes.weights[:2])
    count, _, *sides = sizes.result
    points = _elements((count, *sides))
    each = channels * _cycles_of_terms(results)
    tiles = TILE_TERMS * _elements((count, *(tiles_along(int(str(side)), 1) for side in sides)))
    byte = 2 * FLOAT_BYTES / CACHED_BYTES_PER_CYCLE
    return Ways(
        points * WINDOW_TERMS * (each + byte * channels) + CALL_OF_KERNEL,
        tiles * (each + byte * (channels + results)) + byte * TILE_TERMS * channels * results + 3 * CALL_OF_KERNEL,
    )


def _cycles_of_terms(results: int) -> float:
    """Of one term of so many results side by side, whole vectors of them, as dense windows and products reach it."""
    return -(-results // LANES) * LANES / TERMS_PER_CYCLE / OWN_SHARES[Windows.DENSE]


def region_cost(convolutions: Iterable[Node], borders: Iterable[Value], handed: Iterable[Value] = ()) -> Cycles:
    """The cost of float32 convolutions of NCHW: for kernels of ours with a change of layout for each value of ``borders``,
    for a library with one, and a call, for each that is ``handed`` from it to kernels or back.
    """
    own, library = 0.0, CALL
    for node in convolutions:
        kind = windows_of(node)
        own += own_ways(node, kind).least
        library += _cycles(node) * _inside(node) / _library_share(node, kind)
    return Cycles(own + sum(map(_moved, borders)), library + sum(CALL + _moved(value) for value in handed))


def _moved(value: Value) -> float:
    """The cycles of a change of layout."""
    return 2 * FLOAT_BYTES * _elements(value.type.shape) / BYTES_PER_CYCLE


@dataclass(frozen=True)
class OwnWays:
    """Cycles of a convolution in NCHW, or of a gradient of one, in kernels of ours; infinite in a way that it cannot go.

    It is one sum over windows, or products of tiles, or a sum of products, each of one tap and the pixels that it sees.
    """

    windows: float
    tiles: float = inf
    taps: float = inf

    @property
    def least(self) -> float:
        """Those of the fastest way."""
        return min(self.windows, self.tiles, self.taps)

    @property
    def by_taps(self) -> bool:
        """Whether products of taps are that way."""
        return self.taps < inf and self.taps == self.least


def own_ways(node: Node, kind: Windows) -> OwnWays:
    """All ways of a ``node`` whose windows are of this ``kind``."""
    return OwnWays(
        _cycles(node) * _of_phases(node) / _own_share(node, kind) + _read_again(node, kind),
        _by_tiles(node) if _has_tiles(node) else inf,
        _by_taps(node) if _has_taps(node, kind) else inf,
    )


def _has_taps(node: Node, kind: Windows) -> bool:
    """Whether a ``node`` of this ``kind``, in NCHW, has taps that lie apart, some of which see no pixel."""
    return (
        node.op is CONV2D
        and kind is Windows.DENSE
        and node.out.type.dtype.is_float
        and node.args[1].is_known
        and {*node.attrs.ints("stride", (1, 1))} == {1}
        and all(isinstance(dim, int) for shape in sizes_of(node) for dim in shape[1:])
        and 0.0 < _inside(node) < 1.0
    )


def _by_taps(node: Node) -> float:
    """Products of what taps see; each is written, read, written with zeros around it, and read by who adds them."""
    sizes, inside = sizes_of(node), _inside(node)
    taps = _elements((1, *sizes.weights[2:]))  # those that see nothing are few, or cost as little
    moved = 2 * FLOAT_BYTES * taps * (inside + 1) * _elements(sizes.result) / CACHED_BYTES_PER_CYCLE
    return _cycles(node) * inside / OWN_SHARES[Windows.POINTS] + moved + (2 * taps + 1) * CALL_OF_KERNEL


def _has_tiles(node: Node) -> bool:
    sizes = sizes_of(node)
    return node.op is CONV2D and fits_tiles(node, sizes.weights[2:], (*sizes.weights, *sizes.result[1:]))


def _by_tiles(node: Node) -> float:
    sizes = sizes_of(node)
    count, results, *sides = sizes.result
    return _ways(count, sides, (sizes.weights[1], results), node, is_learnt=not node.args[1].is_known).tiles


def _cycles(node: Node) -> float:
    """At all multiplications that a core can do at once, whole vectors of result channels."""
    sizes = sizes_of(node)
    count, *terms = (dim for dim in sizes.weights if isinstance(dim, int))
    points = _elements(sizes.result) / count
    each = prod(terms) if node.out.type.dtype.is_float else prod(terms) / WORD_BYTES
    return points * -(-count // LANES) * LANES * each / TERMS_PER_CYCLE


def _own_share(node: Node, kind: Windows) -> float:
    """Of all multiplications: planes whose rows have no known length share the loop along them with what follows."""
    is_open = not isinstance(sizes_of(node).result[-1], int)
    return OPEN_PLANES if is_open and kind is Windows.PLANES else OWN_SHARES[kind]


def _of_phases(node: Node) -> float:
    """How many multiplications a gradient by an image has for each that counts: whole taps of each phase of a stride, at all
    places from the first that the image needs to the last.
    """
    if node.op is not CONV2D_BACKPROP_INPUT:
        return 1.0
    sizes = sizes_of(node)
    if not all(isinstance(dim, int) for shape in sizes for dim in shape[2:]):
        return inf
    top, _, left, _ = node.attrs.ints("pad", (0, 0, 0, 0))
    each = zip(*(shape[2:] for shape in sizes), node.attrs.ints("stride", (1, 1)), (top, left), strict=True)
    return prod(_of_phases_along(*(int(str(size)) for size in axis)) for axis in each)


def _of_phases_along(extent: int, window: int, count: int, stride: int, before: int) -> float:
    """The same along one axis of an image of this ``extent``, by a ``window`` and a ``stride``, with padding ``before``, from
    a ``count`` of elements.
    """
    places = (before + extent - 1) // stride - before // stride + 1
    return places * -(-window // stride) * stride / (count * window)


def _library_share(node: Node, kind: Windows) -> float:
    """Of all multiplications; less of images of one row, since onnxruntime shares rows among threads, and of narrow groups."""
    if kind is Windows.GROUPS and _elements((1, sizes_of(node).weights[1])) < LEAST_GROUP:
        return NARROW_GROUPS
    if node.op is CONV2D_BACKPROP_INPUT:
        return LIBRARY_SHARES[kind] * OF_ADDED_TAPS
    is_line = sizes_of(node).image[2] == 1 and kind is not Windows.PLANES
    return LIBRARY_SHARES[kind] * (OF_ONE_ROW if is_line else 1.0)


def _read_again(node: Node, kind: Windows) -> float:
    """Of weights too large for the second cache, where rows or columns are open: no kernel of ours passes them only once."""
    sizes = sizes_of(node)
    count = (FLOAT_BYTES if node.out.type.dtype.is_float else 1) * _elements(sizes.weights)
    is_open = not all(isinstance(dim, int) for dim in sizes.result[1:])
    if kind is not Windows.DENSE or not is_open or count <= SECOND_CACHE_BYTES:
        return 0.0
    points = _elements(sizes.result) / _elements(sizes.weights[:1])
    return points / POINTS_AT_ONCE * count / CACHED_BYTES_PER_CYCLE


def _inside(node: Node) -> float:
    """The share of taps that lie in the image where they lie apart: a library leaves out the others.

    Of taps side by side few lie outside, and leaving them out costs what it saves.
    """
    dilation = node.attrs.ints("dilation", (1, 1))
    if set(dilation) == {1}:
        return 1.0
    sizes, stride, pads = sizes_of(node), node.attrs.ints("stride", (1, 1)), node.attrs.ints("pad", (0, 0, 0, 0))
    found = 1.0
    for axis, step in enumerate(dilation):
        extent, taps = (int(_elements((1, shape[axis + 2]))) for shape in (sizes.image, sizes.weights))
        span = step * (taps - 1)
        places = range(-pads[2 * axis], extent + pads[2 * axis + 1] - span, stride[axis])
        inside = sum(0 <= place + step * tap < extent for place in places for tap in range(taps))
        found *= inside / (len(places) * taps) if len(places) else 1.0
    return found


def _elements(shape: Shape) -> float:
    """A dim that is not known is taken for one image, or for a usual number of rows."""
    batch, *others = (dim if isinstance(dim, int) else None for dim in shape)
    return (batch or 1) * prod(USUAL_ROWS if dim is None else dim for dim in others)
