"""Operators that are compositions of others: what named fusion passes make.

Reading order: fused, fused_norm, fused_quant, fused_matmul, fused_shape, fused_transformer.
"""
