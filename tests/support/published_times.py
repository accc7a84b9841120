"""Published measurements of Ascend chips, and what the time model makes of each (spec/gpu-ascend.md 4).

The vendor's profiler tables do not say how many elements the additions have; 8192 x 8192 is the number that all four agree
with. The copy of 128 KB is not quoted in the spec, only that the three-point model misses it by -2 %: its figure is inferred.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kernelgen.ascendc.types import BLOCK, REPEAT
from kernelgen.machines.ascend.description import Machine, Rates
from kernelgen.machines.ascend.machines import ASCEND_910B, ASCEND_950
from kernelgen.simulators.ascendc.time.instruction_cost import (
    copy_cycles,
    core_bandwidth,
    load_cycles,
    mmad_cycles,
    vector_cycles,
)
from kernelgen.tensor.dtypes import FLOAT16

ELEMENTS = 8192 * 8192
KB = 1024


@dataclass(frozen=True)
class Row:
    """A measurement: ``model`` gives the model's figure for rates; ``fits`` names the rate that was fitted on the row."""

    case: str
    unit: str
    measured: float
    model: Callable[[Rates], float]
    fits: str = ""
    remark: str = ""

    def error(self, rates: Rates) -> float:
        """By how much of the measurement the model is off."""
        return self.model(rates) / self.measured - 1


def addition(rates: Rates, elements: int, cores: int, shift: int) -> float:
    """Microseconds of the vector unit for ELEMENTS half additions, ``elements`` a call; ``shift`` bytes between sources."""
    machine = _with(ASCEND_910B, rates)
    repeats = elements * FLOAT16.itemsize // REPEAT
    first = np.arange(repeats * 8).reshape(repeats, 8)
    cycles = vector_cycles(machine, "Add", FLOAT16, repeats, (first, first + shift // BLOCK))
    return cycles * ELEMENTS / elements / cores / machine.gigahertz / 1000


def copy(rates: Rates, size: int, cores: int) -> float:
    """Cycles of a copy from GM."""
    machine = _with(ASCEND_910B, rates)
    return copy_cycles(machine, size, core_bandwidth(machine, cores))


def product(machine: Machine, m: int, n: int, k: int) -> Callable[[Rates], float]:
    """Cycles of an Mmad of halves."""
    return lambda rates: mmad_cycles(_with(machine, rates), m, n, k, FLOAT16.itemsize)


def loads(rates: Rates) -> float:
    """Cycles of MTE1 in a step of 128 x 256 x 64 halves: one load of 16 KB to L0A and one of 32 KB to L0B."""
    machine = _with(ASCEND_910B, rates)
    return load_cycles(machine, 16 * KB, to_a=True) + load_cycles(machine, 32 * KB, to_a=False)


def bandwidth(rates: Rates) -> float:
    """Terabytes a second that all vector cores of an A2 copy together."""
    return rates.copy_all_cores * ASCEND_910B.gigahertz / 1000


def _with(machine: Machine, rates: Rates) -> Machine:
    return replace(machine, rates=rates)


ROWS: tuple[Row, ...] = (
    Row(
        "A2 add, 1 core, 4096 half a call, both sources in the same bank groups", "us", 761.65,
        lambda rates: addition(rates, 4096, 1, 0), "vector_start",
    ),
    Row("the same, 48 cores", "us", 15.885, lambda rates: addition(rates, 4096, 48, 0)),
    Row("48 cores, 16384 a call", "us", 12.845, lambda rates: addition(rates, 16384, 48, 0)),
    Row(
        "48 cores, 16256 a call, sources 256 bytes apart", "us", 6.954,
        lambda rates: addition(rates, 16256, 48, 256),
    ),
    Row("A2 Mmad, 128 x 256 x 64 half", "cycles", 521.9, product(ASCEND_910B, 128, 256, 64), "mmad_start"),
    Row("950 Mmad, 256 x 256 x 64 half", "cycles", 1033.2, product(ASCEND_950, 256, 256, 64)),
    Row("A2 MTE1, a step of 128 x 256 x 64 half", "cycles", 430.0, loads, "load_start"),
    Row("A2 GM to UB, 1 core, 8 KB", "cycles", 351.0, lambda rates: copy(rates, 8 * KB, 1), "copy_one_core"),
    Row("48 cores, 8 KB", "cycles", 584.0, lambda rates: copy(rates, 8 * KB, 48), "copy_start"),
    Row("48 cores, 32 KB", "cycles", 1999.0, lambda rates: copy(rates, 32 * KB, 48), "copy_all_cores"),
    Row(
        "48 cores, 128 KB", "cycles", (110 + 128 * KB / 17.4) / 0.98, lambda rates: copy(rates, 128 * KB, 48),
        remark="inferred from the spec's -2 %",
    ),
    Row("A2 HBM, all cores", "TB/s", 1.6, bandwidth, remark="the lower of the published 1.6 to 1.8"),
)  # fmt: skip
