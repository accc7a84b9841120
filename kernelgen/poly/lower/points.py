"""The points that a statement runs over, grouped by the dims that they belong to.

A dim whose axis was split has several iterators, a dim of extent 1 has none; ``position`` is the number along the dim
in either case, and :func:`unflatten` takes a number apart again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelgen.errors import UnsupportedError
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Index, IndexValue, Num, ValueIndex, Var
from kernelgen.poly.model.axes import Axis
from kernelgen.poly.model.scop import Iterator
from kernelgen.tensor.dims import Dim, Sym, least_extent, product
from kernelgen.tensor.dtypes import INT64

Place = Index | tuple[Index, ...]
"""Where an access goes along one dim: a number, or one index for each leaf axis of the dim."""


@dataclass(frozen=True)
class Points:
    """An iteration space made of groups of axes, one group per dim: iterators are numbered through."""

    iterators: tuple[Iterator, ...]
    groups: tuple[tuple[Index, ...], ...]

    @staticmethod
    def over(groups: Sequence[Sequence[Axis]]) -> Points:
        """One iterator for each axis."""
        return Points((), ()).extended(groups)

    def extended(self, groups: Sequence[Sequence[Axis]]) -> Points:
        """These points with further dims behind."""
        iterators, named = list(self.iterators), list(self.groups)
        for group in groups:
            own = [Iterator(f"i{len(iterators) + k}", axis.extent) for k, axis in enumerate(group)]
            iterators += own
            named.append(tuple(Var(iterator.name) for iterator in own))
        return Points(tuple(iterators), tuple(named))

    def counted(self, *extents: Dim) -> Points:
        """These points with further dims of those extents, which no tensor has."""
        return self.extended([() if extent == 1 else (Axis(extent),) for extent in extents])

    @property
    def index(self) -> tuple[Index, ...]:
        """All iterators."""
        return tuple(index for group in self.groups for index in group)

    @property
    def is_empty(self) -> bool:
        """Whether there is no point."""
        return any(iterator.extent == 0 for iterator in self.iterators)

    def position(self, dim: int) -> Index:
        """The number along a dim."""
        extents = {iterator.name: iterator.extent for iterator in self.iterators}
        names = [index.name for index in self.groups[dim] if isinstance(index, Var)]
        return flatten([(Var(name), extents[name]) for name in names])

    @property
    def number(self) -> Index:
        """The row-major number of the point."""
        return flatten([(Var(iterator.name), iterator.extent) for iterator in self.iterators])


def flatten(places: Sequence[tuple[Index, Dim]]) -> Index:
    """The row-major number of a place in a box, given as pairs of index and extent."""
    flat: Index = Num(0)
    for index, extent in places:
        flat = ix.add(ix.multiply(flat, ix.from_dim(extent)), index)
    return flat


def unflatten(flat: Index, shape: Sequence[Dim]) -> tuple[Index, ...]:
    """The place with a row-major number. A product with or a division by a symbol is not quasi-affine: it is computed."""
    if len(shape) <= 1:
        by_data = ix.is_by_data(flat)
        return tuple(flat if by_data or ix.is_affine(flat) else computed_place(flat, size) for size in shape)
    places: list[Index] = []
    for position, size in enumerate(shape):
        coordinate = ix.floor_divide(flat, ix.from_dim(product(shape[position + 1 :])))
        places.append(coordinate if position == 0 else ix.modulo(coordinate, ix.from_dim(size)))
    if any(isinstance(dim, Sym) for dim in shape):
        return tuple(computed_place(place, size) for place, size in zip(places, shape, strict=True))
    return tuple(places)


def computed_place(number: Index, extent: Dim) -> Index:
    """A number that is no quasi-affine function of the point, as a place of a dim: a scalar that is known to be inside.

    To the polyhedral side it is a place that data decides: ``{ S[i] -> x[d] : exists v : d = min(max(v, 0), extent - 1) }``.
    """
    return nearest_place(ValueIndex(IndexValue(number, INT64)), extent)


def nearest_place(place: Index, extent: Dim) -> Index:
    """The nearest place inside of a dim. Raises UnsupportedError for a dim that may have none."""
    if isinstance(extent, Sym) and least_extent(extent) < 1:
        raise UnsupportedError("unsupported-layout", f"a place in a dim of extent {extent}, which may be 0")
    return ix.clamp(place, extent)
