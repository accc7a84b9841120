"""Passes of loop nests, by what they are for.

Rooms: ascend, common, cpu, gpu.
"""
