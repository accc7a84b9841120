"""The pass rows_behind_sums: kernels that compute rows of a sum over ranks while other rows are still on their way.

Before and after::

    y, t = MatMulAllReduce(x, w)                         the rows of y come in chunks
    z = Fused(y, b) { Add; ReLU }            ==>         z = Fused(y, b, by_rows=True) { Add; ReLU }

Such a kernel is compiled for any number of rows and called for each chunk as it comes, where otherwise it waits for all of
them. It is MindSpore's fusion of an AllReduce with what follows it, for processors whose communication is not ours.
"""

from __future__ import annotations

from dataclasses import replace

from graphkernel.cluster.rows import row_axes
from graphkernel.ops.fused.fused_matmul import MATMUL_ALL_REDUCE
from graphkernel.ops.library.communication import ALL_REDUCE
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import Graph, Node, Value, keep
from kernelgen.tensor.operators.type_rules import BY_ROWS

SUMS = frozenset({MATMUL_ALL_REDUCE, ALL_REDUCE})
"""Over ranks."""


@graph_pass
def rows_behind_sums(graph: Graph, context: Context) -> Graph:
    """Marks kernels that compute each row by itself, behind sums over ranks whose rows come one after the other."""
    kernels = [node for node in graph.operators if node.body is not None]
    behind = frozenset([node for node in kernels if any(arg.op in SUMS for arg in node.args)])

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        kept = keep(node, args)
        if node.body is None or BY_ROWS in node.attrs or not is_behind_rows(node.body, args):
            return kept.outs
        context.log.add(rows_behind_sums.name, "by-rows", node.name, message="its rows are computed as they come")
        return replace(kept, attrs=node.attrs.with_(**{BY_ROWS: True})).outs

    return graph.rebuild(rewrite, behind)


def is_behind_rows(body: Graph, args: tuple[Value, ...]) -> bool:
    """Whether a kernel on these operands may be computed row by row, behind the one sum among them that comes so."""
    sums = [inside for inside, arg in zip(body.inputs, args, strict=True) if arg.index == 0 and comes_by_rows(arg.node)]
    return len(sums) == 1 and sums[0] in row_axes(body)


def comes_by_rows(node: Node) -> bool:
    """Whether it is a sum over ranks whose rows are sent as they are computed."""
    return node.op is MATMUL_ALL_REDUCE or (node.op is ALL_REDUCE and BY_ROWS in node.args[0].node.attrs)
