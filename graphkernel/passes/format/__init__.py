"""The passes transform_op_optimizer, tokens_as_images, lines_as_images, volumes_as_images, padded_windows, to_nhwc_format
and winograd: which format each tensor has, and what convolutions read.

Reading order: format_kinds, format_regions, minimum_cut, format_cut, transform_op_optimizer; layouts, tokens_as_images,
lines_as_images, volumes_as_images, padded_windows, transposed_phases, tiles, taps_inside, convolutions_last, resized_rows,
channels_last, library_layout, image_regions, to_nhwc_format; gradient_by_tiles, tile_pieces, winograd; turned_factors (of
products).
"""
