"""GM: every access is written down with what its pipe knew, and pairs that overlap are compared in the end.

(a, b) overlap, one of them writes: b's clock must know that a is over, or a's that b is. Blocks know of each other only
through cross-core flags, so that regions which two blocks share without one are found whatever their timing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kernelgen.ascendc.types import PIPES
from kernelgen.simulators.ascendc.order.vector_clocks import Clock
from kernelgen.simulators.ascendc.state.byte_regions import Region
from kernelgen.simulators.ascendc.state.findings import Findings

MOST_PAIRS = 1 << 22
"""Pairs of pieces that are compared at once."""


@dataclass(frozen=True)
class Access:
    """One instruction's access to GM; ``number`` counts the instructions of its pipe."""

    region: Region
    core: int
    pipe: int
    number: int
    write: bool
    clock: Clock
    line: int

    def over_before(self, other: Access) -> bool:
        """Whether ``other`` knows that this access is over."""
        known = other.clock
        over = known.own[self.pipe] if self.core == other.core else known.far[self.core * len(PIPES) + self.pipe]
        return bool(over > self.number)


class Sharing:
    """The accesses to each GM buffer in the order of execution."""

    def __init__(self) -> None:
        self._accesses: dict[str, list[Access]] = {}

    def note(self, buffer: str, access: Access) -> None:
        """Writes an access down."""
        self._accesses.setdefault(buffer, []).append(access)

    def check(self, findings: Findings, where: dict[int, str]) -> None:
        """Adds a finding for every pair of lines with an overlap that nothing orders."""
        for buffer, accesses in self._accesses.items():
            touched = [(access.region, access.write, (access.core, access.pipe)) for access in accesses]
            for first, second in rivals(touched):
                earlier, later = accesses[first], accesses[second]
                if earlier.over_before(later) or _same_instruction(earlier, later):
                    continue
                kind = "cores-conflict" if earlier.core != later.core else _kind(earlier, later)
                place = (
                    where[later.core]
                    if earlier.core == later.core
                    else f"{where[earlier.core]} and {where[later.core]}"
                )
                findings.add(kind, later.line, place, f"{buffer}, against line {earlier.line}")


def _same_instruction(first: Access, second: Access) -> bool:
    return (first.core, first.pipe, first.number) == (second.core, second.pipe, second.number)


def _kind(earlier: Access, later: Access) -> str:
    """How two accesses of one core clash."""
    return f"{'write' if later.write else 'read'}-after-{'write' if earlier.write else 'read'}"


def rivals(touched: Sequence[tuple[Region, bool, tuple[int, int]]]) -> Iterator[tuple[int, int]]:
    """(earlier, later) positions of accesses that share a byte, one of them written, in the order of execution.

    An access is (region, written, (core, pipe)). For each one the latest of every pipe and region stands for what that pipe
    did there before: whoever knows that it is over knows the others to be over too.
    """
    written: dict[Region, bool] = {}
    for where, write, _ in touched:
        written[where] = written.get(where, False) or write
    if not any(written.values()):
        return
    number = {where: at for at, where in enumerate(written)}
    near: list[list[int]] = [[at] for at in range(len(number))]
    for first, second in overlaps(list(written.items())):
        near[first].append(second)
        near[second].append(first)
    latest: list[dict[tuple[tuple[int, int], bool], int]] = [{} for _ in number]
    for later, (where, write, pipe) in enumerate(touched):
        for other in near[number[where]]:
            for (_, wrote), earlier in latest[other].items():
                if write or wrote:
                    yield earlier, later
        latest[number[where]][pipe, write] = later


def overlaps(touched: Sequence[tuple[Region, bool]]) -> Iterator[tuple[int, int]]:
    """Pairs of positions of (region, written) that share a byte, one of them written; each pair once.

    Pieces are sorted by their first byte; a write can only meet the pieces that begin before it ends.
    """
    if not any(write for _, write in touched):
        return
    pieces = [where.intervals() for where, _ in touched]
    owner = np.repeat(np.arange(len(touched)), [len(starts) for starts, _ in pieces])
    starts, stops = (np.concatenate(side) for side in zip(*pieces, strict=True))
    order = np.argsort(starts, kind="stable")
    owner, starts, stops = owner[order], starts[order], stops[order]
    if (starts[1:] >= np.maximum.accumulate(stops)[:-1]).all():
        return
    writes = np.flatnonzero(np.array([write for _, write in touched])[owner])
    low = np.searchsorted(starts, starts[writes] - int((stops - starts).max()), "right")
    high = np.searchsorted(starts, stops[writes], "left")
    found = list[np.ndarray]()
    parts = np.cumsum(high - low) // MOST_PAIRS
    for part in range(int(parts[-1]) + 1):
        chosen = parts == part
        found.append(_meeting(writes[chosen], low[chosen], high[chosen], starts, stops, owner, len(touched)))
    keys = np.unique(np.concatenate(found))
    yield from zip((keys // len(touched)).tolist(), (keys % len(touched)).tolist(), strict=True)


def _meeting(
    writes: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    owner: np.ndarray,
    owners: int,
) -> np.ndarray:
    """``first x owners + second`` of the pairs of owners that share a byte, for written pieces and their candidates."""
    counts = high - low
    piece = np.repeat(writes, counts)
    other = np.arange(len(piece)) - np.repeat(np.cumsum(counts) - counts - low, counts)
    first, second = owner[piece], owner[other]
    meet = (stops[other] > starts[piece]) & (first != second)
    first, second = first[meet], second[meet]
    return np.unique(np.minimum(first, second) * owners + np.maximum(first, second))
