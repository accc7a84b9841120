"""Operators that have no gradient, each with the reason. What has no floats among its operands or results is not here."""

from __future__ import annotations

from graphkernel.gradients.base import undefined
from graphkernel.ops.fused import fused_matmul, fused_quant
from graphkernel.ops.library import attention_cache, host
from kernelgen.tensor.operators import layout, matmul

INFERENCE = "it serves inference; compute attention with ops.matmul and ops.softmax where it is trained"
QUANTIZED = "it rounds to 8 bits; train before quantization"

RESHAPE_AND_CACHE = undefined(attention_cache.RESHAPE_AND_CACHE, INFERENCE)
PAGED_ATTENTION = undefined(attention_cache.PAGED_ATTENTION, INFERENCE)
DYNAMIC_QUANT = undefined(fused_quant.DYNAMIC_QUANT, QUANTIZED)
QUANT_BATCH_MATMUL = undefined(fused_quant.QUANT_BATCH_MATMUL, QUANTIZED)
QUANT_SPLIT_OUT2 = undefined(fused_matmul.QUANT_SPLIT_OUT2, QUANTIZED)
QUANT_SPLIT_OUT3 = undefined(fused_matmul.QUANT_SPLIT_OUT3, QUANTIZED)
QUANT_SPLIT_SILU_OUT2 = undefined(fused_matmul.QUANT_SPLIT_SILU_OUT2, QUANTIZED)
STORED_MATMUL = undefined(
    matmul.STORED_MATMUL, "its weights are stored in few bits; differentiate before weights are stored so"
)
ONNX = undefined(host.ONNX, "it is an operator of ONNX that is known by name only")
TRANS_DATA = undefined(
    layout.TRANS_DATA, "it stores a tensor in a device's layout; differentiate before layouts are chosen"
)
LAYOUT_TRANSFORM = undefined(layout.LAYOUT_TRANSFORM, TRANS_DATA.undefined)
