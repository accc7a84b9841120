"""What the interpreter finds wrong, as values of a closed list of kinds."""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.simulators.common import findings as common
from kernelgen.simulators.common.findings import Stop
from kernelgen.simulators.ptx.language.nodes import Instruction

KINDS: dict[str, str] = {
    "shared-race": "two threads touch one word of shared memory, one of them writes, and no barrier is between",
    "global-race": "two threads touch one word of global memory, one of them writes, and nothing orders them",
    "divergent-barrier": "not every thread of the block reaches the same barrier",
    "bad-shuffle": "a warp instruction names or reads a lane that does not take part",
    "out-of-bounds": "an access outside of every buffer that the launch was given, or of the block's or thread's memory",
    "misaligned": "the address is no multiple of the access's size",
    "uninitialised-shared": "shared memory is read that no thread of the block wrote",
    "uninitialised-local": "local memory is read that the thread did not write",
    "uninitialised-register": "a register is read that the thread did not write",
    "in-flight": "shared memory is touched while an asynchronous copy into it is under way",
    "read-only-written": "a buffer that is read as read-only (ld.global.nc) is written",
    "endless-loop": "the launch took more steps than its limit",
    "trap": "the kernel stops itself",
}


@dataclass(frozen=True)
class Finding(common.Finding):
    """One fault at one instruction: the first time it was seen, and how many lanes showed it in all."""

    source_line: int = 0

    def __str__(self) -> str:
        source = f", source line {self.source_line}" if self.source_line else ""
        return f"{self.kind}: {self.where}: {self.message}; `{self.text}` (PTX line {self.line}{source}){self.times}"


class Findings(common.Findings[Finding]):
    """The faults of a launch, one for each kind and instruction."""

    def __init__(self) -> None:
        super().__init__(KINDS)

    def add(self, kind: str, instruction: Instruction, where: str, message: str, count: int = 1) -> None:
        """Notes a fault of some lanes."""
        place = instruction.place
        self.note(Finding(kind, place.line, str(instruction), where, message, count, place.source_line))

    def stop(self, kind: str, instruction: Instruction, where: str, message: str, count: int = 1) -> Stop:
        """Notes a fault and gives the exception to raise."""
        self.add(kind, instruction, where, message, count)
        return Stop(kind)
