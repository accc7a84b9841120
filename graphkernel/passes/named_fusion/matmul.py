"""The passes matmul_elemwise_fusion and MatMulAllReduce: what follows a matrix product joins it.

Before and after::

    y = BiasAdd(MatMul(x, w), b)         ==>    y = FusedMatmulElemBinary(x, w, b, elemwise="bias_add")
    y = ReLU(MatMul(x, w))               ==>    y = FusedMatmulElemUnary(x, w, elemwise="relu")
    y, t = AllReduce(MatMul(x, w))       ==>    y, t = MatMulAllReduce(x, w)
"""

from __future__ import annotations

from graphkernel.expanders.base import Declined
from graphkernel.ops.composite.activation import GELU_TANH, RELU
from graphkernel.ops.composite.normalize import BIAS_ADD
from graphkernel.ops.fused.fused_matmul import FUSED_MATMUL_ELEM_BINARY, FUSED_MATMUL_ELEM_UNARY, MATMUL_ALL_REDUCE
from graphkernel.ops.library.communication import ALL_REDUCE, ranks_of
from graphkernel.passes.named_fusion.apply_fusion import Fusion, Site, named_fusion, product
from graphkernel.passes.named_fusion.queries import both_orders, first_failure, is_half, made_by
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.elemwise import ADD
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL

UNARY = {RELU: "relu", GELU_TANH: "gelu"}


@named_fusion("matmul_elemwise_fusion")
def matmul_elemwise_fusion(site: Site) -> Fusion | Declined | None:
    """BiasAdd, Add of a bias, ReLU or GeLU of a MatMul in half precision as FusedMatmulElemBinary or -Unary."""
    root = site.root
    if root.op in UNARY:
        matmul = made_by(root.args[0], MATMUL)
        return _activated(root, matmul) if matmul else None
    if root.op is BIAS_ADD:
        matmul = made_by(root.args[0], MATMUL)
        return _biased(root, matmul, root.args[1]) if matmul else None
    if root.op is not ADD:
        return None
    sums = ((made_by(summand, MATMUL), bias) for summand, bias in both_orders(root))
    return next((_biased(root, matmul, bias) for matmul, bias in sums if matmul), None)


def _activated(root: Node, matmul: Node) -> Fusion | Declined:
    if not is_half(matmul.out):
        return Declined(f"the product is {matmul.out.type.dtype}, expected float16 or bfloat16")
    build = product(FUSED_MATMUL_ELEM_UNARY, elemwise=UNARY[root.op], **matmul.attrs)
    return Fusion((matmul, root), matmul.args, root.outs, build)


def _biased(root: Node, matmul: Node, bias: Value) -> Fusion | Declined:
    columns = matmul.out.type.shape[-1]
    declined = first_failure(
        (
            (bias.type.dtype.name == "float16", f"the bias is {bias.type.dtype}, expected float16"),
            (bias.type.shape == (columns,), f"the bias is {bias.type}, expected a vector of {columns}"),
        )
    )
    build = product(FUSED_MATMUL_ELEM_BINARY, elemwise="bias_add", **matmul.attrs)
    return declined or Fusion((matmul, root), (*matmul.args, bias), root.outs, build)


@named_fusion("MatMulAllReduce")
def matmul_all_reduce(site: Site) -> Fusion | Declined | None:
    """AllReduce of a matrix product as MatMulAllReduce, which sends parts of the product while others are computed."""
    found = _reduced_product(site)
    if found is None:
        return None
    x = found.operands[0]
    declined = first_failure(((is_half(x), f"x is {x.type.dtype}, expected float16 or bfloat16"),))
    return declined or _whole(site, found)


@named_fusion("host_matmul_all_reduce")
def host_matmul_all_reduce(site: Site) -> Fusion | Declined | None:
    """AllReduce of a matrix product as MatMulAllReduce where a library multiplies: all data types, several processes."""
    found = _reduced_product(site)
    if found is None:
        return None
    declined = first_failure(((ranks_of(site.root.attrs, 0) != 1, "one process has nobody to wait for"),))
    return declined or _whole(site, found)


def _reduced_product(site: Site) -> Fusion | None:
    """The product and its reduction, whatever the product is of."""
    reduce = site.root
    matmul = made_by(reduce.args[0], MATMUL, BATCH_MATMUL) if reduce.op is ALL_REDUCE else None
    if matmul is None:
        return None
    build = product(MATMUL_ALL_REDUCE, **matmul.attrs, **reduce.attrs)
    return Fusion((matmul, reduce), (*matmul.args, *reduce.args[1:]), reduce.outs, build)


def _whole(site: Site, found: Fusion) -> Fusion | Declined:
    """The fusion, if the sum is of whole rows."""
    (matmul, reduce), (x, weight, *_) = found.nodes, found.operands
    declined = first_failure(
        (
            (reduce.attrs.str("op", "sum") == "sum", "the AllReduce is not a sum"),
            (not matmul.attrs.bool("transpose_a", False), "x is transposed"),
            (x.type.rank in (2, 3) and weight.type.rank == 2, f"x is {x.type} and weight {weight.type}"),
        )
    )
    return declined or found
