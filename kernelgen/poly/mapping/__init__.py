"""Which loop of a schedule is dealt to cores, threads, vector lanes or blocks of registers, for each kind of machine.

Reading order: axis, vector_axis, register_blocks, streamed_products, windows, matrix_products, constant_products, page_order,
cpu, ascend, threads_per_row, gpu.
"""
