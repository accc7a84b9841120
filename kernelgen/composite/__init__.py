"""AKG's composite JSON: read into a description, checked, and written again.

Reading order: bind_sizes, description, axes, in_place, json_cursor, vocabulary, attribute_operands, scalar_rules,
element_reads, layouts, size_limits, slice_shapes, sparse_shapes, unknown_extents, window_shapes, shape_rules, check,
user_operators, read, write.
"""
