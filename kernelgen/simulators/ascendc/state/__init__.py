"""Bytes of a core's memories, findings, and an instruction on its way.

Reading order: byte_regions, findings, memory, instruction.
"""
