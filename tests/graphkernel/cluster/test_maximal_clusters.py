import networkx as nx
import pytest
from fusion_nets import random_graph

from graphkernel import ops
from graphkernel.cluster.maximal_clusters import clusters
from graphkernel.frontends.trace import spec, trace
from kernelgen.tensor.graph import Graph, Node
from tests.support.growth import calls_of


def names(graph: Graph, excluded: str) -> list[list[str]]:
    return [[node.op.name for node in group] for group in clusters(graph, lambda node: node.op.name != excluded)]


def test_a_detour_over_a_host_operator_keeps_two_clusters() -> None:
    def net(x):
        a = ops.exp(x)
        return ops.add(a, ops.cum_sum(a, axis=0))

    assert names(trace(net, spec((4, 4))), "CumSum") == [["Exp"], ["Add"]]


def test_what_only_feeds_a_later_cluster_joins_it() -> None:
    def net(x, mask):
        shifted = ops.neg(mask)
        return ops.add(ops.cum_sum(ops.exp(x), axis=0), shifted)

    assert names(trace(net, spec((4, 4)), spec((4, 4))), "CumSum") == [["Exp"], ["Neg", "Add"]]


def test_clusters_that_read_one_tensor_join() -> None:
    def net(x, y):
        return ops.neg(x), ops.reduce_sum(x, axis=0), ops.exp(y)

    assert names(trace(net, spec((4, 4)), spec((4, 4))), "") == [["Neg", "ReduceSum"], ["Exp"]]


def test_readers_of_a_scalar_or_a_broadcast_operand_do_not() -> None:
    def net(x, y, row, scalar):
        return (x + row) * scalar, (y + row) * scalar

    graph = trace(net, spec((4, 4)), spec((4, 4)), spec((4,)), spec(()))
    assert names(graph, "") == [["Add", "Mul"], ["Add", "Mul"]]


def test_a_reader_behind_a_host_operator_stays_apart() -> None:
    def net(x):
        return ops.add(ops.cum_sum(ops.neg(x), axis=0), x)

    assert names(trace(net, spec((4, 4))), "CumSum") == [["Neg"], ["Add"]]


@pytest.mark.parametrize(
    ("excluded", "expected"), [("Sub", [["Add"], ["Add"]]), ("Mul", [["Sub", "Add", "Sub", "Add"]])]
)
def test_reference_chain(excluded: str, expected: list[list[str]]) -> None:
    """MindSpore's cluster test: a chain of Sub and Add with one operator disabled."""

    def net(x, y):
        return ops.add(ops.sub(ops.add(ops.sub(x, y), 1.0), x), y)

    assert names(trace(net, spec((4,)), spec((4,))), excluded) == expected


def quotient(graph: Graph, groups: tuple[tuple[Node, ...], ...]) -> nx.DiGraph:
    home: dict[Node, object] = {node: node for node in graph.operators}
    home.update((node, group) for group in groups for node in group)
    found = nx.DiGraph()
    for node in graph.operators:
        found.add_node(home[node])
        found.add_edges_from(
            (home[a.node], home[node]) for a in node.args if a.node in home and home[a.node] != home[node]
        )
    return found


@pytest.mark.parametrize("seed", range(12))
def test_clusters_are_acyclic_connected_and_maximal(seed: int) -> None:
    graph = random_graph(seed, 60, hosts=0.25)
    groups = clusters(graph, lambda node: node.op.name != "CumSum")
    found = quotient(graph, groups)
    assert nx.is_directed_acyclic_graph(found)
    assert sum(map(len, groups)) == sum(node.op.name != "CumSum" for node in graph.operators)
    for group in groups:
        inside = nx.Graph([(a.node, node) for node in group for a in node.args])
        assert nx.is_connected(inside), "by what they pass on or by what they read"
    for producer, user in found.edges:
        if isinstance(producer, tuple) and isinstance(user, tuple):
            without = found.copy()
            without.remove_edge(producer, user)
            assert nx.has_path(without, producer, user), "an edge that could be contracted is left"


def test_the_work_grows_with_the_graph() -> None:
    def work(count: int) -> int:
        graph = random_graph(3, count, hosts=0.1, reach=200)
        return calls_of(lambda: clusters(graph, lambda node: node.op.name != "CumSum"))

    assert work(8000) < 4 * work(2000) * 1.25
