"""The areas of one cluster, how they are linked, and merging. The one mutable value of fusion; it never leaves it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from itertools import islice

from graphkernel.cluster.area import Area, Link, Mode
from graphkernel.cluster.contract import edges
from graphkernel.cluster.reach import Reach
from graphkernel.cluster.space import Space, reduction_space, spread_of_operand
from graphkernel.ir.graph import Graph, Node, Value
from graphkernel.ir.opdef import Kind

BASIC_OPERATORS = frozenset({"AllReduce", "Assign", "BatchMatMul", "GroupedMatmul", "MatMul", "Reshape", "TransData"})
"""Operators that are no kernels by themselves: views, names of buffers, and what libraries do better."""
NEAREST = 16
"""How many of the readers of one tensor an area sees as siblings."""


class Partition:
    """At the start every operator of the graph is an area of its own; :meth:`merge` makes fewer."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        nodes = graph.operators
        dependences = edges(nodes)
        self._reach = Reach(len(nodes), dependences)
        self._areas = {number: _single(number, node, graph, self) for number, node in enumerate(nodes)}
        self._home = list(range(len(nodes)))
        self._spreads: dict[tuple[int, int], frozenset[Space]] = {}
        for producer, user in dependences:
            self._spreads[producer, user] = _spreads(nodes[producer], nodes[user])
        self._outputs = frozenset(graph.outputs)
        self._position = {node: number for number, node in enumerate(nodes)}
        self._readers: dict[Value, list[int]] = {}
        for area in self._areas.values():
            for value in area.reads:
                self._readers.setdefault(value, []).append(area.number)
        self._inputs: dict[int, tuple[Link, ...]] = {}
        self._users: dict[int, tuple[Link, ...]] = {}

    @property
    def areas(self) -> tuple[Area, ...]:
        """The living areas, producers before users."""
        return tuple(self._areas[number] for number in self._reach.nodes)

    def area(self, number: int) -> Area | None:
        """The living area of that number, if there is one."""
        return self._areas.get(number)

    def inputs(self, area: Area) -> tuple[Link, ...]:
        """The areas that make operands of an area, producers before users."""
        number = area.number
        if number not in self._inputs:
            producers = self._reach.producers(number)
            self._inputs[number] = tuple(Link(self._areas[p], self._spreads[p, number]) for p in producers)
        return self._inputs[number]

    def users(self, area: Area) -> tuple[Link, ...]:
        """The areas that use results of an area, producers before users."""
        number = area.number
        if number not in self._users:
            users = self._reach.users(number)
            self._users[number] = tuple(Link(self._areas[u], self._spreads[number, u]) for u in users)
        return self._users[number]

    def user_count(self, area: Area) -> int:
        """The number of areas that use results of an area."""
        return self._reach.user_count(area.number)

    def siblings(self, area: Area) -> tuple[Area, ...]:
        """The areas that read what this area reads and are not linked to it.

        A tensor may have ten thousand readers: of each ``NEAREST`` on either side of the area's first operator are seen.
        """
        linked = {area.number, *self._reach.producers(area.number), *self._reach.users(area.number)}
        found = {number for value in area.reads for number in self._readers_around(value, area)}
        return tuple(self._areas[number] for number in sorted(found - linked))

    def _readers_around(self, value: Value, area: Area) -> Iterator[int]:
        readers = self._readers[value]
        start = bisect_right(readers, self._position[area.nodes[0]])
        for side in (range(start, len(readers)), range(start - 1, -1, -1)):
            others = (self._home[readers[index]] for index in side)
            yield from islice((number for number in others if number != area.number), NEAREST)

    def outputs(self, area: Area) -> tuple[Value, ...]:
        """The results of an area that other areas or the graph's outputs use, in order."""
        inside = frozenset(area.nodes)
        return tuple(value for node in area.nodes for value in node.outs if self._is_needed(value, inside))

    def _is_needed(self, value: Value, inside: Collection[Node]) -> bool:
        if value in self._outputs:
            return True
        several = len(value.node.types) > 1
        users = (user for user in self.graph.users[value.node] if user not in inside)
        return any(not several or value in user.args for user in users)

    def is_acyclic(self, areas: Collection[Area]) -> bool:
        """True when the areas can merge without closing a cycle."""
        return self._reach.is_acyclic([area.number for area in areas])

    def merge(self, areas: Collection[Area]) -> Area:
        """Makes the areas one; the caller has asked :meth:`is_acyclic`."""
        dominant = max(areas, key=lambda area: (area.kind, self._position[area.nodes[-1]]))
        numbers = {area.number for area in areas}
        stays = self._reach.representative(numbers)
        kind = max(area.kind for area in areas)
        if self._relink(numbers, stays) and kind is Kind.ELEMWISE:
            kind = Kind.BROADCAST
        nodes = tuple(sorted((node for area in areas for node in area.nodes), key=self._position.__getitem__))
        inside = frozenset(nodes)
        area = Area(
            number=self._reach.merge(numbers),
            nodes=nodes,
            kind=kind,
            elements=dominant.elements,
            spaces=frozenset().union(*(area.spaces for area in areas)),
            reads=frozenset(value for area in areas for value in area.reads if value.node not in inside),
            is_output=any(area.is_output for area in areas),
            mode=Mode.COMPOSITE if kind > Kind.RESHAPE else Mode.BASIC,
            neighbours=self,
        )
        self._settle(area, areas)
        return area

    def _settle(self, merged: Area, areas: Collection[Area]) -> None:
        """Puts the merged area in the place of its parts; links that neighbours know are forgotten."""
        for area in areas:
            del self._areas[area.number]
            if area.number != merged.number:
                for node in area.nodes:
                    self._home[self._position[node]] = merged.number
        self._areas[merged.number] = merged
        for number in (*(area.number for area in areas), *self._reach.neighbours(merged.number)):
            self._inputs.pop(number, None)
            self._users.pop(number, None)

    def _relink(self, numbers: Collection[int], stays: int) -> bool:
        """Links of the areas become links of the one that stays; True when one of them broadcasts to another."""
        broadcasts = False
        for old in sorted(numbers):
            if old == stays:
                continue
            for neighbour in self._reach.neighbours(old):
                for pair in ((neighbour, old), (old, neighbour)):
                    spread = self._spreads.pop(pair, None)
                    if spread is not None and neighbour in numbers:
                        broadcasts = broadcasts or bool(spread)
                    elif spread is not None:
                        new = (neighbour, stays) if pair[1] == old else (stays, neighbour)
                        self._spreads[new] = self._spreads.get(new, frozenset()) | spread
        return broadcasts


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
        arg for index, arg in enumerate(node.args) if arg.type.size != 1 and spread_of_operand(node, index) is None
    )


def _spreads(producer: Node, user: Node) -> frozenset[Space]:
    found = (spread_of_operand(user, index) for index, arg in enumerate(user.args) if arg.node is producer)
    return frozenset(space for space in found if space is not None)
