"""What the simulator finds wrong, as values of a closed list of kinds, each with what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.simulators.common import findings as common
from kernelgen.simulators.common.findings import Stop

KINDS: dict[str, tuple[str, str]] = {
    "read-after-write": ("a read that nothing orders after the write", "set a flag after the write, or a barrier"),
    "write-after-read": ("a write that nothing orders after the read", "set a flag after the read, or a barrier"),
    "write-after-write": ("two writes that nothing orders", "set a flag after the first, or a barrier"),
    "cores-conflict": (
        "two blocks touch one region of GM, one of them writes, and nothing orders them",
        "give each block its own region, or synchronise the cores between",
    ),
    "double-set": ("a flag is set that is already set", "wait for it before it is set again"),
    "flag-reused": (
        "a flag is set again while the earlier wait may still be to come",
        "order the wait before the second set, or use another event id",
    ),
    "leftover-flag": ("a flag is still set when the kernel ends", "wait for every flag that was set"),
    "deadlock": ("a pipe waits for a flag that nobody will set", "set the flag before, with the same pipes and id"),
    "bad-event": ("no such flag", "use a pair of pipes and an event id that the machine has"),
    "out-of-bounds": ("an access outside of its tensor", "make the tensor larger or the access smaller"),
    "capacity": ("a tensor outside of its memory", "use smaller tiles, or share addresses between tensors"),
    "wrong-memory": ("the operation does not take this memory, or the core lacks it", "copy to a memory that it takes"),
    "misaligned": ("an address that is no multiple of the memory's unit", "align the address"),
    "odd-length": ("a copy's length is no multiple of 32 bytes", "copy whole blocks, or use DataCopyPad"),
    "bad-dtype": ("the operation does not compute in this data type", "cast to a type of the machine's table"),
    "bad-parameter": ("a count, repeat or stride outside of its range", "split the instruction"),
    "bad-mask": ("a mask that this instruction cannot have", "use 1 to as many lanes as a repeat has"),
    "overlap": (
        "source and destination of one instruction overlap without being the same",
        "use the same address and strides, or disjoint ones",
    ),
    "uninitialised": ("bytes are read that nobody wrote", "write them before, or read fewer"),
    "unwritten-output": ("a part of an output was never written", "let the blocks cover the whole output"),
    "read-only-written": ("an input is written", "declare it as an output"),
    "bad-scalar": ("a scalar that C++ does not define: overflow, division by zero", "use smaller numbers"),
    "bad-frame": (
        "the kernel lacks what every kernel needs",
        "begin with InitSocState and end with PipeBarrier<PIPE_ALL>",
    ),
    "not-modelled": ("the manual allows it, the simulator has no meaning for it", "use the plain form"),
    "endless-loop": ("the kernel took more steps than its limit", "check the loop's step"),
}
"""Kind -> what it means, and what to do."""


@dataclass(frozen=True)
class Finding(common.Finding):
    """One fault at one line of the text: the block that showed it first, and how many times it was seen."""

    @property
    def advice(self) -> str:
        """What to do about it."""
        return KINDS[self.kind][1]

    def __str__(self) -> str:
        return f"{self.kind}: line {self.line}: `{self.text}`: {self.where}: {self.message}{self.times}; {self.advice}"


class Findings(common.Findings[Finding]):
    """The faults of a run, one for each kind and line."""

    def __init__(self, text: str) -> None:
        super().__init__(KINDS)
        self._lines = text.splitlines()

    def add(self, kind: str, line: int, where: str, message: str) -> None:
        """Notes a fault."""
        text = self._lines[line - 1].strip() if 0 < line <= len(self._lines) else ""
        self.note(Finding(kind, line, text, where, message))

    def stop(self, kind: str, line: int, where: str, message: str) -> Stop:
        """Notes a fault and gives the exception to raise."""
        self.add(kind, line, where, message)
        return Stop(kind)
