"""What the cores of a launch share: kernel, machine, GM, findings, cross-core flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kernelgen.ascendc.instructions import Kernel
from kernelgen.ascendc.types import PIPES, UB
from kernelgen.machines.ascend.description import Machine
from kernelgen.simulators.ascendc.core.core_memories import Bench
from kernelgen.simulators.ascendc.core.decode import Decoded
from kernelgen.simulators.ascendc.order.core_flags import Meetings
from kernelgen.simulators.ascendc.order.event_log import Ledger
from kernelgen.simulators.ascendc.order.global_memory import Sharing
from kernelgen.simulators.ascendc.state.findings import Findings
from kernelgen.simulators.ascendc.state.memory import Buffer
from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.dtypes import INT64, DType


@dataclass
class Surroundings:
    """A launch in progress. ``broken`` says that a core stopped early, so that outputs may be incomplete.

    With a ``ledger`` the launch computes nothing and writes down what its pipes do.
    """

    kernel: Kernel
    machine: Machine
    fields: Mapping[str, int]
    buffers: Mapping[str, Buffer]
    cores: int
    bandwidth: float
    selects: bool
    step_limit: int
    findings: Findings
    meetings: Meetings
    sharing: Sharing
    body: tuple[Decoded, ...]
    ledger: Ledger | None = None
    spare: list[Bench] = field(default_factory=list[Bench])
    gm_bytes: int = 0
    broken: bool = False

    @cached_property
    def nothing(self) -> np.ndarray:
        """The clock of all cores before they meet."""
        return np.zeros(self.cores * len(PIPES), np.int32)

    def capacity(self, place: str) -> int:
        """Usable bytes of a memory; a Select needs the end of the unified buffer."""
        reserve = self.machine.select_reserve if place == UB and self.selects else 0
        return self.machine.memories[place] - reserve

    def bench(self, where: str) -> Bench:
        """A core's memories, poisoned: those that a finished block has left, or new ones."""
        found = self.spare.pop() if self.spare else Bench(self.machine.memories)
        found.begin(where)
        return found

    def holds(self, buffer: Buffer, dtype: DType) -> bool:
        """Whether a buffer's array has elements of this type; a bool is a uint8 there, a float64 the bits of an int64."""
        found = buffer.array.dtype
        if found == np.float64:
            return dtype == INT64
        return found == dtype.numpy or (found == np.bool_ and dtype.name in ("uint8", "int8", "bool"))
