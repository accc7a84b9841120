"""The pass graph_kernel_seal: kernels get the boundary and the names that the kernel generator will see."""

from __future__ import annotations

from graphkernel.cluster.boundary import bind_operands
from graphkernel.cluster.naming import rename_kernels
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import Graph


@graph_pass
def graph_kernel_seal(graph: Graph, context: Context) -> Graph:
    """Tensor constants become operands, no operand is taken twice or in vain, names say what kernels hold now."""
    return rename_kernels(bind_operands(graph))
