"""Maximal clusters: connected sets of clusterable operators that can become one kernel without closing a cycle.

Every edge between two clusterable operators is contracted unless another path joins its ends; what remains is maximal,
no further edge can be contracted. Source: the union-find clusters of MindSpore's graph kernel cluster, whose search for
circles walks the whole graph and, in its aggressive form, can miss one.
"""

from __future__ import annotations

from collections.abc import Callable

from graphkernel.cluster.reach import Reach
from graphkernel.ir.graph import Graph, Node


def edges(nodes: tuple[Node, ...]) -> list[tuple[int, int]]:
    """The data dependences between nodes, as positions ``(producer, user)``."""
    position = {node: index for index, node in enumerate(nodes)}
    return [(position[arg.node], user) for user, node in enumerate(nodes) for arg in node.args if arg.node in position]


def clusters(graph: Graph, clusterable: Callable[[Node], bool]) -> tuple[tuple[Node, ...], ...]:
    """The clusters, single operators included, each in topological order, ordered by their first operator."""
    nodes = graph.operators
    suits = [clusterable(node) for node in nodes]
    reach = Reach(len(nodes), edges(nodes))
    members = {number: [number] for number in range(len(nodes))}
    owner = list(range(len(nodes)))

    def contract(producer: int, user: int) -> None:
        merged = reach.merge((producer, user))
        absorbed = members.pop(user if merged == producer else producer)
        members[merged] += absorbed
        for number in absorbed:
            owner[number] = merged

    changed = True
    while changed:  # contracting one edge may clear the way for another
        changed = False
        for number in range(len(nodes)):
            for producer in reversed(reach.producers(owner[number]) if suits[number] else ()):
                if suits[producer] and reach.is_acyclic((producer, owner[number])):
                    contract(producer, owner[number])
                    changed = True
    groups = sorted(sorted(group) for number, group in members.items() if suits[number])
    return tuple(tuple(nodes[number] for number in group) for group in groups)
