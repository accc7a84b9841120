"""Attention in a graph: a product, functions of its whole rows, and a product of those rows, all of them of run-time values.

    scores = BatchMatMul(query, key);  weights = softmax(scores * c + mask);  BatchMatMul(weights, value)

Exporters spell scales, masks, guards of masked rows and the softmax in many ways. None of them matters here: what lies between
the two products is pointwise or reduces rows, so that a kernel may hold a block of rows of all of it.
"""

from __future__ import annotations

from graphkernel.cluster.own_products import PRODUCTS
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.type_rules import axes_of
from kernelgen.tensor.types import dtype

FLOAT = dtype("float32")

MOST_BETWEEN = 64
"""Operators between the two products, with those of masks."""


def attention_products(graph: Graph) -> frozenset[Node]:
    """Both products of each attention in float32."""
    found: set[Node] = set()
    for node in graph.operators:
        scores = scores_of(node) if is_of_inputs(node) else None
        if scores is not None:
            found |= {scores, node}
    return frozenset(found)


def is_of_inputs(node: Node) -> bool:
    """Whether it is a float32 product of two values that calls decide, both in batches.

    Weights, which a kernel's body has as operands like others, are matrices.
    """
    if node.op not in PRODUCTS or len(node.args) != 2 or node.out.type.dtype != FLOAT:
        return False
    return all(not arg.is_known and arg.type.rank > 2 for arg in node.args)


def scores_of(values: Node) -> Node | None:
    """The product whose rows become the left operand of another one over a softmax; None where there is none, or several."""
    between: dict[Node, None] = {}
    waiting, products = [values.args[0].node], dict[Node, None]()
    while waiting and len(between) <= MOST_BETWEEN:
        node = waiting.pop()
        if is_of_inputs(node):
            products[node] = None
        elif _stays_in_rows(node) and node not in between:
            between[node] = None
            waiting += [arg.node for arg in node.args]
    reduces = any(node.op.kind is Kind.REDUCE for node in between)
    if len(products) != 1 or not reduces or len(between) > MOST_BETWEEN:
        return None
    (scores,) = products
    same = (
        scores.out.type.size == values.args[0].type.size and scores.out.type.shape[-1] == values.args[0].type.shape[-1]
    )
    return scores if same else None


def _stays_in_rows(node: Node) -> bool:
    """Pointwise, or a reduction of whole rows."""
    if node.op.kind is not Kind.REDUCE:
        return bool(node.args) and node.op.kind <= Kind.BROADCAST
    rank = node.args[0].type.rank
    return axes_of(node.attrs.ints("axis", ()), rank) == (rank - 1,)
