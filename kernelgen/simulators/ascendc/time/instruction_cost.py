"""How long a pipe is busy with an instruction, by published rates and fitted constants (docs/ascend.md): an estimate.

Vector: ``start + repeats x cycles of a repeat``; a repeat takes as long as the unit needs, or as the bank group that most
of its blocks are read from. Copies from and to GM: ``start + bytes / bandwidth``. Mmad: ``start + fractals``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.ascendc.instructions import GATHER
from kernelgen.ascendc.types import REPEAT
from kernelgen.machines.ascend.description import Machine
from kernelgen.tensor.dtypes import DType

SLOW = frozenset({"Exp", "Ln", "Sqrt", "Rsqrt", "Div", "Reciprocal"})
SLOW_LANES = 32
REDUCE_CYCLES = 7.0
GATHER_LANES = 5
MATRIX_DEPTH = {2: 16, 4: 4, 1: 32}
BANKED_REPEATS = 16
"""Repeats that are looked at for conflicts; the others have the same pattern."""


def repeat_cycles(operation: str, dtype: DType) -> float:
    """Cycles of one repeat without conflicts (vendor's throughput tables, spec/gpu-ascend.md 4)."""
    if operation in SLOW:
        return REPEAT / dtype.itemsize / SLOW_LANES
    if operation.startswith("WholeReduce") or (operation.startswith("BlockReduce") and dtype.itemsize == 2):
        return REDUCE_CYCLES
    if operation == GATHER:
        return REPEAT / dtype.itemsize / GATHER_LANES
    return 1.0


def conflict_cycles(machine: Machine, sources: Sequence[np.ndarray]) -> float:
    """The most blocks of a repeat that one bank group must deliver, over its ports; block b is in group b modulo groups.

    ``sources`` has the numbers of each source's blocks, (repeats, blocks of a repeat).
    """
    if not sources:
        return 1.0
    groups = np.concatenate([blocks[:BANKED_REPEATS] for blocks in sources], axis=1) % machine.bank_groups
    counts = (groups[:, :, None] == np.arange(machine.bank_groups)).sum(axis=1).max(axis=1)
    return float(np.ceil(counts / machine.group_ports).mean())


def vector_cycles(
    machine: Machine, operation: str, dtype: DType, repeats: int, sources: Sequence[np.ndarray] = ()
) -> float:
    """Cycles of a vector instruction; ``sources`` as for :func:`conflict_cycles`."""
    slowest = max(repeat_cycles(operation, dtype), conflict_cycles(machine, sources))
    return machine.rates.vector_start + repeats * slowest


def copy_cycles(machine: Machine, size: int, bandwidth: float) -> float:
    """Cycles of a copy between GM and a core; ``bandwidth`` in bytes per cycle is the core's share."""
    return machine.rates.copy_start + size / bandwidth


def core_bandwidth(machine: Machine, active: int) -> float:
    """Bytes per cycle that a core's copies reach while ``active`` cores copy."""
    return min(machine.rates.copy_one_core, machine.rates.copy_all_cores / max(active, 1))


def load_cycles(machine: Machine, size: int, to_a: bool) -> float:
    """Cycles of a LoadData into L0A or L0B."""
    return machine.rates.load_start + size / (machine.rates.load_a if to_a else machine.rates.load_b)


def mmad_cycles(machine: Machine, m: int, n: int, k: int, itemsize: int) -> float:
    """Cycles of an Mmad: one fractal product of 16 x 16 x 16 halves a cycle."""
    tiles = -(-m // 16) * -(-n // 16) * -(-k // MATRIX_DEPTH[itemsize])
    return machine.rates.mmad_start + tiles
