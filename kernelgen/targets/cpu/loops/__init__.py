"""How each loop is printed: vectors, register tiles, threads; and what is chosen before.

Reading order: block_sizes, planned_loops, streaming, transpose, varying, vector_plan, invariants, tile_plan, tiles,
matrix_plan, matrices, vector, work_estimate, thread_plan, code_plan, parallel, loops.
"""
