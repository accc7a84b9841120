"""The pass own_products: which products of a CPU's network are kernels of ours.

Before and after::

    y = MatMul(x, w)    ==>    y = MatMul(x, w, own_kernel=True)          w: f32[768, 3072], a constant

The weights of such a product are packed once, when the network is compiled, and what follows it joins its kernel. A library
reads weights as they lie or packs them anew, and gives its results to memory before the next kernel reads them. A product
that a library computes faster all the same stays there, as :mod:`graphkernel.cluster.product_cost` models it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from graphkernel.cluster.attention import attention_products
from graphkernel.cluster.own_products import PRODUCTS
from graphkernel.cluster.product_cost import cost_of
from graphkernel.options import Options
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.dims import product
from kernelgen.tensor.graph import Graph, Node, Value, keep
from kernelgen.tensor.operators.type_rules import OWN_KERNEL
from kernelgen.tensor.types import dtype

FLOAT = dtype("float32")
FLOATS = frozenset({FLOAT, dtype("float16"), dtype("bfloat16")})
LEAST_WEIGHTS = 1024
"""Elements below which a product lies in the first cache however its weights are laid out, and packing gains nothing."""


@graph_pass
def own_products(graph: Graph, context: Context) -> Graph:
    """Marks float32 products with constant weights and those of attentions, unless flags keep their operator out of kernels."""
    attentions = attention_products(graph)

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        kept = keep(node, args)
        if OWN_KERNEL in node.attrs or is_barred(node, context.options):
            return kept.outs
        decision = _of_attention(node) if node in attentions else _by_cost(node) if is_with_constant(node) else None
        if decision is None:
            return kept.outs
        context.log.add(own_products.name, decision.reason, node.name, message=decision.figures)
        return replace(kept, attrs=node.attrs.with_(**{OWN_KERNEL: True})).outs if decision.is_own else kept.outs

    return graph.rebuild(rewrite)


@dataclass(frozen=True)
class _Decision:
    """Whether a product is a kernel of ours, and the figures that say why."""

    is_own: bool
    figures: str

    @property
    def reason(self) -> str:
        return "own-product" if self.is_own else "not-own-product"


def _of_attention(node: Node) -> _Decision:
    rows, columns = node.out.type.shape[-2:]
    shared = "the products of an attention share a kernel with what is between them"
    return _Decision(is_own=True, figures=f"{rows} rows, {columns} columns; {shared}")


def _by_cost(node: Node) -> _Decision:
    """Of a product with constant weights."""
    rows, weights = product(node.out.type.shape[:-1]), node.args[1].type
    dims = tuple(dim for dim in weights.shape if isinstance(dim, int))
    terms, columns = reversed(dims) if node.attrs.bool("transpose_b", False) else dims
    cost = cost_of(rows, terms, columns)
    size = weights.size * FLOAT.itemsize
    return _Decision(cost.is_own, f"{rows} rows, {columns} columns, {size} bytes of weights; {cost}")


def is_with_constant(node: Node) -> bool:
    """Whether it is a float32 product whose right operand is a constant matrix that is worth packing."""
    if node.op not in PRODUCTS or len(node.args) != 2 or node.out.type.dtype not in FLOATS:
        return False
    weights = node.args[1]
    known = weights.constant
    return known is not None and known.ndim == 2 and min(known.shape) > 1 and known.size >= LEAST_WEIGHTS


def is_barred(node: Node, options: Options) -> bool:
    """Whether flags keep an operator out of kernels."""
    name, only = node.op.name, options.enable_cluster_ops_only
    return name in options.disable_cluster_ops or bool(only and name not in only)
