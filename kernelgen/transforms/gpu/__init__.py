"""Passes for devices of many threads: launches, shared memory and registers, barriers, tiles of products, threads' iterations.

Reading order: delinearise, fuse_epilogue, fuse_prologue, product_recognition, reshape_blocks, horizontal_fusion,
shared_tiles, register_tiles, sink_row_values, split_column_reduction, tensor_core_tiles, thread_ownership,
assign_memory_spaces, barriers, block_reduction, cache_rows, cut_into_launches, transpose_in_shared, vector_accesses,
product_tiles, strip_mine_rows, distribute_threads.
"""
