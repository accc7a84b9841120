"""The passes inference_qbmm_add_fusion and inference_qbmm_allreduce_add_fusion: a bias is added before scaling, as int32.

Before and after::

    p = QuantBatchMatmul(x, w, scale); y = Add(p, bias)    ==>    y = QuantBatchMatmul(x, w, scale, Constant(bias / scale))

In between may stand an AllReduce, which stays behind the product. MindSpore converts whatever bias there is. Here bias and
scale must be constants, the quotient must fit int32, and with exact_precision_mode it must give back the very bias.
"""

from __future__ import annotations

import numpy as np

from graphkernel import ops
from graphkernel.expanders.base import Declined
from graphkernel.ops import Tensor
from graphkernel.ops.fused.fused_quant import QUANT_BATCH_MATMUL, optional_operands
from graphkernel.ops.library.communication import ALL_REDUCE
from graphkernel.passes.named_fusion.apply_fusion import Fusion, Product, Site, named_fusion
from graphkernel.passes.named_fusion.queries import array_of, both_orders, first_failure, made_by
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.elemwise import ADD

INT32 = np.iinfo(np.int32)


@named_fusion("inference_qbmm_add_fusion")
def inference_qbmm_add_fusion(site: Site) -> Fusion | Declined | None:
    """Add(QuantBatchMatmul(x, w, scale), bias) as QuantBatchMatmul with an int32 bias."""
    if site.root.op is not ADD:
        return None
    for product, bias in both_orders(site.root):
        matmul = made_by(product, QUANT_BATCH_MATMUL)
        if matmul is not None:
            whole = _whole_bias(matmul, bias, 1, site)
            return whole if isinstance(whole, Declined) else _with_bias(site, matmul, whole, None)
    return None


@named_fusion("inference_qbmm_allreduce_add_fusion")
def inference_qbmm_allreduce_add_fusion(site: Site) -> Fusion | Declined | None:
    """Add(AllReduce(QuantBatchMatmul(x, w, scale)), bias) as AllReduce of a product that has the bias inside.

    Every device adds its share, bias / rank_size, so that the sum has it once.
    """
    if site.root.op is not ADD:
        return None
    for summed, bias in both_orders(site.root):
        reduce = made_by(summed, ALL_REDUCE)
        matmul = made_by(reduce.args[0], QUANT_BATCH_MATMUL) if reduce else None
        if reduce is None or matmul is None:
            continue
        declined = first_failure(
            (
                (reduce.attrs.str("op", "sum") == "sum", "the AllReduce is not a sum"),
                (reduce.attrs.int("rank_size", 1) > 0, "the AllReduce does not say over how many devices"),
                (matmul.out.type.dtype.name == "float16", f"the product is {matmul.out.type.dtype}, expected float16"),
            )
        )
        whole = declined or _whole_bias(matmul, bias, reduce.attrs.int("rank_size", 1), site)
        return whole if isinstance(whole, Declined) else _with_bias(site, matmul, whole, reduce)
    return None


def _whole_bias(matmul: Node, bias: Value, devices: int, site: Site) -> np.ndarray | Declined:
    """Each device's share of bias / scale as int32, or why it has none."""
    scale, added = array_of(matmul.args[2]), array_of(bias)
    columns = matmul.out.type.shape[-1]
    declined = first_failure(
        (
            (not optional_operands(matmul.attrs), "the product has a bias or per-token scales already"),
            (bias.type.shape == (columns,), f"the bias is {bias.type}, expected a vector of {columns}"),
            (scale is not None and added is not None, "bias or scale are not constants"),
        )
    )
    if declined or scale is None or added is None:
        return declined or Declined("bias or scale are not constants")
    with np.errstate(all="ignore"):
        whole = np.rint(added / (scale * devices))
        restored = (whole * scale * devices).astype(bias.type.dtype.numpy)
    if not ((whole >= INT32.min) & (whole <= INT32.max)).all():
        return Declined("bias / scale does not fit int32")
    if site.options.exact_precision_mode and not (restored == bias.constant).all():
        return Declined("bias / scale is not whole; exact_precision_mode=false lets it be rounded")
    return whole.astype(np.int32)


def _with_bias(site: Site, matmul: Node, whole: np.ndarray, reduce: Node | None) -> Fusion:
    build = _biased(matmul, whole, reduce)
    if reduce is None:
        return Fusion((matmul, site.root), matmul.args, site.root.outs, build)
    nodes = (matmul, reduce, site.root)
    return Fusion(nodes, (*matmul.args, *reduce.args[1:]), (*site.root.outs, *reduce.outs[1:]), build)


def _biased(matmul: Node, whole: np.ndarray, reduce: Node | None) -> Product:
    def build(*operands: Tensor) -> tuple[Tensor, ...]:
        taken, token = operands[: len(matmul.args)], operands[len(matmul.args) :]
        bias = Tensor(operands[0].builder.constant(whole), operands[0].builder)
        attrs = {**matmul.attrs, "optional": ("bias",)}
        result = ops.apply(QUANT_BATCH_MATMUL, *taken, bias, **attrs)
        return (result,) if reduce is None else ops.apply_all(ALL_REDUCE, result, *token, **reduce.attrs)

    return build
