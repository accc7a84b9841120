import random

import networkx as nx
import pytest

from graphkernel.passes.format.minimum_cut import Network


def both(edges: list[tuple[int, int, int]]) -> tuple[Network[int], nx.DiGraph]:
    """The same network, for us and for networkx; vertex 0 is the source, 1 the sink."""
    ours: Network[int] = Network()
    theirs = nx.DiGraph()
    theirs.add_nodes_from((0, 1))
    for tail, head, capacity in edges:
        ours.connect(tail, head, capacity)
        if tail != head:
            known = theirs.get_edge_data(tail, head, {"capacity": 0})["capacity"]
            theirs.add_edge(tail, head, capacity=known + capacity)
    return ours, theirs


@pytest.mark.parametrize("seed", range(40))
def test_cuts_are_as_small_as_those_of_networkx(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randint(3, 12)
    edges = [
        (chance.randrange(count), chance.randrange(count), chance.randint(0, 3)) for _ in range(chance.randint(2, 40))
    ]
    ours, theirs = both(edges)
    behind = ours.sink_side(0, 1)
    cut = sum(data["capacity"] for tail, head, data in theirs.edges(data=True) if tail not in behind and head in behind)
    assert 1 in behind
    assert 0 not in behind
    assert cut == nx.minimum_cut_value(theirs, 0, 1)


def test_of_several_minimum_cuts_the_one_nearest_to_the_sink_is_given() -> None:
    ours, _ = both([(0, 2, 1), (2, 3, 1), (3, 1, 1)])
    assert ours.sink_side(0, 1) == {1}


def test_edges_without_limit_cannot_be_cut() -> None:
    network: Network[int] = Network()
    network.connect(0, 2)
    network.connect(2, 1)
    with pytest.raises(ValueError, match="without limit"):
        network.sink_side(0, 1)
