"""Matrix products on the cube unit.

Reading order: part_bindings, product, fixpipe_epilogue, tile_sizes, factor_moves, product_program, vector_epilogue, core_plan,
cube_kernel.
"""
