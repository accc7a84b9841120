"""Windows over images as ONNX says them, in the attributes of Conv2D and of pools.

strides=(2, 2), pads=(top, left, bottom, right)      ==>    stride=(2, 2), dilation=(1, 1), pad=(top, bottom, left, right)
auto_pad="SAME_UPPER" of 8 columns, 3 at once        ==>    pad=(.., .., 0, 1)
strides=(2, 2) over extents with symbols             ==>    places=(the extents of the result)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernelgen.tensor.types import Shape

NOTSET = "NOTSET"
Windows = dict[str, Any]


def windows_over(image: Shape, kernel: Shape, attributes: Mapping[str, Any]) -> Windows | str:
    """Stride, dilation and pad of windows of two spatial axes; why not where padding follows from symbols.

    ``image`` and ``kernel`` are the spatial extents of what is seen and of a window, ``attributes`` those of the ONNX operator.
    """
    stride, dilation = tuple(attributes.get("strides", (1, 1))), tuple(attributes.get("dilations", (1, 1)))
    pads = _pads(image, kernel, attributes, stride, dilation)
    if isinstance(pads, str):
        return pads
    top, left, bottom, right = pads
    return {"stride": stride, "dilation": dilation, "pad": (top, bottom, left, right)}


def with_places(windows: Windows, result: Shape) -> Windows:
    """The ``windows``, with how many there are, the spatial extents of ``result``, where strides over symbols do not say."""
    is_open = not all(isinstance(extent, int) for extent in result) and set(windows["stride"]) != {1}
    return {**windows, "places": result} if is_open else windows


def _pads(
    image: Shape, kernel: Shape, attributes: Mapping[str, Any], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[int, ...] | str:
    """The padding (top, left, bottom, right)."""
    automatic = attributes.get("auto_pad", NOTSET)
    if automatic == NOTSET:
        return tuple(attributes.get("pads", (0, 0, 0, 0)))
    if automatic == "VALID":
        return (0, 0, 0, 0)
    parts = list(zip(image, kernel, stride, dilation, strict=True))
    totals = [
        max(0, (-(-n // s) - 1) * s + d * (k - 1) + 1 - n)
        for n, k, s, d in parts
        if isinstance(n, int) and isinstance(k, int)
    ]
    if len(totals) < len(parts):
        return f"auto_pad {automatic} of a symbolic extent"
    less, more = tuple(total // 2 for total in totals), tuple(total - total // 2 for total in totals)
    return (*less, *more) if automatic == "SAME_UPPER" else (*more, *less)
