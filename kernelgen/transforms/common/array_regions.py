"""Regions of a temporary that have no element in common become temporaries of their own.

    workspace t[196, 1024]                                workspace t_part0[196, 1008], t_part1[196, 16]
    parallel for j0 in 0..1008 step 48: t[i, j0 + j] = ..           t_part0[i, j0 + j] = ..
    parallel for i: t[i, j + 1008] = ..                      ->     t_part1[i, j] = ..
    parallel for j0 in 0..1008 step 48: .. t[i, j0 + j]             .. t_part0[i, j0 + j]
    parallel for i: .. t[i, j + 1008]                               .. t_part1[i, j]

Whole panels and the columns beside them are such regions: where loops join, the memory of one panel serves for all, and the
columns beside them would keep whole rows.

Legality: { S -> t[e] : e in A(S) } are the accesses of the statements of the body. Where no A(S) of one class meets one of
another, what reads an element is in the class of what writes it, so that each class may have memory of its own. A(S) is taken
for the boxes of the ranges of its indices, which hold it, and an element is found behind the first one of its box.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from kernelgen.disjoint_sets import DisjointSets
from kernelgen.nest import nodes as n
from kernelgen.nest.ranges import Range, range_of
from kernelgen.nest.walk import Moved, move
from kernelgen.transforms.common.reached import reached

Box = Sequence[tuple[int, int]]
"""The first and the last place along each dim."""


def regions_apart(nest: n.Nest) -> n.Nest:
    """The nest with the regions of its workspaces as workspaces."""
    boxes, names = _boxes(nest), {buffer.name for buffer in nest.buffers}
    parts = list(nest.body.statements)
    buffers: list[n.Buffer] = []
    for buffer in nest.buffers:
        regions = _regions(boxes.get(buffer.name)) if buffer.space is n.Space.WORKSPACE else []
        if len(regions) < 2:
            buffers.append(buffer)
            continue
        for number, region in enumerate(regions):
            box = [(min(lows), max(highs)) for lows, highs in _bounds(region.values())]
            shape = tuple(high - low + 1 for low, high in box)
            part = replace(buffer, name=_free(f"{buffer.name}_part{number}", names), shape=shape)
            moved = Moved(part, tuple(range(len(box))), bases={dim: n.Num(low) for dim, (low, _) in enumerate(box)})
            buffers.append(part)
            for position in region:
                (parts[position],) = move(n.Block((parts[position],)), {buffer.name: moved}).statements
    return (
        nest if len(buffers) == len(nest.buffers) else replace(nest, buffers=tuple(buffers), body=n.Block(tuple(parts)))
    )


def _free(name: str, names: set[str]) -> str:
    """The name, or one like it that is not among ``names``; it is from here on."""
    while name in names:
        name += "_"
    names.add(name)
    return name


def _boxes(nest: n.Nest) -> Mapping[str, Mapping[int, list[Box] | None]]:
    """Where each buffer is touched by each statement of the body; None where that is not known."""
    found: dict[str, dict[int, list[Box] | None]] = {}
    for position, part in enumerate(nest.body.statements):
        for access in reached(part):
            box = _box([range_of(each, access.known) for each in access.place])
            here = found.setdefault(access.buffer, {})
            held = here.setdefault(position, [])
            if box is None or held is None:
                here[position] = None
            elif box not in held:
                held.append(box)
    return found


def _box(ranges: Iterable[Range]) -> Box | None:
    """The ranges as they are known; None where one is not, or is empty."""
    found = [(each.low, each.high) for each in ranges]
    known = [(low, high) for low, high in found if low is not None and high is not None and low <= high]
    return known if len(known) == len(found) else None


def _regions(boxes: Mapping[int, list[Box] | None] | None) -> Sequence[Mapping[int, list[Box]]]:
    """The classes of statements whose boxes meet; none where a box is not known."""
    known = {position: held for position, held in (boxes or {}).items() if held is not None}
    if not boxes or len(known) < len(boxes):
        return []
    joined: DisjointSets[int] = DisjointSets()
    for first, second in combinations(known, 2):
        if any(_meet(one, other) for one in known[first] for other in known[second]):
            joined.join(first, second)
    classes: dict[int, dict[int, list[Box]]] = {}
    for position, held in known.items():
        classes.setdefault(joined.of(position), {})[position] = held
    return list(classes.values())


def _meet(one: Box, other: Box) -> bool:
    return all(low <= last and first <= high for (low, high), (first, last) in zip(one, other, strict=True))


def _bounds(held: Iterable[list[Box]]) -> Iterable[tuple[list[int], list[int]]]:
    """For each dim where boxes begin, and where they end."""
    dims = zip(*(box for boxes in held for box in boxes), strict=True)
    return (([low for low, _ in dim], [high for _, high in dim]) for dim in dims)
