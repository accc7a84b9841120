"""Regions of a graph in which formats can be chosen: element-wise operators joined by each other and by transforms.

All values that are one logical tensor but for transforms have one *root*: the value behind the transforms. A root that a
flexible operator makes may be computed in any format of its region; any other has the format that it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from graphkernel.passes.format.format_kinds import Format, FormatKind, is_flexible, is_part
from kernelgen.disjoint_sets import DisjointSets
from kernelgen.tensor.graph import Graph, Node, Value

Groups = DisjointSets[Value]
"""Values that must share a format because element-wise operators join them."""


@dataclass(frozen=True)
class Reader:
    """Who reads a root: the flexible operator with the result ``operator``, or somebody in a given format."""

    operator: Value | None
    format: Format


@dataclass(frozen=True)
class Region:
    """Each root with its readers; the roots that may change; the transforms that stand in the region."""

    readers: Mapping[Value, tuple[Reader, ...]]
    free: tuple[Value, ...]
    transforms: tuple[Node, ...]


@dataclass(frozen=True)
class Regions:
    """The regions of a graph, and for every value in one its root and its present format."""

    regions: tuple[Region, ...]
    root: Mapping[Value, Value]
    format: Mapping[Value, Format]


def find_regions(graph: Graph, kind: FormatKind) -> Regions:
    """The regions that hold transforms of the kind, in topological order of their first transforms."""
    flexible = {node: None for node in graph.operators if is_flexible(kind, node)}
    transforms = [node for node in graph.operators if kind.is_transform(node)]
    groups: Groups = DisjointSets()
    for node in flexible:
        for arg in node.args:
            if is_part(kind, node, arg):
                groups.join(arg, node.out)
    layout = _Formats.of(kind, groups, transforms)
    root: dict[Value, Value] = {}
    for node in graph.nodes:
        for value in node.outs:
            if groups.of(value) in layout.format:
                root[value] = root[node.args[0]] if node in layout.joining else value
    formats = {value: layout.format[groups.of(value)] for value in root}
    return Regions(_regions(graph, kind, flexible, groups, layout, root, formats), root, formats)


@dataclass
class _Formats:
    """The format and the region number of each group that a transform touches; the transforms that agree with them.

    ``x + Transpose(x)`` makes one logical tensor of two: such a Transpose joins nothing and stays as it is.
    """

    format: dict[Value, Format] = field(default_factory=dict[Value, Format])
    region: dict[Value, int] = field(default_factory=dict[Value, int])
    joining: dict[Node, int] = field(default_factory=dict[Node, int])

    @staticmethod
    def of(kind: FormatKind, groups: Groups, transforms: Iterable[Node]) -> _Formats:
        """Spreads formats from the first transform of each region over all groups that others lead to."""
        touching: dict[Value, list[Node]] = {}
        for node in transforms:
            for group in dict.fromkeys((groups.of(node.args[0]), groups.of(node.out))):
                touching.setdefault(group, []).append(node)
        found = _Formats()
        for number, start in enumerate(touching):
            if start not in found.format:
                found.format[start] = kind.own_format(start)
                found.region[start] = number
                found._spread(kind, groups, touching, start)
        for node in transforms:
            operand, result = groups.of(node.args[0]), groups.of(node.out)
            if kind.result_format(node, found.format[operand]) == found.format[result]:
                found.joining[node] = found.region[operand]
        return found

    def _spread(self, kind: FormatKind, groups: Groups, touching: Mapping[Value, list[Node]], start: Value) -> None:
        queue = [start]
        for group in queue:
            for node in touching[group]:
                operand, result = groups.of(node.args[0]), groups.of(node.out)
                other = result if group == operand else operand
                if other in self.format:
                    continue
                known = self.format[group]
                ahead = group == operand
                self.format[other] = kind.result_format(node, known) if ahead else kind.operand_format(node, known)
                self.region[other] = self.region[start]
                queue.append(other)


def _regions(
    graph: Graph,
    kind: FormatKind,
    flexible: Mapping[Node, None],
    groups: Groups,
    layout: _Formats,
    root: Mapping[Value, Value],
    formats: Mapping[Value, Format],
) -> tuple[Region, ...]:
    readers: dict[Value, list[Reader]] = {value: [] for value in root if root[value] == value}
    for node in graph.operators:
        if node in layout.joining:
            continue
        for arg in dict.fromkeys(node.args):
            if arg in root:
                chooses = node in flexible and is_part(kind, node, arg)
                readers[root[arg]].append(Reader(node.out if chooses else None, formats[arg]))
    for value in dict.fromkeys(graph.outputs):
        if value in root:
            readers[root[value]].append(Reader(None, formats[value]))
    transforms: dict[int, list[Node]] = {}
    for node, number in layout.joining.items():
        transforms.setdefault(number, []).append(node)
    roots: dict[int, list[Value]] = {number: [] for number in transforms}
    for value in readers:
        roots.setdefault(layout.region[groups.of(value)], []).append(value)
    return tuple(
        Region(
            {value: tuple(readers[value]) for value in roots[number]},
            tuple(value for value in roots[number] if value.node in flexible),
            tuple(nodes),
        )
        for number, nodes in transforms.items()
    )
