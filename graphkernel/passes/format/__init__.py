"""The pass transform_op_optimizer: which format each tensor has, with the fewest transforms.

Reading order: format_kinds, format_regions, minimum_cut, format_cut, transform_op_optimizer.
"""
