"""Which statements run together, over which loops: fusion, folded axes, partial results.

Reading order: fold_axes, fusion_groups, direct_results, forwarded_stores, privatise, merge_groups, scatter_by_owner,
computed_rows, row_blocks, places_inside, overlapped_tiles, column_sums, shared_loops.
"""
