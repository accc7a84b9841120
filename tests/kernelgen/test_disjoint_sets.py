from __future__ import annotations

import random

import networkx as nx
import pytest

from kernelgen.disjoint_sets import DisjointSets


@pytest.mark.parametrize("seed", range(20))
def test_sets_are_the_components_of_the_graph_of_what_was_joined(seed: int) -> None:
    chance = random.Random(seed)
    pairs = [(chance.randrange(30), chance.randrange(30)) for _ in range(chance.randint(0, 40))]
    sets: DisjointSets[int] = DisjointSets()
    for kept, other in pairs:
        sets.join(kept, other)
    graph = nx.Graph(pairs)
    graph.add_nodes_from(range(30))
    assert {frozenset(part) for part in nx.connected_components(graph)} == {
        frozenset(member for member in range(30) if sets.of(member) == sets.of(one)) for one in range(30)
    }


def test_what_stood_for_the_first_set_stands_for_both() -> None:
    sets: DisjointSets[str] = DisjointSets()
    sets.join("a", "b")
    sets.join("c", "d")
    sets.join("d", "b")
    assert {sets.of(member) for member in "abcd"} == {"c"}
