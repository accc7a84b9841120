"""The sizes that the mapping starts from on a processor: blocks of results fill its vector registers.

32 registers   8 rows of 2 vectors: 16 results, 2 vectors of columns, the rest holds elements of rows
16 registers   6 rows of 2 vectors: 12 results, 2 vectors of columns, 1 element of a row, as many as there are
"""

from __future__ import annotations

from kernelgen.plan import CpuPlan, VectorUnit
from kernelgen.targets.cpu.text.host import Host

VECTORS = 2
"""Of columns in a block: each element of a row that is loaded is used so often."""

FLOAT_BYTES = 4

FAR_AHEAD = 4096
"""Bytes of a stream of words that are asked for ahead. On a Xeon with AMX int8 weights come at 8.3 GB/s with 1024, 9.0 with
2048, 9.6 with 4096 and 9.8 with 8192, int4 at 7.3, 8.2, 8.7 and 8.5; Zen 4 is a fifth slower from 4096 on than with 1024."""


def sizes_for(host: Host, threads: int = 1) -> CpuPlan:
    """The sizes for a processor and so many ``threads``; those of columns count elements of four bytes."""
    columns = VECTORS * max(host.vector_bytes, 16) // FLOAT_BYTES
    lanes = columns // VECTORS
    adds_bytes = host.adds_byte_products(lanes)
    adds_pairs = host.adds_pairs(lanes) and not adds_bytes
    unit = VectorUnit(host.vector_registers, lanes, adds_bytes, host.has_matrices, adds_pairs)
    ahead = FAR_AHEAD if host.follows_far else CpuPlan.ahead
    if host.vector_registers >= 32:
        return CpuPlan(block=(8, columns), points=(4, 4), unit=unit, threads=threads, ahead=ahead)
    return CpuPlan(block=(6, columns), points=(3, 4), unit=unit, threads=threads, ahead=ahead)
