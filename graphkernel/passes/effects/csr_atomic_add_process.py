"""The pass csr_atomic_add_process: sums over segments and sparse rows are added into cleared results.

Before and after::

    kernel K(x, ids) { s = UnsortedSegmentSum(x, ids); return s }    return K(x, ids)
        ==>
    kernel K(x, ids, z) { s = UnsortedSegmentSum(x, ids); return s -> z }    z = Z(); return K(x, ids, z)

Which element of the result an operand is added to is only known when the kernel runs, so blocks meet in every element, and
rows that nobody adds to must hold zeros. Source: MindSpore's csr_atomic_add and uss_atomic_add. Only ``enable_pass`` brings
it in: kernels clear their results themselves.
"""

from __future__ import annotations

from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.effects.atomic_clean import with_cleared_sums
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.operators.csr import CSR_REDUCE_SUM
from kernelgen.tensor.operators.scatter import UNSORTED_SEGMENT_SUM

PASS_NAME = "csr_atomic_add_process"
SCATTERED_SUMS = frozenset({UNSORTED_SEGMENT_SUM, CSR_REDUCE_SUM})


@graph_pass
def csr_atomic_add_process(graph: Graph, context: Context) -> Graph:
    """Gives kernels that end in a scattered sum a cleared operand to add into."""
    return with_cleared_sums(graph, context, PASS_NAME, lambda _, body: _scattered_sums(body))


def _scattered_sums(body: Graph) -> tuple[int, ...] | str:
    sums = [node for node in body.operators if node.op in SCATTERED_SUMS]
    if any(body.users[node] for node in sums):
        return "operators inside read the sum"
    return tuple(index for index, value in enumerate(body.outputs) if value.node in sums) or ""
