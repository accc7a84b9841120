"""The pass decrease_compute_precision: kernels compute float32 values in float16. Only with enable_low_precision.

Before and after, inside kernels::

    a = Exp(x); y = Mul(a, a); return y
        ==>
    n = Cast(x, float16); a = Exp(n); m = Mul(a, a); y = Cast(m, float32); return y              x: f32

Results keep 11 bits, and numbers beyond 65504 become infinite. Reductions, products, comparisons, Cast and what is
written in place stay as they are: there an error would not stay small.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphkernel.passes.base import Context, graph_pass, map_bodies
from graphkernel.passes.precision.recast import Role, computed_in
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.shape import BROADCAST_TO, EXPAND_DIMS, RESHAPE, SQUEEZE, TILE, TRANSPOSE
from kernelgen.tensor.types import dtype

MOVERS = frozenset({RESHAPE, TRANSPOSE, BROADCAST_TO, TILE, EXPAND_DIMS, SQUEEZE})


@graph_pass
def decrease_compute_precision(graph: Graph, context: Context) -> Graph:
    """Element-wise float32 arithmetic in kernels becomes float16; nothing without the flag enable_low_precision."""
    if not context.options.enable_low_precision:
        return graph

    kept = {value.node.body.name for value in _written_in_place(graph) if value.node.body is not None}

    def decreased(body: Graph) -> Graph:
        result = (
            body
            if body.name in kept or body.aliases
            else computed_in(body, dtype("float32"), dtype("float16"), role_of)
        )
        if result is not body:
            context.log.add(decrease_compute_precision.name, "precision-lowered", body.name)
        return result

    return map_bodies(graph, decreased)


def _written_in_place(graph: Graph) -> Iterable[Value]:
    """The results that outlive the step, such as updated weights: their small changes must not be rounded away."""
    return [graph.outputs[alias.output] for alias in graph.aliases]


def role_of(node: Node) -> Role:
    """Which type an operator of a kernel sees."""
    if node.op in MOVERS:
        return Role.FOLLOWS
    arithmetic = node.op.kind is Kind.ELEMWISE and node.op is not CAST and node.out.type.dtype.is_float
    return Role.COMPUTES if arithmetic else Role.KEEPS
