"""Passes: pure functions from graph to graph, one per file, named as MindSpore names them where it has them.

Rooms: effects, format, named_fusion, precision, shape.
Reading order: base, axis_normalizer, cluster, compact_tensor_liveness, cse, expand, finalise_kernels,
floatstatus_addn_fusion, floatstatus_fusion, fold, graph_kernel_op_combiner, graph_kernel_recompute, insert_pad_ops,
parallel_fusion, own_products, stored_weights, patch_products, redundant_output, rows_before_sums, rows_behind_sums,
simplify, split, named_kernels, transpose_matmul_fusion.
"""
