"""The pass own_products: which products of a CPU's network are kernels of ours.

Before and after::

    y = MatMul(x, w)    ==>    y = MatMul(x, w, own_kernel=True)          w: f32[768, 3072], a constant

The weights of such a product are packed once, when the network is compiled, and what follows it joins its kernel. A library
reads weights as they lie or packs them anew, and gives its results to memory before the next kernel reads them.
"""

from __future__ import annotations

from dataclasses import replace

from graphkernel.cluster.attention import attention_products
from graphkernel.cluster.own_products import PRODUCTS
from graphkernel.options import Options
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import Graph, Node, Value, keep
from kernelgen.tensor.operators.type_rules import OWN_KERNEL
from kernelgen.tensor.types import dtype

FLOAT = dtype("float32")
LEAST_WEIGHTS = 1024
"""Elements below which a product lies in the first cache however its weights are laid out, and packing gains nothing."""


@graph_pass
def own_products(graph: Graph, context: Context) -> Graph:
    """Marks float32 products with constant weights and those of attentions, unless flags keep their operator out of kernels."""
    attentions = attention_products(graph)

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        kept = keep(node, args)
        if (
            not (is_with_constant(node) or node in attentions)
            or OWN_KERNEL in node.attrs
            or _is_barred(node, context.options)
        ):
            return kept.outs
        context.log.add(own_products.name, "own-product", node.name, message=_figures(node))
        return replace(kept, attrs=node.attrs.with_(**{OWN_KERNEL: True})).outs

    return graph.rebuild(rewrite)


def is_with_constant(node: Node) -> bool:
    """Whether it is a float32 product whose right operand is a constant matrix that is worth packing."""
    if node.op not in PRODUCTS or len(node.args) != 2 or node.out.type.dtype != FLOAT:
        return False
    weights = node.args[1]
    known = weights.constant
    return known is not None and known.ndim == 2 and min(known.shape) > 1 and known.size >= LEAST_WEIGHTS


def _is_barred(node: Node, options: Options) -> bool:
    name, only = node.op.name, options.enable_cluster_ops_only
    return name in options.disable_cluster_ops or bool(only and name not in only)


def _figures(node: Node) -> str:
    rows, columns = node.out.type.shape[-2:]
    if node.args[1].constant is None:
        return f"{rows} rows, {columns} columns; the products of an attention share a kernel with what is between them"
    return f"{rows} rows, {columns} columns; {node.args[1].type.size * FLOAT.itemsize} bytes of weights are packed once"
