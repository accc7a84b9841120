"""What the cores of a launch share: kernel, machine, GM, findings, cross-core flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kernelgen.dtypes import DType
from kernelgen.targets.ascend.forms import STRUCTS
from kernelgen.targets.ascend.instructions import Kernel
from kernelgen.targets.ascend.machine import Machine
from kernelgen.targets.ascend.simulate.findings import Findings
from kernelgen.targets.ascend.simulate.meeting import Meetings
from kernelgen.targets.ascend.simulate.memory import Buffer, Memory
from kernelgen.targets.ascend.simulate.sharing import Sharing
from kernelgen.targets.ascend.types import UB


@dataclass
class Surroundings:
    """A launch in progress. ``broken`` says that a core stopped early, so that outputs may be incomplete."""

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
    spare: dict[str, list[Memory]] = field(default_factory=dict)
    gm_bytes: int = 0
    broken: bool = False

    def capacity(self, place: str) -> int:
        """Usable bytes of a memory; a Select needs the end of the unified buffer."""
        reserve = self.machine.select_reserve if place == UB and self.selects else 0
        return self.machine.memories[place] - reserve

    def memory(self, place: str) -> Memory:
        """A poisoned memory of a core: one that a finished block has left, or a new one."""
        spare = self.spare.get(place)
        if not spare:
            return Memory(place, self.machine.memories[place])
        spare[-1].clear()
        return spare.pop()

    def holds(self, buffer: Buffer, dtype: DType) -> bool:
        """Whether a buffer's array has elements of this type; a bool is a uint8 there."""
        found = buffer.array.dtype
        return found == dtype.numpy or (found == np.bool_ and dtype.name in ("uint8", "int8", "bool"))

    def struct(self, name: str, values: Sequence[int | float | str]) -> Mapping[str, int | float | str]:
        """The values of a struct of parameters by field."""
        return dict(zip(STRUCTS[name], values, strict=True))
