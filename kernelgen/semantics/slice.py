"""StridedSlice, StridedSliceV2 and Slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelgen.semantics.algebra import Array
from kernelgen.tensor.operator import Application
from kernelgen.tensor.operators.type_rules import normal_axis

Item = slice | int | None


def strided_slice(operands: Sequence[Array], node: Application) -> Array:
    """``begin``, ``end``, ``strides`` per entry; five bit masks, one bit per entry, as in TensorFlow."""
    return operands[0][tuple(_items(node, operands[0].ndim))]


def strided_slice_v2(operands: Sequence[Array], node: Application) -> Array:
    """``begin``, ``end``, ``strides`` of the dims named by ``axes``; the other dims stay whole."""
    rank = operands[0].ndim
    begin, end = node.attrs.ints("begin"), node.attrs.ints("end")
    axes = node.attrs.ints("axes", tuple(range(len(begin))))
    items = [slice(None)] * rank
    for axis, b, e, s in zip(axes, begin, end, node.attrs.ints("strides", (1,) * len(begin)), strict=True):
        items[normal_axis(axis, rank)] = slice(b, e, s)
    return operands[0][tuple(items)]


def plain_slice(operands: Sequence[Array], node: Application) -> Array:
    """``begin`` and ``size`` of every dim; a size of -1 reaches to the end."""
    begin, size = node.attrs.ints("begin"), node.attrs.ints("size")
    items = (slice(b, None if s == -1 else b + s) for b, s in zip(begin, size, strict=True))
    return operands[0][tuple(items)]


@dataclass(frozen=True)
class _Masks:
    begin: int
    end: int
    ellipsis: int
    new_axis: int
    shrink: int

    @staticmethod
    def of(node: Application) -> _Masks:
        return _Masks(
            *(node.attrs.int(f"{kind}_mask", 0) for kind in ("begin", "end", "ellipsis", "new_axis", "shrink_axis"))
        )


def _items(node: Application, rank: int) -> list[Item]:
    begin, end = node.attrs.ints("begin"), node.attrs.ints("end")
    strides, masks = node.attrs.ints("strides", (1,) * len(begin)), _Masks.of(node)
    items: list[Item] = []
    entries = len(begin)
    new = sum(masks.new_axis >> i & 1 for i in range(entries) if not masks.ellipsis >> i & 1)
    for i in range(entries):
        bit = 1 << i
        if masks.ellipsis & bit:
            items += [slice(None)] * (rank - (entries - 1 - new))
        elif masks.new_axis & bit:
            items.append(None)
        elif masks.shrink & bit:
            items.append(begin[i])
        else:
            items.append(
                slice(None if masks.begin & bit else begin[i], None if masks.end & bit else end[i], strides[i])
            )
    return items
