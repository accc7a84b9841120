"""What is proved with isl of every kernel before it is printed. A failed proof is a compile error.

Reading order: grid_accesses, access_times, happens_before, async_copy_proof, linearise_accesses, schedule_proof, races,
resource_limits, vector_alignment.
"""
