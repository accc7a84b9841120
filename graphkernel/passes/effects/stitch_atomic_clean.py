"""The pass stitch_atomic_clean: sums that leave a stitched kernel are added into cleared results.

Before and after::

    kernel K(x, d) { r = ReduceSum(x, axis=1); y = Mul(x, r); s = ReduceSum(y, axis=0); return y, s }
        ==>
    kernel K(x, d, z) { r = ReduceSum(x, axis=1); y = Mul(x, r); s = ReduceSum(y, axis=0); return y, s -> z }

A kernel is stitched when its later phases read a reduction of an earlier one, through shared memory: each block keeps whole
rows. A sum over the rows then meets the sums of other blocks (the gradients of scale and shift beside a layer norm's), and
atomic_clean leaves such kernels alone because they have several sums. Source: MindSpore's stitch_atomic_clean_inserter,
which goes by an attribute that its splitter wrote; here the kernel itself shows it. Only ``enable_pass`` brings it in: see
:mod:`graphkernel.passes.effects.atomic_clean`.
"""

from __future__ import annotations

from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.effects.atomic_clean import why_not_spread, with_cleared_sums
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.reduce import REDUCE_SUM

PASS_NAME = "stitch_atomic_clean"


@graph_pass
def stitch_atomic_clean(graph: Graph, context: Context) -> Graph:
    """Gives stitched kernels a cleared operand for every sum that leaves them and is spread over blocks."""

    def chosen(node: Node, body: Graph) -> tuple[int, ...] | str:
        return _leaving_sums(body, context.options.target)

    return with_cleared_sums(graph, context, PASS_NAME, chosen)


def _leaving_sums(body: Graph, target: str) -> tuple[int, ...] | str:
    reductions = [node for node in body.operators if node.op.kind is Kind.REDUCE]
    if not any(body.users[node] for node in reductions):
        return ""
    sums = [
        index
        for index, value in enumerate(body.outputs)
        if value.node.op is REDUCE_SUM and not body.users[value.node] and value not in body.outputs[:index]
    ]
    refusals = {index: why_not_spread(body.outputs[index].node, target) for index in sums}
    found = tuple(index for index in sums if not refusals[index])
    return found or "; ".join(dict.fromkeys(refusals.values()))
