"""Passes for values that are written into inputs, or added up in place.

Reading order: atomic_clean, csr_atomic_add_process, optimize_assign, stitch_atomic_clean, tensor_inplace, assign_in_place.
"""
