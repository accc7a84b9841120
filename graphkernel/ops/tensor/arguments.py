"""What users may write loosely in operator functions, normalised to what attributes hold."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

from graphkernel.errors import TypeRuleError
from kernelgen.tensor.types import Dim, Shape

IndexItem = int | slice | None | EllipsisType


def split_sizes(extent: Dim, sizes: int | Sequence[int]) -> tuple[int, ...]:
    """The sizes of the parts; one int is the number of equal parts.

    Raises TypeRuleError where the extent does not divide into them.
    """
    if not isinstance(sizes, int):
        return tuple(sizes)
    if not isinstance(extent, int) or sizes <= 0 or extent % sizes:
        raise TypeRuleError(f"Split: extent {extent} does not split into {sizes} equal parts")
    return (extent // sizes,) * sizes


def index_ranges(shape: Shape, key: Sequence[IndexItem]) -> tuple[list[tuple[Dim, Dim, int]], list[int | None]]:
    """Numpy's basic indexing: (begin, end, stride) of every axis, and which axes the result has (None for a new one).

    Raises TypeRuleError for more entries than axes.
    """
    named = sum(item is not None and item is not Ellipsis for item in key)
    if named > len(shape) or list(key).count(Ellipsis) > 1:
        raise TypeRuleError(f"StridedSlice: the index has {named} entries for {len(shape)} axes")
    whole: list[IndexItem] = [slice(None)] * (len(shape) - named)
    at = list(key).index(Ellipsis) if Ellipsis in key else len(key)
    ranges: list[tuple[Dim, Dim, int]] = []
    kept: list[int | None] = []
    for item in [*key[:at], *whole, *key[at + 1 :]]:
        if item is None:
            kept.append(None)
            continue
        axis = len(ranges)
        if isinstance(item, slice):
            kept.append(axis)
            ranges.append(_slice_range(shape[axis], item))
        elif isinstance(item, int):
            begin = _from_front(item, shape[axis])
            ranges.append((begin, begin + 1, 1))
    return ranges, kept


def _slice_range(extent: Dim, item: slice) -> tuple[Dim, Dim, int]:
    """Ends out of range are cut as numpy does where the extent is known; a symbolic one must fit as it is written."""
    if isinstance(extent, int):
        return item.indices(extent)
    begin = 0 if item.start is None else item.start
    end = extent if item.stop is None else item.stop
    return _from_front(begin, extent), _from_front(end, extent), 1 if item.step is None else item.step


def _from_front(position: Dim, extent: Dim) -> Dim:
    return extent + position if isinstance(position, int) and position < 0 else position
