"""The passes transform_op_optimizer and to_nhwc_format: which format each tensor has.

Reading order: format_kinds, format_regions, minimum_cut, format_cut, transform_op_optimizer; channels_last, image_regions,
to_nhwc_format.
"""
