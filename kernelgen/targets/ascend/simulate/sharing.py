"""GM: every access is written down with what its pipe knew, and pairs that overlap are compared in the end.

(a, b) overlap, one of them writes: b's clock must know that a is over, or a's that b is. Blocks know of each other only
through cross-core flags, so that regions which two blocks share without one are found whatever their timing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kernelgen.targets.ascend.simulate.findings import Findings
from kernelgen.targets.ascend.simulate.regions import Region


@dataclass(frozen=True)
class Access:
    """One instruction's access to GM: ``place`` is the index of core and pipe in a clock, ``number`` its instruction."""

    region: Region
    core: int
    place: int
    number: int
    write: bool
    clock: np.ndarray
    line: int

    def over_before(self, other: Access) -> bool:
        """Whether ``other`` knows that this access is over."""
        return bool(other.clock[self.place] > self.number)


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
            for first, second in _overlaps(accesses):
                earlier, later = accesses[min(first, second)], accesses[max(first, second)]
                if earlier.over_before(later) or later.over_before(earlier) or _same_instruction(earlier, later):
                    continue
                kind = "cores-conflict" if earlier.core != later.core else _kind(earlier, later)
                place = (
                    where[later.core]
                    if earlier.core == later.core
                    else f"{where[earlier.core]} and {where[later.core]}"
                )
                findings.add(kind, later.line, place, f"{buffer}, against line {earlier.line}")


def _same_instruction(first: Access, second: Access) -> bool:
    return first.place == second.place and first.number == second.number


def _kind(earlier: Access, later: Access) -> str:
    """How two accesses of one core clash."""
    return f"{'write' if later.write else 'read'}-after-{'write' if earlier.write else 'read'}"


def _overlaps(accesses: list[Access]) -> Iterator[tuple[int, int]]:
    """Pairs of positions that share a byte, one of them a write; each pair once.

    Pieces are sorted by their first byte; a write can only meet the pieces that begin before it ends.
    """
    if not any(access.write for access in accesses):
        return
    pieces = [access.region.intervals() for access in accesses]
    owner = np.repeat(np.arange(len(accesses)), [len(starts) for starts, _ in pieces])
    starts, stops = (np.concatenate(side) for side in zip(*pieces, strict=True))
    order = np.argsort(starts, kind="stable")
    owner, starts, stops = owner[order], starts[order], stops[order]
    if (starts[1:] >= np.maximum.accumulate(stops)[:-1]).all():
        return
    writes = np.array([access.write for access in accesses])[owner]
    longest = int((stops - starts).max())
    seen = set[tuple[int, int]]()
    for at in np.flatnonzero(writes).tolist():
        low = int(np.searchsorted(starts, starts[at] - longest, "right"))
        high = int(np.searchsorted(starts, stops[at], "left"))
        near = np.arange(low, high)
        for other in owner[near[(stops[low:high] > starts[at]) & (near != at)]].tolist():
            pair = (min(int(owner[at]), other), max(int(owner[at]), other))
            if pair[0] != pair[1] and pair not in seen:
                seen.add(pair)
                yield pair
