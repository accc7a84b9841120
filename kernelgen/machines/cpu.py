"""What processors are like. What differs between them, vectors and registers, is asked of the one that is there."""

from __future__ import annotations

from kernelgen.system.named_tuples import NamedTuple


class CpuMachine(NamedTuple):
    """A processor. ``line_bytes`` is a line of its caches, on x86-64 and most of 64-bit Arm (their optimization manuals)."""

    line_bytes: int = 64


CPU = CpuMachine()
