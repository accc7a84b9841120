"""What is proved or counted from the text of a kernel, for all turns, blocks and sizes.

Reading order: kernel_features, scalar_bounds, instruction_claims, statement_count.
"""
