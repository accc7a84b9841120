"""What users may write loosely in operator functions, normalised to what attributes hold."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

from graphkernel.errors import TypeRuleError
from kernelgen.tensor.operators.type_rules import axes_of, shape_text
from kernelgen.tensor.types import Dim, DType, Shape, Sym, divide_exactly, product

Axes = int | Sequence[int] | None
IndexItem = int | slice | None | EllipsisType


def ints(value: int | Sequence[int]) -> tuple[int, ...]:
    """One int as a tuple of one."""
    return (value,) if isinstance(value, int) else tuple(value)


def repeated(value: int | Sequence[int], count: int) -> tuple[int, ...]:
    """One int as a tuple of ``count`` of it."""
    return (value,) * count if isinstance(value, int) else tuple(value)


def dims(value: Dim | Sequence[Dim]) -> Shape:
    """One extent as a shape of one dim."""
    return (value,) if isinstance(value, int | Sym) else tuple(value)


def attribute_number(value: float, of: DType) -> int | float:
    """A number that an attribute holds for elements of a data type: integers take it as it stands, all else as a float."""
    return value if of.is_integer else float(value)


def normal_axes(axis: Axes, rank: int) -> tuple[int, ...]:
    """Sorted non-negative axes; None and () mean all."""
    return axes_of(() if axis is None else ints(axis), rank)


def resolved_shape(own: Shape, wished: Shape) -> Shape:
    """The wished shape with its -1 worked out from the elements of a tensor of shape ``own``.

    Raises TypeRuleError where the elements do not tell it.
    """
    if -1 not in wished:
        return wished
    known = product(dim for dim in wished if dim != -1)
    missing = divide_exactly(product(own), known) if wished.count(-1) == 1 and known != 0 else None
    if missing is None:
        raise TypeRuleError(f"Reshape: cannot work out the -1 of {shape_text(wished)} from {product(own)} elements")
    return tuple(missing if dim == -1 else dim for dim in wished)


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
