"""The pass rows_behind_sums: kernels that compute rows of a sum over ranks while other rows are still on their way.

Before and after::

    y, t = MatMulAllReduce(x, w)                         the rows of y are sent in chunks
    z = Fused(y, b) { Add; ReLU }            ==>         z = Fused(y, b, by_rows=True) { Add; ReLU }

Such a kernel is compiled for any number of rows and called for each chunk as it comes, where otherwise it waits for all of
them. It is MindSpore's fusion of an AllReduce with what follows it, for processors whose communication is not ours.
"""

from __future__ import annotations

from dataclasses import replace

from graphkernel.ops.fused.fused_matmul import MATMUL_ALL_REDUCE
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import Graph, Node, Value, keep
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.type_rules import BY_ROWS
from kernelgen.tensor.types import TensorType


@graph_pass
def rows_behind_sums(graph: Graph, context: Context) -> Graph:
    """Marks element-wise kernels, and those that reduce rows alone, behind products that are summed over ranks."""

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        kept = keep(node, args)
        if node.body is None or BY_ROWS in node.attrs or not is_by_rows(node.body, args):
            return kept.outs
        context.log.add(rows_behind_sums.name, "by-rows", node.name, message="its rows are computed as they come")
        return replace(kept, attrs=node.attrs.with_(**{BY_ROWS: True})).outs

    return graph.rebuild(rewrite)


def is_by_rows(body: Graph, args: tuple[Value, ...]) -> bool:
    """Whether a kernel on these operands may be computed row by row, behind the sum that one of them is."""
    sums = [arg.type for arg in args if arg.node.op is MATMUL_ALL_REDUCE and arg.index == 0]
    if len(sums) != 1 or sums[0].rank != 2 or not isinstance(sums[0].shape[0], int) or body.aliases:
        return False
    rows = sums[0].shape[0]
    known = [value.type for value in (*body.inputs, *(out for node in body.operators for out in node.outs))]
    whole = all(value.type.rank == 2 and value.type.shape[0] == rows for value in body.outputs)
    return rows > 1 and whole and all(_fits(of, rows) for of in known) and all(map(_keeps_rows, body.operators))


def _fits(of: TensorType, rows: int) -> bool:
    """Whether its first axis is that of rows, or it has none."""
    return not of.symbols and (of.rank < 2 or (of.rank == 2 and of.shape[0] in (1, rows)))


def _keeps_rows(node: Node) -> bool:
    """Whether a row of the results is made of that row of the operands."""
    if node.op.kind is Kind.ELEMWISE:
        return True
    is_along_rows = node.op.kind is Kind.REDUCE and len(node.types) == len(node.args) == 1
    return is_along_rows and node.out.type.shape == (node.args[0].type.shape[0], 1)
