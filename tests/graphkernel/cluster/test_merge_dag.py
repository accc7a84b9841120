import random

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkernel.cluster.merge_dag import Reach


def contracted(graph: nx.DiGraph, members: set[int], name: object) -> nx.DiGraph:
    merged = nx.DiGraph()
    merged.add_nodes_from(name if node in members else node for node in graph)
    for left, right in graph.edges:
        ends = (name if left in members else left, name if right in members else right)
        if ends[0] != ends[1]:
            merged.add_edge(*ends)
    return merged


@given(st.integers(0, 10**9), st.integers(2, 14))
@settings(max_examples=150, deadline=None)
def test_agrees_with_a_real_cycle_search(seed: int, count: int) -> None:
    chance = random.Random(seed)
    density = chance.choice([0.1, 0.3])
    edges = [(i, j) for i in range(count) for j in range(i + 1, count) if chance.random() < density]
    reach = Reach(count, edges)
    graph = nx.DiGraph(edges)
    graph.add_nodes_from(range(count))
    while len(reach.nodes) > 2:
        members = set(chance.sample(reach.nodes, chance.randint(2, 3)))
        expected = contracted(graph, members, "merged")
        acyclic = nx.is_directed_acyclic_graph(expected)
        assert reach.is_acyclic(members) == acyclic
        if not acyclic:
            break
        graph = nx.relabel_nodes(expected, {"merged": reach.merge(members)})
        order = {node: index for index, node in enumerate(reach.nodes)}
        assert set(order) == set(graph)
        assert all(order[left] < order[right] for left, right in graph.edges)
        for node in graph:
            assert set(reach.users(node)) == set(graph.successors(node))
            assert set(reach.producers(node)) == set(graph.predecessors(node))


def test_a_path_through_an_outsider_closes_a_cycle() -> None:
    reach = Reach(3, [(0, 1), (1, 2), (0, 2)])
    assert not reach.is_acyclic((0, 2))
    assert reach.is_acyclic((0, 1))
    assert reach.is_acyclic((0, 1, 2))


def test_edges_must_follow_the_order() -> None:
    with pytest.raises(ValueError, match="against the topological order"):
        Reach(2, [(1, 0)])
