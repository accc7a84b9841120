"""The named fusions of MindSpore's graph kernel for Ascend.

Reading order: apply_fusion, queries, attention_scores, attention, layer_norm, matmul, matmul_split, quant, quant_bias,
rms_norm, rotary, shape_reshape, split_concat, swiglu, written_activation, written_norm, written_quant.

Each matches one idiom of transformer networks, checks all constants and shapes that the product takes for granted, and
says why where a condition fails. A product has an expander, so that it runs on every target
(:mod:`graphkernel.ops.fused.fused`).

``FUSION_GROUP`` is the order in the pipeline that MindSpore logs: longer patterns come before their parts. ``WRITTEN_OUT``
is ours.
"""

from __future__ import annotations

from graphkernel.passes.base import Pass
from graphkernel.passes.named_fusion.attention import flash_attention_fusion_v1, flash_attention_fusion_v2
from graphkernel.passes.named_fusion.layer_norm import (
    add_layer_norm_ext_fusion,
    add_layer_norm_fusion,
    add_layer_norm_v3_fusion,
)
from graphkernel.passes.named_fusion.matmul import matmul_all_reduce, matmul_elemwise_fusion
from graphkernel.passes.named_fusion.matmul_split import inference_matmul_split_fusion
from graphkernel.passes.named_fusion.quant import add_rms_norm_quant_fusion, rms_norm_quant_fusion
from graphkernel.passes.named_fusion.quant_bias import inference_qbmm_add_fusion, inference_qbmm_allreduce_add_fusion
from graphkernel.passes.named_fusion.rms_norm import add_cast_rms_norm_cast_fusion, add_rms_norm_fusion
from graphkernel.passes.named_fusion.rotary import rotary_position_embedding
from graphkernel.passes.named_fusion.shape_reshape import shape_reshape
from graphkernel.passes.named_fusion.split_concat import split_concat_fusion
from graphkernel.passes.named_fusion.swiglu import inference_swiglu_fusion
from graphkernel.passes.named_fusion.written_activation import written_silu
from graphkernel.passes.named_fusion.written_norm import written_layer_norm, written_rms_norm
from graphkernel.passes.named_fusion.written_quant import written_quant_product, written_quantize

WRITTEN_OUT: tuple[Pass, ...] = (
    written_layer_norm,
    written_rms_norm,
    written_silu,
    rotary_position_embedding,
    written_quantize,
    written_quant_product,
)

FUSION_GROUP: tuple[Pass, ...] = (
    flash_attention_fusion_v1,
    flash_attention_fusion_v2,
    add_layer_norm_fusion,
    add_layer_norm_v3_fusion,
    add_layer_norm_ext_fusion,
    inference_swiglu_fusion,
    inference_matmul_split_fusion,
    shape_reshape,
    add_rms_norm_quant_fusion,
    rms_norm_quant_fusion,
    add_rms_norm_fusion,
    add_cast_rms_norm_cast_fusion,
    matmul_all_reduce,
    split_concat_fusion,
    matmul_elemwise_fusion,
    inference_qbmm_add_fusion,
    inference_qbmm_allreduce_add_fusion,
)
