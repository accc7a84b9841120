"""Two kernels against each other on a machine that does other things too: in turns, by medians, and no longer than needed.

Between which bounds the median of all turns lies is told by the turns themselves: of nine, the second least and the second
greatest hold it in 96 cases of 100, whatever the times are distributed like.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb, inf
from typing import Any

from kernelgen.kernel import Kernel

TURN_SECONDS = 1e-3
"""A turn repeats a kernel that takes less than this: most turns pass between two interruptions by others."""

DOUBT = 0.05
"""How often the median may lie outside of the bounds."""

FEWEST = 5
"""Turns after which a comparison may stop: all of them on one side by chance is one case in sixteen."""


@dataclass(frozen=True)
class Ratio:
    """The second kernel's time as a multiple of the first one's: the turns' median, the bounds that hold it, the least."""

    median: float
    low: float
    high: float
    least: float
    turns: int

    @staticmethod
    def of(ratios: Sequence[float]) -> Ratio:
        """From the ratio of each turn."""
        found, left = sorted(ratios), outside(len(ratios))
        return Ratio(statistics.median(found), found[left], found[-1 - left], found[0], len(found))


def outside(turns: int) -> int:
    """How many of the least, and as many of the greatest, may be left outside of the bounds."""
    left, chance = 0, 0.0
    while (chance := chance + 2 * comb(turns, left) * 0.5**turns) <= DOUBT:
        left += 1
    return max(left - 1, 0)


def compared(
    first: Kernel,
    second: Kernel,
    inputs: Sequence[Any],
    turns: int,
    worth: float = 0.0,
    precision: float = 0.0,
    seconds: float = inf,
) -> Ratio:
    """Runs two kernels on these ``inputs`` turn by turn, at most so many ``turns``; every other turn the second begins.

    Stops early where every turn so far was above ``worth``, if one is given: the ``second`` is not as fast as that; where the
    bounds are no further apart than ``precision``; and after so many ``seconds``. Results of the ``first`` are overwritten by
    those of the second.
    """
    end = time.monotonic() + seconds
    _, outputs, _ = first.arguments(first.call_inputs(inputs), None)
    one, other = (_timer(kernel, inputs, outputs) for kernel in (first, second))
    one(1)
    other(1)
    calls = max(1, int(TURN_SECONDS / max(one(1), 1e-9)))
    ratios: list[float] = []
    for turn in range(turns):
        if turn % 2:
            spent = other(calls)
            ratios.append(spent / max(one(calls), 1e-9))
        else:
            spent = one(calls)
            ratios.append(other(calls) / max(spent, 1e-9))
        found = Ratio.of(ratios)
        is_clear = 0 < worth < found.least or found.high - found.low <= precision
        if turn + 1 >= FEWEST and (is_clear or time.monotonic() > end):
            break
    return Ratio.of(ratios)


def _timer(kernel: Kernel, inputs: Sequence[Any], outputs: Sequence[Any]) -> Callable[[int], float]:
    given = kernel.call_inputs(inputs)  # constants are laid out before all calls

    def spent(calls: int) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            kernel(*given, out=outputs)
        return time.perf_counter() - start

    return spent
