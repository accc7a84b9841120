"""A tile program: statements, names, addresses, and passes over them.

Reading order: effects, indices, loop_facts, names, statement_tree, writer, bank_alignment, block_copies, copy_order,
dead_tiles, double_buffer, lane_counters, redundant_copies, scope, storage.
"""
