"""Bodies are cut where growth joins nothing, so that equal layers grow once and what grows is the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fusion_nets import PATTERNS, context, layer_norm, softmax

from graphkernel import ops
from graphkernel.cluster.grow_areas import grow
from graphkernel.cluster.sections import Sections, has_sections, likeness
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor
from graphkernel.passes.cluster import graph_kernel_cluster
from graphkernel.passes.split import enabled_patterns, graph_kernel_splitter, limits_of
from graphkernel.patterns.fusion_horizontal import elemwise_sibling
from kernelgen.tensor.graph import Graph, Node, Value, keep
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.operators.type_rules import OWN_KERNEL

CONTEXT = context()
GROWTH = enabled_patterns(PATTERNS, CONTEXT.options), limits_of(CONTEXT.options)
WIDTH = spec((8, 16))
MATRIX = spec((16, 16))


def with_own_products(graph: Graph) -> Graph:
    """The graph whose products are kernels of ours."""

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        kept = keep(node, args)
        is_product = node.op in (MATMUL, BATCH_MATMUL)
        return replace(kept, attrs=node.attrs.with_(**{OWN_KERNEL: True})).outs if is_product else kept.outs

    return graph.rebuild(rewrite)


def names(sections: list[tuple[Node, ...]]) -> list[list[str]]:
    return [[node.op.name for node in section] for section in sections]


def grown(graph: Graph) -> tuple[list[tuple[Node, ...]], set[frozenset[Node]]]:
    """The sections, and the areas that grow in them."""
    sections = Sections(graph)
    while True:
        found = sections.found()
        areas = [area.nodes for section in found for area in grow(graph, *GROWTH, section).areas]
        if not sections.join_siblings(areas):
            return found, set(map(frozenset, areas))


def perceptron(x: Tensor, w: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    for _ in range(6):
        x = layer_norm(ops.matmul(ops.tanh(ops.matmul(x, w)), w) + x, gamma, beta)
    return x


def attention(x: Tensor, w: Tensor, mask: Tensor) -> Tensor:
    """Layers with heads, whose mask all read, and whose product follows a reshape."""
    shared = ops.mul(mask, -1e4)
    for _ in range(3):
        query, key, value = (ops.transpose(ops.reshape(ops.matmul(x, w), (8, 4, 4)), (1, 0, 2)) for _ in range(3))
        scores = ops.batch_matmul(query, key, transpose_b=True)
        rows = ops.batch_matmul(softmax(scores + shared), value)
        x = x + ops.matmul(ops.reshape(ops.transpose(rows, (1, 0, 2)), (8, 16)), w)
    return x


def gates(x: Tensor, w: Tensor) -> Tensor:
    """Two products of one operand whose results meet."""
    for _ in range(4):
        x = ops.sigmoid(ops.matmul(x, w)) * ops.matmul(ops.tanh(x), w) + x
    return x


def pooled(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    """Results on the way, and sums of what products read."""
    first = ops.tanh(ops.matmul(x, w))
    return ops.neg(first), ops.reduce_sum(first, axis=1), ops.reduce_max(ops.matmul(first, w) + x, axis=1)


NETS = {
    "perceptron": trace(perceptron, WIDTH, MATRIX, spec((16,)), spec((16,))),
    "attention": trace(attention, WIDTH, MATRIX, spec((8, 8))),
    "gates": trace(gates, WIDTH, MATRIX),
    "pooled": trace(pooled, WIDTH, MATRIX),
}


@pytest.mark.parametrize("name", NETS)
def test_sections_grow_what_the_whole_grows(name: str) -> None:
    graph = with_own_products(NETS[name])
    found, areas = grown(graph)
    assert len(found) > 1
    assert areas == {frozenset(area.nodes) for area in grow(graph, *GROWTH).areas}


@pytest.mark.parametrize("name", NETS)
def test_each_operator_is_in_one_section_behind_what_it_needs(name: str) -> None:
    graph = with_own_products(NETS[name])
    found = Sections(graph).found()
    home = {node: number for number, section in enumerate(found) for node in section}
    assert sum(map(len, found)) == len(home) == len(graph.operators)
    assert all(home.get(arg.node, 0) <= home[node] for node in graph.operators for arg in node.args)


def test_equal_layers_are_alike() -> None:
    graph = with_own_products(NETS["perceptron"])
    assert len(Sections(graph).found()) == 12
    assert len({likeness(graph, section) for section in Sections(graph).found()}) == 2


def test_likeness_sees_operands_that_are_one_and_results_that_leave() -> None:
    def net(x, y):
        return ops.add(x, y), ops.add(y, x), ops.add(x, x), ops.neg(ops.add(x, x))

    graph = trace(net, WIDTH, WIDTH)
    added = [likeness(graph, (node,)) for node in graph.operators if node.op.name == "Add"]
    assert added[0] == added[1] != added[2] == added[3]
    both = tuple(node for node in graph.operators if node.op.name == "Neg" or node is graph.operators[-2])
    assert likeness(graph, both[:1]) != likeness(graph, both)


def test_a_reshape_stays_with_the_product_that_it_may_join() -> None:
    def net(x, w, v):
        return ops.matmul(ops.reshape(ops.exp(ops.matmul(ops.tanh(x), w)), (16, 8)), v)

    graph = with_own_products(trace(net, WIDTH, MATRIX, spec((8, 8))))
    assert names(Sections(graph).found()) == [["Tanh"], ["MatMul", "Exp", "Reshape", "MatMul"]]


def test_a_body_without_such_products_is_not_looked_at() -> None:
    assert not has_sections(NETS["perceptron"])
    assert has_sections(with_own_products(NETS["perceptron"]))


def test_siblings_join_across_sections() -> None:
    """Both functions of ``x`` read it once in one kernel, though products of ours lead to either."""

    def net(x, y, w):
        left, right = ops.matmul(y, w), ops.matmul(ops.tanh(y), w)
        return ops.reduce_sum(left, axis=1, keep_dims=True) * 2.0, ops.exp(x), ops.neg(x), right

    graph = with_own_products(trace(net, WIDTH, WIDTH, MATRIX))
    _, areas = grown(graph)
    assert {"Exp", "Neg"} in [{node.op.name for node in area} for area in areas]
    assert elemwise_sibling in GROWTH[0]


def test_sections_that_need_each_other_are_one() -> None:
    """The product lies between ``Tanh`` and the last sum, which both lead to or follow ``Exp`` by pointwise operators alone."""

    def net(x, y, w):
        shared, read = ops.exp(x), ops.tanh(y)
        return shared + read, ops.matmul(read, w) + shared

    graph = with_own_products(trace(net, WIDTH, WIDTH, MATRIX))
    found, areas = grown(graph)
    assert len(found) == 1
    assert areas == {frozenset(area.nodes) for area in grow(graph, *GROWTH).areas}


def test_the_log_names_what_stays_apart_in_sections_and_between_them() -> None:
    graph = with_own_products(NETS["perceptron"])
    graph_kernel_splitter(graph_kernel_cluster(graph, CONTEXT), CONTEXT)
    apart = CONTEXT.log.with_code("not-fused")
    assert {decision.code for decision in apart} == {"not-fused-pattern", "not-fused-cycle"}
    labels = {node.name for node in graph.operators}
    assert {decision.subject for decision in apart} | {decision.other for decision in apart} <= labels
