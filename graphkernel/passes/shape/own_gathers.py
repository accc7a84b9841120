"""The pass own_gathers: which gathers of a CPU's network are kernels of ours.

Before and after::

    y = Gather(table, i, axis=0)    ==>    y = Gather(table, Places(i, extent=30522), axis=0)
    y = Gather(x, 0, axis=1)        ==>    y = Reshape(StridedSlice(x, [:, 0:1]))        of known places, in a row
    y = Gather(x, [0 to N])         ==>    y = Reshape(x)                                counted from positions and extents

Rows of a table are read where they are needed, by the kernel that adds to them. What the indices mean is settled before: a
negative one counts from the end, and one that is out of range is an error.
"""

from __future__ import annotations

from graphkernel.cluster.own_pieces import is_own_gather
from graphkernel.ops.library.places import INDICES, PLACES, is_provable
from graphkernel.options import Options
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.shape.affine_values import counts_rows
from graphkernel.passes.shape.shape_values import numbers_of_shapes
from kernelgen.errors import TypeRuleError
from kernelgen.tensor.graph import Graph, Node, Value, keep
from kernelgen.tensor.operators.indexing import GATHER
from kernelgen.tensor.operators.pieces import STRIDED_SLICE
from kernelgen.tensor.operators.shape import RESHAPE
from kernelgen.tensor.types import Attrs, Dim


@graph_pass
def own_gathers(graph: Graph, context: Context) -> Graph:
    """Looks at the indices of gathers of rows, unless flags keep them out of kernels."""
    gathers = frozenset([node for node in graph.operators if node.op is GATHER])
    if _is_barred(context.options) or not gathers:
        return graph
    numbers = numbers_of_shapes(graph)
    places: dict[tuple[Value, Dim], Value] = {}

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        if node in numbers:
            return keep(node, args).outs
        data, indices = args
        if (piece := _piece(node, data)) is not None:
            context.log.add(own_gathers.name, "own-gather", node.name, message="places that are known: a slice")
            return (piece,)
        extent = data.type.shape[node.attrs.int("axis", 0)]
        is_fit = indices.type.dtype in INDICES and not data.type.dtype.is_opaque and is_provable(extent)
        if not is_fit or is_own_gather(node):
            return keep(node, args).outs
        key = indices, extent
        if key not in places:
            attrs = Attrs.of(extent=extent, reader=node.name)
            places[key] = Node(PLACES, (indices,), attrs, (indices.type,), f"{node.name}.places").out
        context.log.add(own_gathers.name, "own-gather", node.name, message=f"from an axis of {extent} elements")
        return keep(node, (data, places[key])).outs

    return graph.rebuild(rewrite, gathers)


def _is_barred(options: Options) -> bool:
    name, only = GATHER.name, options.enable_cluster_ops_only
    return name in options.disable_cluster_ops or bool(only and name not in only)


def _piece(node: Node, data: Value) -> Value | None:
    """The slice that a gather at known places is, each as far from the one before; None for every other.

    Places that count all rows of an axis in order cut nothing.
    """
    axis, known = node.attrs.int("axis", 0) % data.type.rank, node.args[1].constant
    if counts_rows(node.args[1], data.type.shape[axis]):
        return Node(RESHAPE, (data,), Attrs.of(shape=node.out.type.shape), node.types, node.name).out
    if known is None or known.size == 0:
        return None
    places = known.ravel().tolist()
    step = places[1] - places[0] if len(places) > 1 else 1
    if step < 1 or places != list(range(places[0], places[-1] + 1, step)):
        return None
    shape = data.type.shape
    begin, end, strides = [0] * len(shape), list(shape), [1] * len(shape)
    begin[axis] = places[0] if places[0] >= 0 else places[0] + shape[axis]
    end[axis], strides[axis] = begin[axis] + places[-1] - places[0] + 1, step
    attrs = Attrs.of(begin=tuple(begin), end=tuple(end), strides=tuple(strides))
    try:
        types = STRIDED_SLICE.infer((data.type,), attrs)
    except TypeRuleError:  # it may lie beyond the axis
        return None
    cut = Node(STRIDED_SLICE, (data,), attrs, types, f"{node.name}.piece")
    return Node(RESHAPE, (cut.out,), Attrs.of(shape=node.out.type.shape), node.types, node.name).out
