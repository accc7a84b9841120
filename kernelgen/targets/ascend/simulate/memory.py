"""A core's memory: bytes, which of them were written, and for each pipe the last instruction that read or wrote each."""

from __future__ import annotations

import numpy as np

from kernelgen.targets.ascend.simulate.regions import SLACK, Region

POISON = 0xFF
"""What unwritten bytes hold: NaN in every float type."""


class Memory:
    """Poisoned bytes with shadows. Instructions of a pipe are numbered from 0 on."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.data = np.full(size + SLACK, POISON, np.uint8)
        self.written = np.zeros(size + SLACK, np.bool_)
        self._reads: dict[int, np.ndarray] = {}
        self._writes: dict[int, np.ndarray] = {}

    def clear(self) -> None:
        """Poisons the memory anew, for another block."""
        self.data.fill(POISON)
        self.written.fill(False)
        for shadow in (*self._reads.values(), *self._writes.values()):
            shadow.fill(-1)

    def conflict(self, region: Region, pipe: int, clock: np.ndarray, write: bool) -> tuple[str, int] | None:
        """(kind, the other pipe) of an earlier access that ``clock`` does not know to be over.

        ``clock[q]`` says how many instructions of pipe q are over. The scalar unit (pipe 0) is in order with itself.
        """
        for other, shadow in self._writes.items():
            if (other or pipe) and region.view(shadow).max() >= clock[other]:
                return ("write-after-write" if write else "read-after-write"), other
        if write:
            for other, shadow in self._reads.items():
                if (other or pipe) and region.view(shadow).max() >= clock[other]:
                    return "write-after-read", other
        return None

    def note(self, region: Region, pipe: int, number: int, write: bool, whole: bool) -> None:
        """Writes the instruction down for the bytes that it touches; a whole write leaves them written."""
        shadows = self._writes if write else self._reads
        if pipe not in shadows:
            shadows[pipe] = np.full(self.size + SLACK, -1, np.int32)
        region.view(shadows[pipe])[...] = number
        if write and whole:
            region.view(self.written)[...] = True


class Buffer:
    """A GM buffer: the caller's array as bytes. Accesses are compared when all blocks are through (:mod:`sharing`)."""

    def __init__(self, name: str, array: np.ndarray, output: bool, writable: bool) -> None:
        self.name = name
        self.array = array
        self.writable = writable
        self.size = array.nbytes
        content = array.reshape(-1).view(np.uint8)
        fill = np.full(SLACK, POISON, np.uint8)
        self.data = np.concatenate((np.full(self.size, POISON, np.uint8) if output else content, fill))
        self.written = np.concatenate((np.full(self.size, not output), np.zeros(SLACK, np.bool_)))

    def give_back(self) -> None:
        """Copies an output into the caller's array."""
        self.array.reshape(-1).view(np.uint8)[...] = self.data[: self.size]
