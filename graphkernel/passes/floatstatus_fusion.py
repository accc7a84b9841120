"""The pass floatstatus_fusion: the question whether all elements are finite becomes one operator.

Before and after::

    a = ReduceAll(IsFinite(x)); c = Cast(a, float32)
    r = Reshape(Sub(1.0, c), shape=(1,))                   ==>    s = FloatStatus(x)
    y = AddN(r, ...)                                              y = AddN(s, ...)

Mixed-precision training asks this of every gradient and adds up the answers.
"""

from __future__ import annotations

import numpy as np

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.ops.composite.activation import ADD_N
from graphkernel.passes.base import Context, graph_pass, map_bodies
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.elemwise import IS_FINITE, SUB
from kernelgen.tensor.operators.reduce import REDUCE_ALL
from kernelgen.tensor.operators.shape import RESHAPE
from kernelgen.tensor.operators.status import FLOAT_STATUS
from kernelgen.tensor.types import dtype

FLOAT32 = dtype("float32")


@graph_pass
def floatstatus_fusion(graph: Graph, context: Context) -> Graph:
    """1 - all(isfinite(x)) in float32, added up by AddN only, becomes FloatStatus(x).

    The Reshape may be missing, and x may be a Cast to float32 (which makes finite numbers of no others).
    """

    def fused(body: Graph) -> Graph:
        return with_status(body, context)

    return fused(map_bodies(graph, fused))


def with_status(graph: Graph, context: Context) -> Graph:
    """One graph without its bodies."""
    builder = Builder()

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        kept = keep(node, args)
        source = asked_of(kept) if _only_added_up(graph, node) else None
        if source is None:
            return kept.outs
        context.log.add(floatstatus_fusion.name, "idiom-recognised", node.name, message=FLOAT_STATUS.name)
        status = builder.emit(FLOAT_STATUS, source, name=node.name)
        shape = node.out.type.shape
        return (status if shape == status.type.shape else builder.emit(RESHAPE, status, shape=shape),)

    result = graph.rebuild(rewrite)
    return result if result is graph else with_unique_labels(result)


def asked_of(node: Node) -> Value | None:
    """x, when the node computes 1 - all(isfinite(x)) in float32 as one element; else None."""
    if node.op is RESHAPE:
        node = node.args[0].node
    if node.op is not SUB or node.out.type.dtype != FLOAT32 or node.out.type.size != 1 or not _is_one(node.args[0]):
        return None
    chain = _operands_along(node.args[1].node, (CAST, REDUCE_ALL, IS_FINITE))
    if chain is None:
        return None
    source, reduced = chain[-1], chain[1]
    if reduced.type.rank and not _reduces_all(chain[0].node):
        return None
    return source.node.args[0] if _is_exact_cast(source.node) else source


def _operands_along(node: Node, ops: tuple[Operator, ...]) -> list[Value] | None:
    """The only operand of each node of a chain of these operators; None when it is another chain."""
    found: list[Value] = []
    for op in ops:
        if node.op is not op:
            return None
        found.append(node.args[0])
        node = node.args[0].node
    return found


def _reduces_all(node: Node) -> bool:
    rank = node.args[0].type.rank
    axes = {axis % rank for axis in node.attrs.ints("axis", ())}
    return not axes or len(axes) == rank


def _is_one(value: Value) -> bool:
    return value.constant is not None and value.constant.size == 1 and bool(np.all(value.constant == 1))


def _is_exact_cast(node: Node) -> bool:
    """True for a Cast to float32 from no wider a float, which keeps finite numbers finite and others not."""
    if node.op is not CAST or node.out.type.dtype != FLOAT32:
        return False
    source = node.args[0].type.dtype
    return source.is_float and source.bits <= FLOAT32.bits


def _only_added_up(graph: Graph, node: Node) -> bool:
    users = graph.users[node]
    return node not in graph.output_nodes and bool(users) and all(user.op is ADD_N for user in users)
