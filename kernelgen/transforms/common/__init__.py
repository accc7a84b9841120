"""Passes for every machine: where accumulators start, what storage is needed, what moves out of loops.

Reading order: reached, addressed_blocks, array_regions, array_contraction, hoist_invariants, initialize_reductions,
iteration_box, common_scales, merge_accumulations, reuse_output_storage, scalarize, settle_divisions,
split_index_sets, split_layout_blocks.
"""
