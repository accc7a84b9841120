"""The pass reorder_ops: operators that do not care about the data type run on the narrower one.

Before and after::

    a = Cast(x, float32); y = Transpose(a)        ==>    t = Transpose(x); y = Cast(t, float32)         x: f16
    t = Transpose(x); y = Cast(t, float16)        ==>    a = Cast(x, float16); y = Transpose(a)         x: f32

Such operators give an element of an operand, or its negation, and rounding keeps order and sign, so the results are the
same bits; half the bytes are moved.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.ops.composite.activation import RELU
from graphkernel.passes.base import Context, graph_pass, map_bodies
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.elemwise import MAXIMUM, MINIMUM, NEG
from kernelgen.tensor.operators.layout import TRANS_DATA
from kernelgen.tensor.operators.select import SELECT
from kernelgen.tensor.operators.shape import EXPAND_DIMS, RESHAPE, SQUEEZE, TILE, TRANSPOSE
from kernelgen.tensor.types import Attrs, DType

INSENSITIVE: Mapping[Operator, tuple[int, ...]] = {
    **dict.fromkeys((TRANS_DATA, TRANSPOSE, EXPAND_DIMS, RESHAPE, SQUEEZE, TILE, NEG, RELU), (0,)),
    **dict.fromkeys((MAXIMUM, MINIMUM), (0, 1)),
    SELECT: (1, 2),
}
"""The operators and the positions of their data operands."""


@graph_pass
def reorder_ops(graph: Graph, context: Context) -> Graph:
    """Casts to a wider float move behind such operators and casts to a narrower one before them, to a fixpoint.

    A Cast moves only when the value between the two has one user, so that nothing is computed twice. A constant that
    the narrow type holds exactly counts as cast from it.
    """

    def reordered(body: Graph) -> Graph:
        return to_fixpoint(body, context)

    return reordered(map_bodies(graph, reordered))


def to_fixpoint(graph: Graph, context: Context) -> Graph:
    """One graph without its bodies."""
    while any(node.op is CAST for node in graph.operators):
        result = widened_later(narrowed_earlier(graph, context), context)
        if result is graph:
            break
        graph = result
    return graph


def narrowed_earlier(graph: Graph, context: Context) -> Graph:
    """Operators whose results are only rounded to a narrower float compute in that one."""
    targets = _targets(graph)
    if not targets:
        return graph

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        if _narrows(node) and node.args[0].node in targets:
            return (args[0],)  # its operand is narrow by now
        target = targets.get(node)
        if target is None:
            return keep(node, args).outs
        context.log.add(reorder_ops.name, "cast-moved", node.name, message=f"{target.name} before {node.op.name}")
        builder = Builder(origin=node.name)
        narrow = [_cast(arg, target, builder) if i in _data(node) else arg for i, arg in enumerate(args)]
        return builder.node(node.op, narrow, node.attrs, node.name).outs

    return with_unique_labels(graph.rebuild(rewrite))


def _targets(graph: Graph) -> Mapping[Node, DType]:
    """The narrow type of each operator whose only user is a Cast to it, or such an operator again."""
    targets: dict[Node, DType] = {}
    for node in reversed(graph.operators):
        user = _only_user(graph, node)
        if user is None or node.op not in INSENSITIVE:
            continue
        if _narrows(user):
            targets[node] = user.out.type.dtype
        elif user in targets and all(i in _data(user) for i, arg in enumerate(user.args) if arg.node is node):
            targets[node] = targets[user]
    return targets


def widened_later(graph: Graph, context: Context) -> Graph:
    """Operators on values cast from one narrower float compute in that one and cast their results."""

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        source = _common_source(graph, node, args)
        if source is None:
            return keep(node, args).outs
        context.log.add(reorder_ops.name, "cast-moved", node.name, message=f"{source.name} through {node.op.name}")
        builder = Builder(origin=node.name)
        narrow = [_cast(arg, source, builder) if i in _data(node) else arg for i, arg in enumerate(args)]
        result = builder.node(node.op, narrow, node.attrs, node.name).out
        return (builder.node(CAST, (result,), Attrs.of(dst_type=node.out.type.dtype.name)).out,)

    result = graph.rebuild(rewrite, frozenset([node for node in graph.operators if node.op in INSENSITIVE]))
    return result if result is graph else with_unique_labels(result)


def _common_source(graph: Graph, node: Node, args: tuple[Value, ...]) -> DType | None:
    """The narrow type that all data operands of a node come from, if moving their casts duplicates nothing."""
    data = [(node.args[i].node, args[i]) for i in _data(node)]
    sources = {
        arg.node.args[0].type.dtype for before, arg in data if _widens(arg.node) and _only_user(graph, before) is node
    }
    if len(sources) != 1:
        return None
    (source,) = sources
    for before, arg in data:
        if arg.constant is not None:
            if not _holds(source, arg.constant):
                return None
        elif not _widens(arg.node) or _only_user(graph, before) is not node:
            return None
    return source


def _holds(narrow: DType, array: np.ndarray) -> bool:
    """True when every element is a value of the narrow type."""
    with np.errstate(all="ignore"):
        there_and_back = array.astype(narrow.numpy).astype(array.dtype)
    return bool(np.array_equal(there_and_back, array, equal_nan=True))


def _cast(value: Value, target: DType, builder: Builder) -> Value:
    """The value in another data type; a constant is converted, and a Cast from that type is undone."""
    if value.type.dtype == target:
        return value
    if value.constant is not None:
        with np.errstate(all="ignore"):
            return builder.constant(value.constant, target)
    if _widens(value.node) and value.node.args[0].type.dtype == target:
        return value.node.args[0]
    return builder.node(CAST, (value,), Attrs.of(dst_type=target.name)).out


def _data(node: Node) -> tuple[int, ...]:
    return INSENSITIVE[node.op]


def _only_user(graph: Graph, node: Node) -> Node | None:
    users = graph.users[node]
    return users[0] if len(users) == 1 and node not in graph.output_nodes else None


def _widens(node: Node) -> bool:
    """True for a Cast to a wider float, which loses nothing."""
    return node.op is CAST and _floats(node) and node.out.type.dtype.bits > node.args[0].type.dtype.bits


def _narrows(node: Node) -> bool:
    return node.op is CAST and _floats(node) and node.out.type.dtype.bits < node.args[0].type.dtype.bits


def _floats(node: Node) -> bool:
    return node.out.type.dtype.is_float and node.args[0].type.dtype.is_float
