"""Which statements run together, over which loops: fusion, folded axes, partial results.

Reading order: fold_axes, forwarded_stores, privatise, fusion_groups, merge_groups, scatter_by_owner, direct_results,
computed_rows, row_blocks, overlapped_tiles, shared_loops.
"""
