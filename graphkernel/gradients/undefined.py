"""Operators that have no gradient, each with the reason. What has no floats among its operands or results is not here."""

from __future__ import annotations

from graphkernel.gradients.base import undefined

INFERENCE = "it serves inference; compute attention with ops.matmul and ops.softmax where it is trained"
QUANTIZED = "it rounds to 8 bits; train before quantization"

RESHAPE_AND_CACHE = undefined("ReshapeAndCache", INFERENCE)
PAGED_ATTENTION = undefined("PagedAttention", INFERENCE)
DYNAMIC_QUANT = undefined("DynamicQuant", QUANTIZED)
QUANT_BATCH_MATMUL = undefined("QuantBatchMatmul", QUANTIZED)
QUANT_SPLIT_OUT2 = undefined("QuantbatchmatmulSplitOut2", QUANTIZED)
QUANT_SPLIT_OUT3 = undefined("QuantbatchmatmulSplitOut3", QUANTIZED)
QUANT_SPLIT_SILU_OUT2 = undefined("QuantbatchmatmulSplitSiluOut2", QUANTIZED)
ONNX = undefined("Onnx", "it is an operator of ONNX that is known by name only")
TRANS_DATA = undefined("TransData", "it stores a tensor in a device's layout; differentiate before layouts are chosen")
LAYOUT_TRANSFORM = undefined("LayoutTransform", TRANS_DATA.undefined)
