"""The five bit masks of MindSpore's (and TensorFlow's) StridedSlice, read as an index that Python writes in brackets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernelgen.errors import TypeRuleError, nearest
from kernelgen.tensor.types import Dim

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def masked_key(begin: Sequence[Dim], end: Sequence[Dim], strides: Sequence[int], masks: Mapping[str, int]) -> Any:
    """``x[key]`` is the masked slice of x. An ellipsis bit beats a new-axis bit, which beats a shrink bit.

    ``begin_mask`` and ``end_mask`` mean "from the start" and "to the end"; a shrunk axis keeps the element at begin.

    Raises TypeRuleError for a mask that is none.
    """
    for name in masks:
        if name not in MASKS:
            raise TypeRuleError(f"StridedSlice: has no mask {name!r}{nearest(name, MASKS)}")
    bits = {name: masks.get(name, 0) for name in MASKS}
    entries = zip(begin, end, strides, strict=True)
    return tuple(_entry(*entry, [bool(bits[name] >> i & 1) for name in MASKS]) for i, entry in enumerate(entries))


def _entry(begin: Dim, end: Dim, stride: int, set_: Sequence[bool]) -> Any:
    from_start, to_end, ellipsis, new_axis, shrink = set_
    if ellipsis:
        return Ellipsis
    if new_axis:
        return None
    if shrink:
        return begin
    return slice(None if from_start else begin, None if to_end else end, stride)
