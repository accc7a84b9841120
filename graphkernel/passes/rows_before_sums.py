"""The pass rows_before_sums: kernels whose rows are on their way to other ranks while the next are computed.

Before and after::

    p = Fused(x, w) { MatMul }                           p = Fused(x, w, by_rows=True) { MatMul }
    y, t = AllReduce(p)                      ==>         y, t = AllReduce(p)

Such a kernel is compiled for any number of rows; the sum is started with some of them and calls for the next. It is what
MatMulAllReduce is where a library multiplies: MindSpore's fusion of an AllReduce with what feeds it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from graphkernel.cluster.own_products import is_own
from graphkernel.cluster.rows import row_axes
from graphkernel.communication.chunks import chunks_of
from graphkernel.ops.library.communication import ALL_REDUCE, ranks_of
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.operators.type_rules import BY_ROWS


@graph_pass
def rows_before_sums(graph: Graph, context: Context) -> Graph:
    """Marks kernels with products whose rows are worth being sent as they are done, and are only summed over ranks."""
    sent = {node for node in graph.operators if node.body is not None and _is_sent_by_rows(node, graph)}

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        context.log.add(rows_before_sums.name, "by-rows", node.name, message="its rows are sent as they are done")
        return replace(node, args=args, attrs=node.attrs.with_(**{BY_ROWS: True})).outs

    return graph.rebuild(rewrite, sent)


def _is_sent_by_rows(kernel: Node, graph: Graph) -> bool:
    body, users = kernel.body, graph.users[kernel]
    if body is None or len(kernel.outs) != 1 or kernel.out in graph.outputs or BY_ROWS in kernel.attrs:
        return False
    is_summed = len(users) == 1 and users[0].op is ALL_REDUCE and ranks_of(users[0].attrs, 0) != 1
    if not (is_summed and any(map(is_own, body.operators)) and row_axes(body)):
        return False
    of = kernel.out.type
    return chunks_of(cast("tuple[int, ...]", of.shape), of.dtype.numpy.itemsize) > 1
