"""The pass quotients_behind_products: an attention divides its results, not its weights.

Before and after::

    e = Exp(s - ReduceMax(s));  l = ReduceSum(e)           e: f32[6, 1500, 1500], l: f32[6, 1500, 1]
    y = (e / l) @ v                                 ==>    y = (e @ v) / l                y: f32[6, 1500, 64]

A division takes as long as many multiplications, and a row has fewer results than weights. Each term of the sum is rounded
once less and the sum once more, so that the bound of the error is no greater. As ``l`` is
between 1 and the row's length nothing vanishes, and only values overflow that reach the greatest number when they are
multiplied by that length. Where all scores of a row are masked all of it is NaN; exporters put zeros there, which stay, since
``e`` is NaN wherever ``l`` is. Weights that somebody else reads stay as they are.
Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018).
"""

from __future__ import annotations

from typing import NamedTuple

from graphkernel import ops
from graphkernel.cluster.attention import attention_products
from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.ops import Tensor
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.precision.softmax_of_rows import is_softmax_of_rows
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.operators.elemwise import IS_NAN
from kernelgen.tensor.operators.select import SELECT


class _Weights(NamedTuple):
    """Of an attention: ``quotient`` is ``powers / total``; NaN becomes ``instead`` where that is given."""

    powers: Value
    total: Value
    instead: Value | None = None


@graph_pass
def quotients_behind_products(graph: Graph, context: Context) -> Graph:
    """Moves the division of a softmax behind the product of an attention that alone reads it."""
    attentions = attention_products(graph)
    if not attentions:
        return graph

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        if not _is_read_alone(graph, node.args[0]):
            return keep(node, args).outs
        found = _weights(args[0])
        if found is None or node.attrs.bool("transpose_a", False):
            return keep(node, args).outs
        context.log.add(quotients_behind_products.name, "behind-product", node.name, message=f"by {found.total.type}")
        return (_divided(node, found, args[1]),)

    made = graph.rebuild(rewrite, attentions)
    return made if made is graph else with_unique_labels(made)


def _is_read_alone(graph: Graph, weights: Value) -> bool:
    """Whether the product alone reads its weights, and a guard alone what they are made of."""
    made = [weights, weights.node.args[2]] if weights.op is SELECT else [weights]
    readers = [len(graph.users[value.node]) for value in made]
    return readers == list(range(1, len(made) + 1)) and not any(value in graph.outputs for value in made)


def _weights(given: Value) -> _Weights | None:
    """What a value is made of that may be a softmax of rows, or one with a guard of rows that are masked."""
    if given.op is SELECT:
        condition, instead, quotient = given.node.args
        is_guard = condition.op is IS_NAN and condition.node.args[0] == quotient and instead.type.size == 1
        found = _weights(quotient) if is_guard else None
        return None if found is None or found.instead is not None else found._replace(instead=instead)
    return _Weights(*given.node.args) if is_softmax_of_rows(given) else None


def _divided(product: Node, weights: _Weights, values: Value) -> Value:
    """The product of what was divided, divided."""
    builder = Builder(origin=product.name)
    powers, total = Tensor(weights.powers, builder), Tensor(weights.total, builder)
    if weights.instead is not None:
        is_masked = ops.is_nan(total)
        powers = ops.select(is_masked, Tensor(weights.instead, builder), powers)
        total = ops.select(is_masked, 1.0, total)
    made = builder.node(product.op, (powers.value, values), product.attrs).out
    return (Tensor(made, builder) / total).value
