"""Passes about operators that only change or tell shapes.

Reading order: shape_ops_splitter, shape_values, affine_values, own_gathers, own_pads, few_segments, kernel_packet,
shrink_only_shape_needed.
"""
