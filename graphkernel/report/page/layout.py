"""Places for the boxes of a graph: in layers from top to bottom, ordered so that edges cross little, near their neighbours.

Layers are longest paths. An edge over several layers has a point in each layer between; one over very many is left out of the
drawing and told of at its ends. Order within a layer is by the mean place of the neighbours, places within the order by least
squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

FARTHEST = 12  # layers that an edge is drawn over
SWEEPS = 6  # that order
EASINGS = 10  # that place
GAP = 18.0
POINT = 8.0  # the width of an edge that passes a layer


@dataclass(frozen=True)
class Layout:
    """The layer and the middle of every box, and for every edge that is drawn the places where it passes layers."""

    layers: tuple[int, ...]
    middles: tuple[float, ...]
    routes: dict[tuple[int, int], tuple[float, ...]]
    width: float


@dataclass
class _Sheet:
    """Boxes and the points of edges as items: their widths, neighbours above and below, and the items of each layer."""

    widths: list[float]
    above: list[list[int]] = field(default_factory=list[list[int]])
    below: list[list[int]] = field(default_factory=list[list[int]])
    rows: list[list[int]] = field(default_factory=list[list[int]])

    def join(self, upper: int, lower: int) -> None:
        self.below[upper].append(lower)
        self.above[lower].append(upper)

    def add(self, layer: int, width: float) -> int:
        self.widths.append(width)
        self.above.append([])
        self.below.append([])
        self.rows[layer].append(len(self.widths) - 1)
        return len(self.widths) - 1


def layered(widths: Sequence[float], edges: Sequence[tuple[int, int]]) -> Layout:
    """Places for boxes of these widths. Edges lead from a box to one behind it; others are not drawn."""
    forward = [(a, b) for a, b in dict.fromkeys(edges) if a < b]
    layers = _layers(len(widths), forward)
    rows = max(layers, default=-1) + 1
    sheet = _Sheet(list(widths), [[] for _ in widths], [[] for _ in widths], [[] for _ in range(rows)])
    for box, layer in enumerate(layers):
        sheet.rows[layer].append(box)
    points = {edge: _points(sheet, edge, layers) for edge in forward if layers[edge[1]] - layers[edge[0]] <= FARTHEST}
    middles = _places(sheet)
    least = min((middles[i] - sheet.widths[i] / 2 for i in range(len(middles))), default=0.0)
    middles = [middle - least for middle in middles]
    routes = {edge: tuple(middles[point] for point in passed) for edge, passed in points.items()}
    reach = max((middles[i] + sheet.widths[i] / 2 for i in range(len(middles))), default=0.0)
    return Layout(tuple(layers), tuple(middles[: len(widths)]), routes, reach)


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Longest paths from the top; what nothing leads to stands right above its first user."""
    users: list[list[int]] = [[] for _ in range(count)]
    sources: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        users[a].append(b)
        sources[b].append(a)
    found = [0] * count
    for box in range(count):
        found[box] = max((found[a] + 1 for a in sources[box]), default=0)
    for box in reversed(range(count)):
        if not sources[box] and users[box]:
            found[box] = min(found[b] for b in users[box]) - 1
    return found


def _points(sheet: _Sheet, edge: tuple[int, int], layers: Sequence[int]) -> list[int]:
    """The items of an edge in the layers that it passes, joined to one another and to its ends."""
    upper, lower = edge
    points = [sheet.add(layer, POINT) for layer in range(layers[upper] + 1, layers[lower])]
    for above, below in zip([upper, *points], [*points, lower], strict=True):
        sheet.join(above, below)
    return points


def _places(sheet: _Sheet) -> list[float]:
    """The middle of every item."""
    middles = [0.0] * len(sheet.widths)
    for row in sheet.rows:
        _spread(sheet, row, [0.0] * len(row), middles)
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        near = sheet.above if downwards else sheet.below
        for row in sheet.rows if downwards else reversed(sheet.rows):
            wished = {item: _mean(middles, near[item], middles[item]) for item in row}
            row.sort(key=wished.__getitem__)
            _spread(sheet, row, [wished[item] for item in row], middles)
    for easing in range(EASINGS):
        for row in sheet.rows if easing % 2 else reversed(sheet.rows):
            _spread(sheet, row, [_mean(middles, sheet.above[i] + sheet.below[i], middles[i]) for i in row], middles)
    return middles


def _mean(middles: Sequence[float], near: Sequence[int], otherwise: float) -> float:
    return sum(middles[item] for item in near) / len(near) if near else otherwise


def _spread(sheet: _Sheet, row: Sequence[int], wished: Sequence[float], middles: list[float]) -> None:
    """The places nearest to those wished, in this order and apart: pools of items that touch take their mean."""
    offsets: list[float] = []
    reached = 0.0
    for item in row:
        offsets.append(reached + sheet.widths[item] / 2)
        reached += sheet.widths[item] + GAP
    pools: list[tuple[float, int]] = []  # the sum of what its items wish, and how many they are
    for wish, offset in zip(wished, offsets, strict=True):
        total, count = wish - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before, more = pools.pop()
            total, count = total + before, count + more
        pools.append((total, count))
    starts = [total / count for total, count in pools for _ in range(count)]
    for item, start, offset in zip(row, starts, offsets, strict=True):
        middles[item] = start + offset
