"""Flags and barriers, and the proof that they order every pair of accesses.

Reading order: written_bytes, program_layout, touched_places, walk_variants, unrolled_walk,
 order_proof, order_without_flags, synchronise.
"""
