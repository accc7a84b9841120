"""The extents of convolutions and pools."""

from __future__ import annotations

import re

from kernelgen.tensor.dims import Dim, Shape, Sym
from kernelgen.tensor.operator import Application, Typed
from kernelgen.tensor.operators.nn import NHWC, WindowAxis
from kernelgen.tensor.types import TensorType


def conv2d_shape(node: Application) -> tuple[Shape, ...]:
    """``(extent - (kernel - 1) * dilation - 1) // stride + 1`` rows and columns; padding has been applied by PadAkg.

    Weights are ``[O, kh, kw, C/group]`` beside NHWC, ``[O, C/group, kh, kw]`` beside NCHW. No opinion on layouts other
    than these and NCHWc. A convolution of a graph in NHWC, ``[kh, kw, C/group, O]``, has the shape of its type rule.

    Raises ValueError for groups that the weights do not fit.
    """
    if is_channels_last(node):
        attrs = node.attrs.without(*(name for name in node.attrs if name not in node.op.attribute_names))
        return tuple(t.shape for t in node.op.infer(tuple(TensorType(t.shape, t.dtype) for t in node.args), attrs))
    image, weights = node.args[0].shape, node.args[1].shape
    if is_blocked(node):
        return (_blocked_shape(node),)
    if len(image) != 4 or len(weights) != 4:
        return (node.outs[0].shape,)
    last = node.args[0].layout == "NHWC"
    channels, kernel = (weights[3], weights[1:3]) if last else (weights[1], weights[2:])
    groups = node.attrs.int("group", node.attrs.int("groups", 1))
    if channels * groups != image[3 if last else 1]:
        raise ValueError(f"{groups} groups of weights {list(weights)} do not fit the channels of {list(image)}")
    rows, columns = _windowed(node, image[1:3] if last else image[2:], kernel)
    return ((image[0], rows, columns, weights[0]) if last else (image[0], weights[0], rows, columns),)


def is_channels_last(node: Application) -> bool:
    """Whether a Conv2D is one of a graph in NHWC: AKG's tensors say their layout themselves, whatever the attribute says."""
    return node.attrs.str("format", "NCHW") == NHWC and node.args[0].layout != NHWC


FEW_CHANNELS = 4
"""Of an image as it comes from a camera: too few to fill a vector."""


FEW_TAPS = 11
"""Along a row of a window: so many stand side by side in a kernel."""


def has_few_channels(node: Application) -> bool:
    """Whether a Conv2D of a graph in NHWC reads so few channels that nobody copies them by vectors."""
    _, columns, channels, _ = node.args[1].shape
    is_small = isinstance(columns, int) and columns <= FEW_TAPS
    return is_channels_last(node) and is_small and isinstance(channels, int) and channels <= FEW_CHANNELS


def is_by_channel(node: Application) -> bool:
    """Whether a Conv2D of a graph in NHWC has a window of its own for each channel, and one result."""
    channels, weights = node.args[0].shape[-1], node.args[1].shape
    return is_channels_last(node) and node.attrs.int("group", 1) == channels == weights[-1]


NARROW = (2, 4, 8, 16)
"""Results of a group that fill a vector, or an even part of one: its lanes are of one group or of several."""

MOST_OF_NARROW = 4
"""Times as many channels of the image as of the result, in a group: vectors of these are shuffled."""


def has_narrow_groups(node: Application) -> bool:
    """Whether a Conv2D of a graph in NHWC has groups of so few channels, and windows along rows."""
    groups = node.attrs.int("group", 1)
    if groups == 1 or not is_channels_last(node):
        return False
    _, columns, inner, outer = node.args[1].shape
    if columns == 1 or not isinstance(outer, int) or not isinstance(inner, int):
        return False
    share = outer // groups
    return share in NARROW and inner % share == 0 and inner // share <= MOST_OF_NARROW


IN_LANES = "in_lanes"
"""The attribute of a Conv2D whose channels are one axis, although they are in groups."""


def are_in_lanes(node: Application) -> bool:
    """Whether the groups of a Conv2D lie side by side in vectors, see :mod:`kernelgen.canonical.groups_in_lanes`."""
    return node.attrs.bool(IN_LANES, False)


def is_blocked(node: Application) -> bool:
    """Whether the image of a Conv2D is NCHWc, ``[N, C/c, H, W, c]`` beside weights of six dims."""
    return len(node.args[0].shape) == 5 and len(node.args[1].shape) == 6


def _blocked_shape(node: Application) -> Shape:
    """Weights are ``[O/o, C/c, kh, kw, c, o]``; those of a depth-wise convolution ``[C/c, 1, kh, kw, 1, c]``."""
    image, weights = node.args[0].shape, node.args[1].shape
    is_depth_wise = node.attrs.bool("is_depth_wise", False)
    wanted = (image[1], 1, 1, image[4]) if is_depth_wise else (weights[0], image[1], image[4], weights[5])
    if (*weights[:2], *weights[4:]) != wanted:
        raise ValueError(f"weights {list(weights)} do not fit the channels of {list(image)}")
    return (image[0], weights[0], *_windowed(node, image[2:4], weights[2:4]), weights[5])


def _windowed(node: Application, extents: Shape, kernel: Shape) -> tuple[Dim, Dim]:
    """The rows and columns of a convolution's result."""
    strides, dilations = (node.attrs.ints(name, (1, 1))[-2:] for name in ("stride", "dilation"))
    rows, columns = (_windows(*each) for each in zip(extents, kernel, strides, dilations, strict=True))
    return rows, columns


def pool2d_shape(node: Application) -> tuple[Shape, ...]:
    """``(extent + pads - kernel) / stride + 1`` rows and columns, rounded by ``round_mode``; 1 by 1 when ``global``.

    Raises ValueError for a window that does not fit into the image.
    """
    shape = list(node.args[0].shape)
    places = pooled_dims(node)
    top, left, bottom, right = node.attrs.ints("pad", (0, 0, 0, 0))
    for place, pads, d in zip(places, (top + bottom, left + right), (0, 1), strict=True):
        extent = shape[place]
        if node.attrs.bool("global", False):
            shape[place] = 1
        elif "places" in node.attrs:
            shape[place] = node.attrs.dims("places")[d]
        elif isinstance(extent, Sym):
            shape[place] = node.outs[0].shape[place]
        else:
            size, stride = node.attrs.ints("kernel_size")[d], node.attrs.ints("strides")[d]
            surplus = stride - 1 if node.attrs.str("round_mode", "floor") == "ceil" else 0
            if extent + pads < size:
                raise ValueError(f"a window of {size} does not fit into {extent} and {pads} elements of padding")
            shape[place] = (extent + pads - size + surplus) // stride + 1
    return (tuple(shape),)


def pooled_dims(node: Application) -> tuple[int, int]:
    """The dims of the rows and columns: the letters H and W of ``data_layout``, else of the tensor's format, else NCHW.

    Raises ValueError for a layout of another rank.
    """
    layout = node.attrs.str("data_layout", _format(node.args[0]))
    letters = re.findall(r"[A-Z]|\d+[a-z]", layout)
    if len(letters) != len(node.args[0].shape) or "H" not in letters or "W" not in letters:
        raise ValueError(f"data_layout {layout} does not fit the shape {list(node.args[0].shape)}")
    return letters.index("H"), letters.index("W")


def _format(tensor: Typed) -> str:
    return "NCHW" if tensor.layout == "DefaultFormat" else tensor.layout


def _windows(extent: Dim, size: Dim, stride: int, dilation: int) -> Dim:
    if isinstance(size, Sym):
        raise ValueError(f"the extents of a window must be known, found {size}")
    windows = WindowAxis(size, stride, dilation=dilation)
    if isinstance(extent, int) and extent < windows.span:
        raise ValueError(f"a window of {size} with dilation {dilation} does not fit into {extent} elements")
    return windows.count(extent)
