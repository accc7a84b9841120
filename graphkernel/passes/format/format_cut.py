"""The choice of formats in a region: the fewest transforms, by minimum cuts between two formats at a time.

A root needs one transform for each format in which somebody reads it and which is not its own. Between two formats A and
B this is a cut: roots on the source's side have A, those on the sink's side B; a root that is read in the other format is
cut from an extra vertex, once for all such readers. With more than two formats in a region pairs are swapped until
nothing improves; the figure of every proposal is counted, not trusted.

Source: the pass TransformOpOptimizer of MindSpore (two formats); swaps: Y. Boykov, O. Veksler, R. Zabih, "Fast approximate
energy minimization via graph cuts", 2001.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from graphkernel.passes.format.format_kinds import Format, FormatKind
from graphkernel.passes.format.format_regions import Reader, Region
from graphkernel.passes.format.minimum_cut import Network
from kernelgen.tensor.graph import Value

Choice = Mapping[Value, Format]
Vertex = tuple[str, int]

SOURCE: Vertex = ("source", 0)
SINK: Vertex = ("sink", 0)


def best_formats(region: Region, kind: FormatKind, present: Choice) -> Choice:
    """The format of each root of the ``region``, of this ``kind`` of formats; those that are not free have their
    ``present`` ones.
    """
    best: dict[Value, Format] = {value: present[value] for value in region.readers}
    if not region.free:
        return best
    formats = tuple(
        dict.fromkeys([*best.values(), *(reader.format for found in region.readers.values() for reader in found)])
    )
    improved = True
    while improved:
        improved = False
        for first, second in combinations(formats, 2):
            proposal = _swapped(region, kind, present, best, first, second)
            if transforms_of(region, kind, present, proposal) < transforms_of(region, kind, present, best):
                best, improved = proposal, True
    return best


def transforms_of(region: Region, kind: FormatKind, present: Choice, choice: Choice) -> int:
    """How many transforms of one ``kind`` a ``choice`` (root -> format) needs in a ``region`` whose roots come in
    ``present`` formats.
    """
    return sum(len(needed_formats(region, kind, present, choice, value)) for value in region.readers)


def needed_formats(
    region: Region, kind: FormatKind, present: Choice, choice: Choice, value: Value
) -> tuple[Format, ...]:
    """The formats in which the root ``value`` is read under a ``choice``, and into which a transform must bring it.

    ``region``, ``kind`` and ``present`` are those of :func:`transforms_of`.
    """
    wanted = dict.fromkeys(_wanted(reader, choice) for reader in region.readers[value])
    return tuple(
        want
        for want in wanted
        if want != choice[value] and not _costs_nothing(kind, present, value, choice[value], want)
    )


def _wanted(reader: Reader, choice: Choice) -> Format:
    return reader.format if reader.operator is None else choice[reader.operator]


def _costs_nothing(kind: FormatKind, present: Choice, value: Value, have: Format, want: Format) -> bool:
    """Constants are converted now, and some conversions move nothing."""
    return value.is_known or kind.is_free(value.type.shape, present[value], have, want)


def _swapped(
    region: Region, kind: FormatKind, present: Choice, choice: Choice, first: Format, second: Format
) -> dict[Value, Format]:
    """The best choice when the free roots that have one of two formats may have either."""
    vertex: dict[Value, Vertex] = {
        value: ("root", number) for number, value in enumerate(region.free) if choice[value] in (first, second)
    }
    network: Network[Vertex] = Network()
    network.connect(SOURCE, SINK, 0)

    def side(value: Value | None, format: Format) -> Vertex | None:
        """The vertex of a free root, else the end that stands for the format; None for a third format."""
        if value is not None and value in vertex:
            return vertex[value]
        return SOURCE if format == first else SINK if format == second else None

    for number, (value, readers) in enumerate(region.readers.items()):
        if _costs_nothing(kind, present, value, first, second):
            continue
        own = side(value, choice[value])
        needs_first, needs_second = ("first", number), ("second", number)
        network.connect(own or SOURCE, needs_second, 1)
        network.connect(needs_first, own or SINK, 1)
        for reader in readers:
            place = side(reader.operator, _wanted(reader, choice))
            if place is not None:
                network.connect(needs_second, place)
                network.connect(place, needs_first)
    moved = network.sink_side(SOURCE, SINK)
    return {
        **choice,
        **{value: second if place in moved else first for value, place in vertex.items()},
    }
