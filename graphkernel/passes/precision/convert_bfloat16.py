"""The pass convert_bfloat16: kernels without bfloat16 arithmetic store bfloat16 and compute float32.

Before and after, inside kernels::

    a = Exp(x); y = Mul(a, a); return y
        ==>
    w = Cast(x, float32); a = Exp(w); m = Mul(a, a); y = Cast(m, bfloat16); return y             x: bf16

The value between the two operators is not rounded, so results are at least as exact as before.
"""

from __future__ import annotations

from graphkernel.ops.library.grouped_products import GROUPED_MATMUL
from graphkernel.passes.base import Context, graph_pass, map_bodies
from graphkernel.passes.precision.recast import Role, computed_in
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.effects import ASSIGN
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.operators.pieces import SLICE, STRIDED_SLICE
from kernelgen.tensor.operators.shape import RESHAPE
from kernelgen.tensor.types import dtype

KEEPERS = frozenset({ASSIGN, MATMUL, BATCH_MATMUL, GROUPED_MATMUL, SLICE, STRIDED_SLICE, CAST})
MOVERS = frozenset({RESHAPE})


@graph_pass
def convert_bfloat16(graph: Graph, context: Context) -> Graph:
    """bfloat16 stays in what products, slices, Assign and Cast take and give; all else in kernels computes float32.

    A Reshape takes what its operand has. Constants are converted.
    """

    def converted(body: Graph) -> Graph:
        result = computed_in(body, dtype("bfloat16"), dtype("float32"), role_of)
        if result is not body:
            context.log.add(convert_bfloat16.name, "precision-raised", body.name)
        return result

    return map_bodies(graph, converted)


def role_of(node: Node) -> Role:
    """Which type an operator of a kernel sees."""
    if node.op in KEEPERS or node.body is not None:
        return Role.KEEPS
    return Role.FOLLOWS if node.op in MOVERS else Role.COMPUTES
