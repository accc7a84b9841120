"""Everything that changes while a gang runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelgen.simulators.ptx.language.nodes import Instruction
from kernelgen.simulators.ptx.language.types import BITS
from kernelgen.simulators.ptx.state.counters import Tally
from kernelgen.simulators.ptx.state.findings import Findings
from kernelgen.simulators.ptx.state.lanes import Lanes
from kernelgen.simulators.ptx.state.memory import SHARED_NAME, Memory, Region
from kernelgen.simulators.ptx.state.race_detector import Shadow, Visitors
from kernelgen.simulators.ptx.state.release_acquire import Entry, Publications

FLIGHT_WORD = 4  # bytes; the smallest asynchronous copy


class State:
    """Registers, memory, barrier counts and shadows of the lanes of a gang."""

    def __init__(
        self,
        lanes: Lanes,
        running: Sequence[int],
        widths: Sequence[int],
        memory: Memory,
        shadows: Mapping[str, Shadow],
        findings: Findings,
        tally: Tally,
        read_only: dict[str, Instruction],
        publications: Publications,
    ) -> None:
        self.lanes = lanes
        self.running = running  # the numbers of all blocks that run, in order
        self.registers: list[np.ndarray] = [np.zeros((), BITS[width]) for width in widths]
        self.memory = memory
        self.shadows = shadows
        self.findings = findings
        self.tally = tally
        self.read_only = read_only
        self.publications = publications
        self.fenced = np.full(lanes.count, -1, np.int64)  # the barrier count at each lane's last fence
        self.dirty = np.zeros(lanes.count, np.bool_)  # lanes with global stores after their last fence
        self.clean_until = np.zeros(len(lanes.blocks), np.int64)  # accesses before this barrier count are all fenced
        self.epoch = np.zeros(lanes.count, np.int64)
        self.sync = np.zeros(lanes.count, np.int64)
        self.clock = 0
        self.copies: list[Copy] = []
        self.flight = np.zeros(shadows[SHARED_NAME].size // FLIGHT_WORD + 1, np.bool_)
        self.copy_group = np.zeros(lanes.count, np.int64)
        self._specials: dict[str, np.ndarray] = {}
        self._written: dict[int, np.ndarray] = {}

    def written(self, slot: int) -> np.ndarray:
        """Which lanes have written a register that some path reads too early."""
        if slot not in self._written:
            self._written[slot] = np.zeros(self.lanes.count, np.bool_)
        return self._written[slot]

    def special(self, name: str) -> np.ndarray | None:
        """A special register over the gang."""
        if name in ("%clock", "%clock64", "%globaltimer", "%clock_hi", "%globaltimer_lo"):
            return np.array(self.clock, np.uint64)
        if name not in self._specials:
            value = self.lanes.special(name)
            if value is None:
                return None
            self._specials[name] = value
        return self._specials[name]

    def fence(self, index: np.ndarray | slice) -> None:
        """These lanes put what they did before in front of what they do next, for all blocks to see."""
        self.fenced[index] = self.epoch[index]
        self.dirty[index] = False

    def publish(self, region: str, words: np.ndarray, positions: np.ndarray) -> None:
        """Atomic operations of lanes, in order; without a fence in the launch so far they publish nothing."""
        if not (self.fenced >= 0).any():
            return
        for word, position in zip(words, positions, strict=True):
            until = max(int(self.fenced[position]), int(self.clean_until[self.lanes.slot[position]]))
            epoch = int(self.epoch[position])
            own = until if self.dirty[position] or self.fenced[position] < 0 else epoch + 1
            entry = Entry(int(self.lanes.identity[position]), until, own)
            self.publications.visit((region, int(word)), epoch, entry)

    def visitors(self, positions: np.ndarray | slice) -> Visitors:
        """Lanes of the gang as visitors of memory."""
        return Visitors(self.lanes.identity[positions], self.epoch[positions], self.sync[positions])


@dataclass(frozen=True, eq=False)
class Copy:
    """An asynchronous copy under way, one row for each lane: who, where to, the bytes, in which group."""

    region: Region
    positions: np.ndarray
    offsets: np.ndarray
    storage: np.ndarray
    data: np.ndarray
    group: np.ndarray

    def pick(self, mask: np.ndarray) -> Copy:
        """The copies of some of the lanes."""
        return Copy(
            self.region,
            self.positions[mask],
            self.offsets[mask],
            self.storage[mask],
            self.data[mask],
            self.group[mask],
        )
