"""The areas of one cluster, how they are linked, and merging. The one mutable value of fusion; it never leaves it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from weakref import proxy

from graphkernel.cluster.area import Area, FusionPattern, Link, Mode
from graphkernel.cluster.iteration_space import SPREADING, Space, reduction_space, spread
from graphkernel.cluster.maximal_clusters import edges
from graphkernel.cluster.merge_dag import Reach
from graphkernel.cluster.own_products import is_own
from graphkernel.ops.library.communication import ALL_REDUCE
from graphkernel.ops.library.grouped_products import GROUPED_MATMUL
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.effects import ASSIGN
from kernelgen.tensor.operators.layout import TRANS_DATA
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.operators.shape import RESHAPE

BASIC_OPERATORS = frozenset({ALL_REDUCE, ASSIGN, BATCH_MATMUL, GROUPED_MATMUL, MATMUL, RESHAPE, TRANS_DATA})
"""Operators that are no kernels by themselves: views, names of buffers, and what libraries do better."""
Spreads = Sequence[Space | None]
"""For each operand of an operator the space over which it is broadcast."""

NOWHERE: frozenset[Space] = frozenset()
"""The spaces of most operators, and over which most values are broadcast: one object, as Python makes one each time."""

NEAREST = 16
"""How many of the readers of one tensor an area sees as siblings."""


class Partition:
    """At the start every operator is an area of its own; :meth:`merge` makes fewer.

    ``section`` are the operators that it is about, in their order, all of the graph's by default; others are outside.
    """

    def __init__(self, graph: Graph, section: tuple[Node, ...] | None = None) -> None:
        self.graph = graph
        self._weakly: Partition = proxy(self)  # areas that held it would wait, with all of the graph, for the collector
        nodes = graph.operators if section is None else section
        dependences = edges(nodes)
        self._reach = Reach(len(nodes), dependences)
        self._outputs = frozenset(graph.outputs)
        self._position = {node: number for number, node in enumerate(nodes)}
        self._home = list(range(len(nodes)))
        spreads = list(map(_spreads_of, nodes))
        self._areas = {number: self._single(number, node, spreads[number]) for number, node in enumerate(nodes)}
        self._order: tuple[Area, ...] | None = None
        self._ops = frozenset([node.op for node in nodes])
        self._kinds: frozenset[Kind] | None = None
        self._spreads = {
            (producer, user): _between(nodes[producer], nodes[user], spreads[user]) for producer, user in dependences
        }
        self._readers: dict[Value, list[int]] = {}
        for area in self._areas.values():
            for value in area.reads:
                self._readers.setdefault(value, []).append(area.number)
        self._inputs: dict[int, tuple[Link, ...]] = {}
        self._users: dict[int, tuple[Link, ...]] = {}

    @property
    def areas(self) -> tuple[Area, ...]:
        """The living areas, producers before users."""
        if self._order is None:
            self._order = tuple(self._areas[number] for number in self._reach.nodes)
        return self._order

    def holds(self, pattern: FusionPattern) -> bool:
        """Whether there are operators that the areas hold which a ``pattern`` grows."""
        return pattern.ops is None or not self._ops.isdisjoint(pattern.ops)

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of the living areas."""
        if self._kinds is None:
            self._kinds = frozenset([area.kind for area in self._areas.values()])
        return self._kinds

    @property
    def is_one(self) -> bool:
        """Whether there is nothing left to merge."""
        return len(self._areas) < 2

    def home(self, node: Node) -> int | None:
        """The number of the area that holds a node; None for what is no operator."""
        position = self._position.get(node)
        return None if position is None else self._home[position]

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

    def _is_outside(self, node: Node) -> bool:
        return node not in self._position

    def _is_needed(self, value: Value, inside: set[Node]) -> bool:
        """Whether a value is a result, or an operator that is not inside uses it."""
        if value in self._outputs:
            return True
        users = self.graph.users[value.node]
        if inside.issuperset(users):
            return False
        return len(value.node.types) == 1 or any([value in user.args for user in users if user not in inside])

    def is_acyclic(self, areas: Collection[Area]) -> bool:
        """True when the areas can merge without closing a cycle."""
        return self._reach.is_acyclic([area.number for area in areas])

    def merge(self, areas: Collection[Area]) -> Area:
        """Makes the areas one; the caller has asked :meth:`is_acyclic`."""
        dominant = max(areas, key=lambda area: (area.kind, self._position[area.nodes[-1]]))
        numbers = {area.number for area in areas}
        stays = self._reach.representative(numbers)
        kind = dominant.kind
        if self._relink(numbers, stays) and kind is Kind.ELEMWISE:
            kind = Kind.BROADCAST
        nodes = sorted([node for area in areas for node in area.nodes], key=self._position.__getitem__)
        inside = set(nodes)
        operands = frozenset().union(*[area.operands for area in areas])
        reads = frozenset().union(*[area.reads for area in areas])
        results = [value for area in areas for value in area.outputs if self._is_needed(value, inside)]
        area = Area(
            number=self._reach.merge(numbers),
            nodes=tuple(nodes),
            ops=frozenset().union(*[area.ops for area in areas]),
            kind=kind,
            elements=dominant.elements,
            spaces=_union([area.spaces for area in areas]),
            operands=frozenset([value for value in operands if value.node not in inside]),
            reads=frozenset([value for value in reads if value.node not in inside]),
            outputs=tuple(sorted(results, key=lambda value: (self._position[value.node], value.index))),
            is_output=any([area.is_output for area in areas]),
            mode=Mode.COMPOSITE if kind > Kind.RESHAPE else Mode.BASIC,
            neighbours=self._weakly,
        )
        self._settle(area, areas)
        return area

    def _settle(self, merged: Area, areas: Collection[Area]) -> None:
        """Puts the merged area in the place of its parts; links that neighbours know are forgotten."""
        self._order = self._kinds = None
        for area in areas:
            del self._areas[area.number]
            if area.number != merged.number:
                for node in area.nodes:
                    self._home[self._position[node]] = merged.number
        self._areas[merged.number] = merged
        touched = [*[area.number for area in areas], *self._reach.neighbours(merged.number)]
        for links in (self._inputs, self._users):
            for number in touched:
                if number in links:
                    del links[number]

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
                        self._spreads[new] = _union([self._spreads.get(new, NOWHERE), spread])
        return broadcasts

    def _single(self, number: int, node: Node, spreads: Spreads) -> Area:
        tensors = [(arg, space) for arg, space in zip(node.args, spreads, strict=True) if arg.type.size != 1]
        return Area(
            number=number,
            nodes=(node,),
            ops=frozenset((node.op,)),
            kind=_kind(node, tensors),
            elements=node.types[0].size,
            spaces=frozenset((reduction_space(node),)) if node.op.kind is Kind.REDUCE else NOWHERE,
            operands=frozenset(node.args),
            reads=frozenset([arg for arg, space in tensors if space is None]),
            outputs=tuple([value for value in node.outs if self._is_needed(value, {node})]),
            is_output=node in self.graph.output_nodes or any(map(self._is_outside, self.graph.users[node])),
            mode=Mode.BASIC if node.op in BASIC_OPERATORS and not is_own(node) else Mode.COMPOSITE,
            neighbours=self._weakly,
        )


def _spreads_of(node: Node) -> Spreads:
    """The spaces over which a node broadcasts its operands, None for each that it reads as it is."""
    if node.op.kind not in SPREADING:
        return (None,) * len(node.args)
    return tuple([spread(arg.type, node.types[0]) for arg in node.args])


def _kind(node: Node, tensors: Sequence[tuple[Value, Space | None]]) -> Kind:
    """The operator's kind; an element-wise operator that broadcasts a tensor is a broadcast, a scalar does not count."""
    if node.op.kind is not Kind.ELEMWISE:
        return node.op.kind
    return Kind.ELEMWISE if all([space is None for _, space in tensors]) else Kind.BROADCAST


def _between(producer: Node, user: Node, spreads: Spreads) -> frozenset[Space]:
    """The spaces over which a user broadcasts what a producer makes."""
    found = zip(user.args, spreads, strict=True)
    spaces = [space for arg, space in found if space is not None and arg.node is producer]
    return frozenset(spaces) if spaces else NOWHERE


def _union(parts: Sequence[frozenset[Space]]) -> frozenset[Space]:
    return NOWHERE.union(*parts) if any(parts) else NOWHERE
