"""The areas of one cluster, how they are linked, and merging. The one mutable value of fusion; it never leaves it."""

from __future__ import annotations

from collections.abc import Collection

from graphkernel.cluster.area import Area, Link, Mode
from graphkernel.cluster.contract import edges
from graphkernel.cluster.reach import Reach
from graphkernel.cluster.space import Space, reduction_space, spread_of_operand
from graphkernel.ir.graph import LEAVES, Graph, Node, Value
from graphkernel.ir.opdef import Kind

BASIC_OPERATORS = frozenset({"Reshape", "Assign"})


class Partition:
    """At the start every operator of the graph is an area of its own; :meth:`merge` makes fewer."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        nodes = graph.operators
        dependences = edges(nodes)
        self._reach = Reach(len(nodes), dependences)
        self._areas = {number: _single(number, node, graph, self) for number, node in enumerate(nodes)}
        self._spreads: dict[tuple[int, int], frozenset[Space]] = {}
        for producer, user in dependences:
            self._spreads[producer, user] = _spreads(nodes[producer], nodes[user])
        self._position = {node: number for number, node in enumerate(nodes)}
        self._readers: dict[Value, set[int]] = {}
        for area in self._areas.values():
            for leaf in area.reads:
                self._readers.setdefault(leaf, set()).add(area.number)

    @property
    def areas(self) -> tuple[Area, ...]:
        """The living areas, producers before users."""
        return tuple(self._areas[number] for number in self._reach.nodes)

    def area(self, number: int) -> Area | None:
        """The living area of that number, if there is one."""
        return self._areas.get(number)

    def inputs(self, area: Area) -> tuple[Link, ...]:
        """The areas that make operands of an area, producers before users."""
        producers = self._reach.producers(area.number)
        return tuple(Link(self._areas[p], self._spreads[p, area.number]) for p in producers)

    def users(self, area: Area) -> tuple[Link, ...]:
        """The areas that use results of an area, producers before users."""
        users = self._reach.users(area.number)
        return tuple(Link(self._areas[u], self._spreads[area.number, u]) for u in users)

    def siblings(self, area: Area) -> tuple[Area, ...]:
        """The areas that read what this area reads, a leaf or another area's result, and are not linked to it."""
        producers, users = self._reach.producers(area.number), self._reach.users(area.number)
        found = {number for leaf in area.reads for number in self._readers[leaf]}
        found.update(user for producer in producers for user in self._reach.users(producer))
        return tuple(self._areas[number] for number in sorted(found - {area.number, *producers, *users}))

    def is_acyclic(self, areas: Collection[Area]) -> bool:
        """True when the areas can merge without closing a cycle."""
        return self._reach.is_acyclic([area.number for area in areas])

    def merge(self, areas: Collection[Area]) -> Area:
        """Makes the areas one; the caller has asked :meth:`is_acyclic`."""
        kind = self._merged_kind(areas)
        dominant = max(areas, key=lambda area: (area.kind, self._position[area.nodes[-1]]))
        numbers = {area.number for area in areas}
        merged = self._reach.merge(numbers)
        self._relink(numbers, merged)
        area = Area(
            number=merged,
            nodes=tuple(sorted((node for area in areas for node in area.nodes), key=self._position.__getitem__)),
            kind=kind,
            elements=dominant.elements,
            spaces=frozenset().union(*(area.spaces for area in areas)),
            reads=frozenset().union(*(area.reads for area in areas)),
            is_output=any(area.is_output for area in areas),
            mode=Mode.COMPOSITE if kind > Kind.RESHAPE else Mode.BASIC,
            neighbours=self,
        )
        for number in numbers:
            del self._areas[number]
        self._areas[merged] = area
        for leaf in area.reads:
            self._readers[leaf] = (self._readers[leaf] - numbers) | {merged}
        return area

    def _merged_kind(self, areas: Collection[Area]) -> Kind:
        """The greatest kind; element-wise areas that broadcast to each other are a broadcast."""
        inside = {area.number for area in areas}
        broadcasts = any(
            not link.is_injective for area in areas for link in self.users(area) if link.area.number in inside
        )
        greatest = max(area.kind for area in areas)
        return Kind.BROADCAST if broadcasts and greatest is Kind.ELEMWISE else greatest

    def _relink(self, numbers: set[int], merged: int) -> None:
        """Links to and from the merged areas become links of the one that is left."""
        inner = [pair for a in numbers for b in numbers if (pair := (a, b)) in self._spreads]
        for pair in inner:
            del self._spreads[pair]
        for old in sorted(numbers):
            for producer in self._reach.producers(merged):
                self._move((producer, old), (producer, merged))
            for user in self._reach.users(merged):
                self._move((old, user), (merged, user))

    def _move(self, old: tuple[int, int], new: tuple[int, int]) -> None:
        if old != new and old in self._spreads:
            self._spreads[new] = self._spreads.get(new, frozenset()) | self._spreads.pop(old)


def _single(number: int, node: Node, graph: Graph, partition: Partition) -> Area:
    return Area(
        number=number,
        nodes=(node,),
        kind=_kind(node),
        elements=node.types[0].size,
        spaces=frozenset({reduction_space(node)} if node.op.kind is Kind.REDUCE else ()),
        reads=_reads(node),
        is_output=node in graph.output_nodes,
        mode=Mode.BASIC if node.op.name in BASIC_OPERATORS else Mode.COMPOSITE,
        neighbours=partition,
    )


def _kind(node: Node) -> Kind:
    """The operator's kind; an element-wise operator that broadcasts a tensor is a broadcast, a scalar does not count."""
    if node.op.kind is not Kind.ELEMWISE:
        return node.op.kind
    broadcasts = any(
        arg.type.size != 1 and spread_of_operand(node, index) is not None for index, arg in enumerate(node.args)
    )
    return Kind.BROADCAST if broadcasts else Kind.ELEMWISE


def _reads(node: Node) -> frozenset[Value]:
    return frozenset(
        arg
        for index, arg in enumerate(node.args)
        if arg.op in LEAVES and arg.type.size != 1 and spread_of_operand(node, index) is None
    )


def _spreads(producer: Node, user: Node) -> frozenset[Space]:
    found = (spread_of_operand(user, index) for index, arg in enumerate(user.args) if arg.node is producer)
    return frozenset(space for space in found if space is not None)
