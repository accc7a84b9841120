"""The pass own_products: which products of a CPU's network are kernels of ours.

Before and after::

    y = MatMul(x, w)    ==>    y = MatMul(x, w, own_kernel=True)          w: f32[768, 3072], a constant

The weights of such a product are packed once, when the network is compiled, and what follows it joins its kernel. A library
reads weights as they lie or packs them anew, and gives its results to memory before the next kernel reads them. Weights that
are trained, and gradients, are packed by either at every call. A product that a library computes faster all the same stays
there, as :mod:`graphkernel.cluster.product_cost` models it::

    y = MatMul(x, w)    ==>    y = ReduceSum(Mul(x, w'))                 w: f32[768, 1]

A single column is a sum of products for each row, which is a reduction like others: it takes what the rows take to be read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from graphkernel.cluster.attention import attention_products
from graphkernel.cluster.own_products import PRODUCTS
from graphkernel.cluster.product_cost import cost_of, cost_of_both
from graphkernel.ops.library.communication import ALL_REDUCE
from graphkernel.options import Options
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.dims import product, static_extents
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.operators.elemwise import MUL
from kernelgen.tensor.operators.reduce import REDUCE_SUM
from kernelgen.tensor.operators.shape import RESHAPE
from kernelgen.tensor.operators.type_rules import OWN_KERNEL
from kernelgen.tensor.types import dtype

FLOAT = dtype("float32")
FLOATS = frozenset({FLOAT, dtype("float16"), dtype("bfloat16")})
LEAST_WEIGHTS = 1024
"""Elements below which a product of bytes lies in the first cache however its weights are laid out."""


@graph_pass
def own_products(graph: Graph, context: Context) -> Graph:
    """Marks float32 products of matrices and those of attentions, unless flags keep their operator out of kernels."""
    attentions = attention_products(graph)
    products = frozenset([node for node in graph.operators if _is_undecided(node, context.options)])

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        kept = keep(node, args)
        if _is_column(node):
            context.log.add(own_products.name, "own-product", node.name, message="a column is a sum for each row")
            return (_sums(node, args),)
        decision = _of_attention(node) if node in attentions else None if _is_sent(node, graph) else _by_cost(node)
        if decision is None:
            return kept.outs
        context.log.add(own_products.name, decision.reason, node.name, message=decision.figures)
        return replace(kept, attrs=node.attrs.with_(**{OWN_KERNEL: True})).outs if decision.is_own else kept.outs

    return graph.rebuild(rewrite, products)


def _is_undecided(node: Node, options: Options) -> bool:
    """Whether it is a product of which nobody has said before that it is a kernel, or that it is none."""
    return node.op in PRODUCTS and OWN_KERNEL not in node.attrs and not is_barred(node, options)


def _is_column(node: Node) -> bool:
    """Whether it is a float32 product of rows with one column."""
    if node.op not in PRODUCTS or len(node.args) != 2 or node.out.type.dtype != FLOAT:
        return False
    return node.args[1].type.rank == 2 and node.out.type.shape[-1] == 1 and not node.attrs.bool("transpose_a", False)


def _sums(node: Node, args: tuple[Value, ...]) -> Value:
    """The sums of products of each row with the column."""
    builder, (rows, column) = Builder(origin=node.name), args
    line = builder.emit(RESHAPE, column, shape=rows.type.shape[-1:])
    products = builder.emit(MUL, rows, line, name=f"{node.name}_products")
    return builder.emit(REDUCE_SUM, products, name=node.name, axis=(rows.type.rank - 1,), keep_dims=True)


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


def _is_sent(node: Node, graph: Graph) -> bool:
    """Whether ranks add up what matrices of calls give: a library computes it in rows, which are sent as they are done."""
    return _is_of_calls(node) and any(user.op is ALL_REDUCE for user in graph.users[node])


def _by_cost(node: Node) -> _Decision | None:
    """Of a product; None where no kernel is worth a thought."""
    if is_with_constant(node):
        rows, cost = product(node.out.type.shape[:-1]), cost_of
    elif _is_of_calls(node):
        rows, cost = node.out.type.shape[-2], cost_of_both
    else:
        return None
    weights = node.args[1].type
    dims = tuple(dim for dim in weights.shape[-2:] if isinstance(dim, int))
    terms, columns = reversed(dims) if node.attrs.bool("transpose_b", False) else dims
    found = cost(rows, terms, columns)
    if found is None:
        return None
    size = weights.size * FLOAT.itemsize
    return _Decision(found.is_own, f"{rows} rows, {columns} columns, {size} bytes of weights; {found}")


def _is_of_calls(node: Node) -> bool:
    """Whether it is a float32 product of matrices of known extents that calls decide."""
    if node.op not in PRODUCTS or len(node.args) != 2 or node.out.type.dtype != FLOAT:
        return False
    return all(not arg.is_known and all(isinstance(dim, int) for dim in arg.type.shape) for arg in node.args)


def is_with_constant(node: Node) -> bool:
    """Whether it is a float32 product whose right operand is a constant matrix of several columns."""
    if node.op not in PRODUCTS or len(node.args) != 2 or node.out.type.dtype not in FLOATS:
        return False
    weights = node.args[1]
    extents = static_extents(weights.type.shape)
    if not weights.is_known or extents is None:
        return False
    return len(extents) == 2 and min(extents) > 1


def is_barred(node: Node, options: Options) -> bool:
    """Whether flags keep an operator out of kernels."""
    name, only = node.op.name, options.enable_cluster_ops_only
    return name in options.disable_cluster_ops or bool(only and name not in only)
