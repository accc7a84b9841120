"""Passes for processors: packed panels, blocks of results in registers, unroll-and-jam.

Reading order: register_blocking, pack_panels, unroll_and_jam.
"""
