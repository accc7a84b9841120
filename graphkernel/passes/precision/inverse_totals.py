"""The pass inverse_totals: a softmax multiplies by the inverse of its total.

Before and after, inside kernels::

    y = RealDiv(e, l)    ==>    y = Mul(e, Reciprocal(l))        e: f32[12288, 512], l: f32[12288, 1]

A processor multiplies ten vectors while it divides one. As ``l`` lies between 1 and the row's length its inverse is a normal
number, which is rounded once: results are within one and a half units in the last place of the quotient, and NaN where that is.
"""

from __future__ import annotations

from graphkernel import ops
from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.ops import Tensor
from graphkernel.passes.base import Context, graph_pass, map_bodies
from graphkernel.passes.precision.softmax_of_rows import is_softmax_of_rows
from kernelgen.tensor.dtypes import FLOAT32, FLOAT64
from kernelgen.tensor.graph import Builder, Graph, Node, Value
from kernelgen.tensor.operators.elemwise import REAL_DIV

WIDE = frozenset({FLOAT32, FLOAT64})


@graph_pass
def inverse_totals(graph: Graph, context: Context) -> Graph:
    """Multiplies by what a softmax of rows divides by."""
    return map_bodies(graph, lambda body: _multiplied(body, context))


def _multiplied(graph: Graph, context: Context) -> Graph:
    """One graph without its bodies."""
    divisions = (node for node in graph.operators if node.op is REAL_DIV and node.out.type.dtype in WIDE)
    quotients = frozenset(node for node in divisions if is_softmax_of_rows(node.out))

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        builder = Builder(origin=node.name)
        powers, total = (Tensor(value, builder) for value in args)
        context.log.add(inverse_totals.name, "total-inverted", node.name, message=f"by {total.value.type}")
        return ((powers * ops.reciprocal(total)).value,)

    made = graph.rebuild(rewrite, quotients)
    return made if made is graph else with_unique_labels(made)
