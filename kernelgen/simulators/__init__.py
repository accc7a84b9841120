"""Machines that stand in for hardware: they run what was printed, in numpy, and find what is wrong with it.

Rooms: ascendc, common, ptx.
"""
