"""Maximal clusters: connected sets of clusterable operators that can become one kernel without closing a cycle.

First, in one walk: the *depth* of an operator is the largest number of other operators (those that no kernel may hold) on a
path to it. A path that leaves a set of operators of one depth over such an operator gets deeper and never comes back, so
connected operators of one depth are one cluster. Then every edge between two clusters is contracted unless another path
joins its ends, and so are clusters that read the same tensor element by element (the gradients of a bias and of its sum);
what remains is maximal, no further edge can be contracted. Source: the union-find clusters of MindSpore's
graph kernel cluster, whose search for circles walks the whole graph and, in its aggressive form, can miss one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from graphlib import TopologicalSorter
from itertools import pairwise

from graphkernel.cluster.iteration_space import spread_of_operand
from graphkernel.cluster.merge_dag import Reach
from kernelgen.disjoint_sets import DisjointSets
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.operator import Kind

Edges = Sequence[tuple[int, int]]


def edges(nodes: tuple[Node, ...]) -> list[tuple[int, int]]:
    """The data dependences between nodes, as positions ``(producer, user)``, ordered by user."""
    position = {node: index for index, node in enumerate(nodes)}
    return [(position[arg.node], user) for user, node in enumerate(nodes) for arg in node.args if arg.node in position]


def clusters(graph: Graph, clusterable: Callable[[Node], bool]) -> tuple[tuple[Node, ...], ...]:
    """The clusters, single operators included, each in topological order, ordered by their first operator."""
    nodes = graph.operators
    suits = [clusterable(node) for node in nodes]
    dependences = edges(nodes)
    start = _connected(suits, dependences)
    contraction = _Contraction(suits, start, [(start[producer], start[user]) for producer, user in dependences])
    contraction.along_edges()
    for readers in _readers(nodes, suits):
        contraction.of_readers([start[number] for number in readers])
    contraction.along_edges()
    groups: dict[int, list[Node]] = {}
    for number, node in enumerate(nodes):
        if suits[number]:
            groups.setdefault(contraction.home(start[number]), []).append(node)
    return tuple(map(tuple, groups.values()))


def _readers(nodes: Sequence[Node], suits: Sequence[bool]) -> Iterable[Sequence[int]]:
    """The clusterable operators that read a tensor from outside clusters element by element, for each such tensor."""
    inside = frozenset(node for node, suit in zip(nodes, suits, strict=True) if suit)
    table: dict[Value, list[int]] = {}
    for number, node in enumerate(nodes):
        if not suits[number] or node.op.kind not in (Kind.ELEMWISE, Kind.REDUCE):
            continue
        for index, arg in enumerate(node.args):
            if arg.node not in inside and arg.type.size != 1 and spread_of_operand(node, index) is None:
                table.setdefault(arg, []).append(number)
    return table.values()


def _connected(suits: Sequence[bool], dependences: Edges) -> list[int]:
    """For each operator the first of its set: connected by edges between clusterable operators of one depth."""
    depth = [0] * len(suits)
    for producer, user in dependences:
        depth[user] = max(depth[user], depth[producer] + (not suits[producer]))
    sets: DisjointSets[int] = DisjointSets()
    for producer, user in dependences:
        if suits[producer] and suits[user] and depth[producer] == depth[user]:
            sets.join(*sorted((sets.of(producer), sets.of(user))))
    return [sets.of(number) for number in range(len(suits))]


class _Contraction:
    """The sets of operators (called by their first), and which of them have become one."""

    def __init__(self, suits: Sequence[bool], sets: Sequence[int], dependences: Edges) -> None:
        pairs = dict.fromkeys((producer, user) for producer, user in dependences if producer != user)
        order = _in_order(dict.fromkeys(sets), pairs)
        self._suits = [suits[first] for first in order]
        self._position = {first: index for index, first in enumerate(order)}
        places = sorted((self._position[producer], self._position[user]) for producer, user in pairs)
        self._reach = Reach(len(order), places)
        self._owner = list(range(len(order)))
        self._members = {number: [number] for number in self._owner}

    def home(self, first: int) -> int:
        """What a set belongs to now."""
        return self._owner[self._position[first]]

    def along_edges(self) -> None:
        """Contracts edges between clusterable sets until none is left that closes no cycle."""
        changed = True
        while changed:  # contracting one edge may clear the way for another
            changed = False
            for number in (number for number, suits in enumerate(self._suits) if suits):
                for producer in reversed(self._reach.producers(self._owner[number])):
                    changed = (self._suits[producer] and self._merge(producer, self._owner[number])) or changed

    def of_readers(self, sets: Sequence[int]) -> None:
        """Contracts neighbours among the sets that read one tensor."""
        for left, right in pairwise(sets):
            if self.home(left) != self.home(right):
                self._merge(self.home(left), self.home(right))

    def _merge(self, left: int, right: int) -> bool:
        """Makes two one, unless that closes a cycle."""
        if not self._reach.is_acyclic((left, right)):
            return False
        merged = self._reach.merge((left, right))
        for moved in self._members.pop(right if merged == left else left):
            self._members[merged].append(moved)
            self._owner[moved] = merged
        return True


def _in_order(sets: dict[int, None], pairs: dict[tuple[int, int], None]) -> list[int]:
    """The sets, producers before users."""
    sorter: TopologicalSorter[int] = TopologicalSorter({first: () for first in sets})
    for producer, user in pairs:
        sorter.add(user, producer)
    return list(sorter.static_order())
