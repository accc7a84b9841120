"""AKG's composite JSON: read into a graph, checked, and written again.

Reading order: vocabulary, description, document, scalar_rules, element_reads, slice_shapes, sparse_shapes,
window_shapes, shape_rules, check, link, rewriting, specialize, bind_sizes, in_place, json_cursor, attribute_operands,
layouts, size_limits, unknown_extents, user_operators, read, write.
"""
