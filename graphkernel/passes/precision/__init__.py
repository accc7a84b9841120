"""Passes that change the data type in which something is computed, stored or handed on, or where it is rounded.

Reading order: cast_matmul_fusion, decrease_transfer_precision, raise_reduction_precision, recast, convert_bfloat16,
decrease_compute_precision, reorder_ops, quantization, quantized_between, integer_products, byte_convolutions,
quantized_images, integer_convolutions, softmax_of_rows,
quotients_behind_products, inverse_totals.
"""
