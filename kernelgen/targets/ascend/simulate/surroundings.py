"""What the cores of a launch share: kernel, machine, GM, findings, cross-core flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kernelgen.dtypes import INT64, DType
from kernelgen.targets.ascend.instructions import Kernel
from kernelgen.targets.ascend.machine import Machine
from kernelgen.targets.ascend.simulate.bench import Bench
from kernelgen.targets.ascend.simulate.decode import Decoded
from kernelgen.targets.ascend.simulate.findings import Findings
from kernelgen.targets.ascend.simulate.ledger import Ledger
from kernelgen.targets.ascend.simulate.meeting import Meetings
from kernelgen.targets.ascend.simulate.memory import Buffer
from kernelgen.targets.ascend.simulate.sharing import Sharing
from kernelgen.targets.ascend.types import PIPES, UB


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
