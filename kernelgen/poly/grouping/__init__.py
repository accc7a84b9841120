"""Which statements run together, over which loops: fusion, folded axes, partial results.

Reading order: fold_axes, privatise, fusion_groups, merge_groups, scatter_by_owner, shared_loops.
"""
