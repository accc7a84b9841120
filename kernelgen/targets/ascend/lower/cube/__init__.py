"""Matrix products on the cube unit.

Reading order: product, fixpipe_epilogue, tile_sizes, product_program, vector_epilogue, core_plan, cube_kernel.
"""
