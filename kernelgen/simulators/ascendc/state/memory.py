"""A core's memory: bytes, which of them were written, and what each pipe read or wrote last where."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.simulators.ascendc.state.byte_regions import SLACK, Region
from kernelgen.system.cached_property import cached_property

POISON = 0xFF
"""What unwritten bytes hold: NaN in every float type."""


class Accesses:
    """The latest access of each pipe to each region, of one kind; in a pipe's table the latest comes last."""

    def __init__(self) -> None:
        self._latest: dict[int, dict[Region, int]] = {}
        self._last: dict[int, int] = {}

    def note(self, region: Region, pipe: int, number: int) -> None:
        """Writes an instruction down."""
        table = self._latest.setdefault(pipe, {})
        table.pop(region, None)
        table[region] = number
        self._last[pipe] = number

    def conflict(self, region: Region, pipe: int, clock: Sequence[int]) -> int | None:
        """A pipe with an access to one of the bytes that the clock does not know to be over.

        ``clock[q]`` says how many instructions of pipe q are over. The scalar unit (pipe 0) is in order with itself.
        """
        for other, table in self._latest.items():
            over = clock[other]
            if self._last[other] < over or not (other or pipe):
                continue
            for place, number in reversed(table.items()):
                if number < over:
                    break
                if place.meets(region):
                    return other
        return None


class Memory:
    """Poisoned bytes with what happened to them. Instructions of a pipe are numbered from 0 on."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self._reads, self._writes = Accesses(), Accesses()

    @cached_property
    def data(self) -> np.ndarray:
        """The bytes."""
        return np.full(self.size + SLACK, POISON, np.uint8)

    @cached_property
    def written(self) -> np.ndarray:
        """Whether each byte was written."""
        return np.zeros(self.size + SLACK, np.bool_)

    def clear(self) -> None:
        """Poisons the memory anew, for another block."""
        self.data.fill(POISON)
        self.written.fill(False)
        self._reads, self._writes = Accesses(), Accesses()

    def conflict(self, region: Region, pipe: int, clock: Sequence[int], write: bool) -> tuple[str, int] | None:
        """(kind, the other pipe) of an earlier access that ``clock`` does not know to be over."""
        found = self._writes.conflict(region, pipe, clock)
        if found is not None:
            return ("write-after-write" if write else "read-after-write"), found
        found = self._reads.conflict(region, pipe, clock) if write else None
        return None if found is None else ("write-after-read", found)

    def note(self, region: Region, pipe: int, number: int, write: bool) -> None:
        """Writes down what an instruction touches."""
        (self._writes if write else self._reads).note(region, pipe, number)


class Buffer:
    """A GM buffer: the caller's array as bytes. Accesses are compared when all blocks are through (:mod:`sharing`)."""

    def __init__(self, name: str, array: np.ndarray, output: bool, writable: bool) -> None:
        self.name = name
        self.array = array
        self.writable = writable
        self.size = array.nbytes
        self._output = output

    @cached_property
    def data(self) -> np.ndarray:
        """The bytes; poison in an output."""
        content = self.array.reshape(-1).view(np.uint8)
        fill = np.full(SLACK, POISON, np.uint8)
        return np.concatenate((np.full(self.size, POISON, np.uint8) if self._output else content, fill))

    @cached_property
    def written(self) -> np.ndarray:
        """Whether each byte was written."""
        return np.concatenate((np.full(self.size, not self._output), np.zeros(SLACK, np.bool_)))

    @cached_property
    def fetched(self) -> np.ndarray:
        """Whether a cube core has read each byte: it comes from memory once, and then from L2."""
        return np.zeros(self.size + SLACK, np.bool_)

    @property
    def fetched_bytes(self) -> int:
        """How many bytes cube cores have read."""
        return int(self.fetched.sum()) if "fetched" in self.__dict__ else 0

    def give_back(self) -> None:
        """Copies an output into the caller's array."""
        self.array.reshape(-1).view(np.uint8)[...] = self.data[: self.size]
