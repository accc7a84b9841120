from __future__ import annotations

import random

import networkx as nx
import pytest

from kernelgen.disjoint_sets import DisjointSets, components


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


@pytest.mark.parametrize("seed", range(30))
def test_components_are_what_needs_each_other_each_behind_what_it_needs(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randint(1, 12)
    needed = {member: [other for other in range(count) if chance.random() < 0.15] for member in range(count)}
    found = components(needed)
    graph = nx.DiGraph([(member, other) for member, others in needed.items() for other in others])
    graph.add_nodes_from(needed)
    assert {frozenset(part) for part in found} == set(map(frozenset, nx.strongly_connected_components(graph)))
    place = {member: number for number, part in enumerate(found) for member in part}
    assert all(place[other] <= place[member] for member, others in needed.items() for other in others)


def test_a_long_chain_needs_no_recursion() -> None:
    needed = {number: [number - 1] if number else [] for number in range(20_000)}
    assert components(needed) == [[number] for number in range(20_000)]
