"""Passes for processors: what constants decide computed once, packed panels, blocks of results in registers, unroll-and-jam.

Rooms: prefetching.
Reading order: byte_words, byte_pairs, row_digits, stored_sums, digit_sums, arrays_of_values, prepare_constants, share_panels,
join_panels, pack_panels, window_borders, jam_panels, register_blocking, factored_sums, tables_of_steps, fuse_epilogue,
unroll_and_jam, jam_stencils, keep_rows.
"""
