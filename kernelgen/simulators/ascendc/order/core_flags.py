"""Flags between cores: CrossCoreSetFlag counts up, CrossCoreWaitFlag counts down.

Mode 0: all cores of the setter's kind meet, and each gets one count when the last has set. Mode 1: the same for the two
vector cores of a group. Mode 2: the cube core of a group and its vector cores; a count for the cube when both have set.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from kernelgen.simulators.ascendc.order.vector_clocks import Meeting, joined

IDS = 11
MOST = 15


@dataclass(frozen=True)
class Seat:
    """A core as others see it: its index, its group, and whether it is a cube core."""

    index: int
    group: int
    cube: bool


class Meetings:
    """The cross-core flags of a launch."""

    def __init__(self, seats: Sequence[Seat]) -> None:
        self._seats = seats
        self._sets: dict[tuple[str, int], dict[int, deque[Meeting]]] = {}
        self._counts: dict[tuple[int, int], deque[Meeting]] = {}

    def set(self, seat: Seat, mode: int, identity: int, mark: Meeting) -> bool:
        """A core sets; who waits for it gets a count when all of its side have set. False where a counter runs over."""
        setters, receivers, label = self._sides(seat, mode)
        waiting = self._sets.setdefault((label, identity), {one.index: deque() for one in setters})
        waiting[seat.index].append(mark)
        if not all(waiting.values()):
            return True
        together = joined([queue.popleft() for queue in waiting.values()])
        counts = [self._counts.setdefault((one.index, identity), deque()) for one in receivers]
        for count in counts:
            count.append(together)
        return all(len(count) <= MOST for count in counts)

    def wait(self, seat: Seat, identity: int) -> Meeting | None:
        """Takes a count, None where there is none yet."""
        count = self._counts.get((seat.index, identity))
        return count.popleft() if count else None

    def left(self, seat: Seat) -> list[int]:
        """Ids whose count is not down to zero, or whose set nobody met."""
        counts = [identity for (index, identity), count in self._counts.items() if index == seat.index and count]
        sets = [identity for (_, identity), waiting in self._sets.items() if waiting.get(seat.index)]
        return sorted({*counts, *sets})

    def _sides(self, seat: Seat, mode: int) -> tuple[list[Seat], list[Seat], str]:
        """Who must set, who gets the count, and a name for the meeting."""
        group = [one for one in self._seats if one.group == seat.group]
        match mode:
            case 0:
                side = [one for one in self._seats if one.cube == seat.cube]
                return side, side, f"all {seat.cube}"
            case 1:
                side = [one for one in group if one.cube == seat.cube]
                return side, side, f"group {seat.group} {seat.cube}"
            case _:
                side = [one for one in group if one.cube == seat.cube]
                return side, [one for one in group if one.cube != seat.cube], f"pair {seat.group} {seat.cube}"
