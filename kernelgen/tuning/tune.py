"""Looks for a faster plan of one kernel by measuring neighbours of its plan: hill climbing, one choice at a time.

    found = tune(kernel, inputs)                          measures; nothing else in this package ever does
    found = tune(kernel, (), compare=by_model("H200"))    without a device: what the GPU's model says of both
    found.kernel, found.kernel.plan.to_json()             the fastest that was seen

A step tries near neighbours first (:mod:`kernelgen.tuning.neighbours`), far ones where none of those is faster. They are
proved and estimated before anything is compiled; those that the cost model thinks fastest are compiled and measured in turn,
hopeless ones never. What was not slower in a few turns is measured with three times as many, the better half of that again.
Times are compared in turns, so that what else the machine does hits both.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, NamedTuple

import numpy as np

from kernelgen import options
from kernelgen.driver import finished, planned
from kernelgen.errors import ArgumentError, KernelgenError, UnsupportedError
from kernelgen.kernel import Kernel
from kernelgen.plan import Plan
from kernelgen.stages import Lowered
from kernelgen.targets import Target, find_target
from kernelgen.tuning.comparison import compared
from kernelgen.tuning.cost_order import estimated
from kernelgen.tuning.neighbours import Neighbours, far, near

GAIN = 0.05
"""A neighbour must be faster by this part to be taken: less is within what timings vary."""

LIKE = 0.02
"""Of neighbours that are as fast as the fastest but for this, the one is taken that the cost model thinks fastest."""

HOPELESS = 2.0
"""The cost model knows no caches, but is not wrong by more than this: what it thinks slower still is not compiled."""

TURNS = (5, 15, 45)
"""Of the rounds of a step, each of which drops the slower half of those that are left."""

LEAST_SECONDS = 1e-9

Compare = Callable[[Kernel, Kernel, int], float]
"""The time of the second kernel as a multiple of the first one's, by so many turns."""


@dataclass(frozen=True)
class Trial:
    """One neighbour: what was changed, and its time as a multiple of the best one's; None: refused or hopeless."""

    change: str
    ratio: float | None


@dataclass(frozen=True)
class Tuned:
    """The fastest kernel that was seen, the changes that led to it, and all that was tried."""

    kernel: Kernel
    path: tuple[str, ...]
    trials: tuple[Trial, ...]


def tune(
    kernel: Kernel, inputs: Sequence[Any], most: int = 100, compare: Compare | None = None, seconds: float = inf
) -> Tuned:
    """Climbs from the kernel's own plan until no neighbour is faster, ``most`` were measured, or about so many ``seconds``
    are over. Inputs are not changed."""
    target = find_target(kernel.target)
    search = _Search(kernel, target, compare or interleaved(inputs), most, time.monotonic() + seconds)
    best = _Place("", planned(kernel.desc, target, kernel.plan, kernel.constants), kernel)
    path: list[str] = []
    while (found := search.better(best)) is not None:
        path.append(found.change)
        best = found
    return Tuned(best.kernel, tuple(path), tuple(search.trials))


class _Place(NamedTuple):
    change: str
    lowered: Lowered
    kernel: Kernel


class _Rival(NamedTuple):
    """A neighbour that may be faster, and where in the list of trials it stands."""

    place: _Place
    trial: int


@dataclass(eq=False)
class _Search:
    subject: Kernel
    target: Target
    compare: Compare
    most: int
    end: float
    trials: list[Trial] = field(default_factory=list[Trial])
    seen: set[str] = field(default_factory=set[str])
    measured: int = 0

    def better(self, best: _Place) -> _Place | None:
        """A neighbour that is faster, the fastest of its kind; None where there is none, or no time to find it."""
        self.seen.add(best.kernel.source)
        for kind in (near, far):
            rivals = self._rivals(best, self._in_order(best, kind(best.kernel.plan)))
            if (found := self._fastest(best, rivals)) is not None:
                return found
        return None

    def _in_order(self, best: _Place, plans: Neighbours) -> list[tuple[str, Lowered]]:
        """Neighbours that are legal and not hopeless, those first that the cost model thinks fastest.

        Half of the time that is left, at most, goes into that.
        """
        cores, until = options.thread_count(), (time.monotonic() + self.end) / 2
        worst = HOPELESS * estimated(best.lowered, cores)
        found: list[tuple[float, str, Lowered]] = []
        for change, plan in plans:
            if self.measured >= self.most or time.monotonic() > until:
                break
            lowered = self._planned(best.lowered, plan)
            cost = inf if lowered is None else estimated(lowered, cores)
            if lowered is None or cost > worst:
                self.trials.append(Trial(change, None))
            elif not any(_same(lowered, other) for other in (best.lowered, *(each for _, _, each in found))):
                found.append((cost, change, lowered))
        return _by_turns(sorted(found, key=lambda each: each[0]))

    def _rivals(self, best: _Place, ordered: Sequence[tuple[str, Lowered]]) -> list[_Rival]:
        """Those that were not slower in a few turns."""
        found: list[_Rival] = []
        for change, lowered in ordered:
            if self.measured >= self.most or time.monotonic() > self.end:
                break
            kernel = self._finished(lowered)
            if kernel is not None and kernel.source in self.seen:
                continue
            ratio = None if kernel is None else self.compare(best.kernel, kernel, TURNS[0])
            self.trials.append(Trial(change, ratio))
            if kernel is not None and ratio is not None:
                self.seen.add(kernel.source)
                self.measured += 1
                if ratio < 1:
                    found.append(_Rival(_Place(change, lowered, kernel), len(self.trials) - 1))
        return sorted(found, key=lambda each: self.trials[each.trial].ratio or 1.0)

    def _fastest(self, best: _Place, rivals: Sequence[_Rival]) -> _Place | None:
        """By more turns for fewer of them."""
        for turns in TURNS[1:]:
            rivals = rivals[: (len(rivals) + 1) // 2]
            ratios = [self.compare(best.kernel, each.place.kernel, turns) for each in rivals]
            for each, ratio in zip(rivals, ratios, strict=True):
                self.trials[each.trial] = replace(self.trials[each.trial], ratio=ratio)
            fast = [(ratio, each) for each, ratio in zip(rivals, ratios, strict=True) if ratio < 1 - GAIN]
            rivals = [each for _, each in sorted(fast, key=lambda pair: pair[0])]
        ratios = [self.trials[each.trial].ratio or 1.0 for each in rivals]
        alike = [each for each, ratio in zip(rivals, ratios, strict=True) if ratio <= ratios[0] + LIKE]
        return min(alike, key=lambda each: each.trial).place if alike else None

    def _planned(self, best: Lowered, plan: Plan) -> Lowered | None:
        if plan.code is not None and plan.bands == best.plan.bands and plan.cpu == best.plan.cpu:
            return replace(best, plan=plan, trail=best.trail.branch())
        try:
            return planned(self.subject.desc, self.target, plan, self.subject.constants)
        except KernelgenError:
            return None

    def _finished(self, lowered: Lowered) -> Kernel | None:
        try:
            return finished(self.subject.desc, self.target, lowered, self.subject.constants)
        except KernelgenError:
            return None


def _by_turns(found: Sequence[tuple[float, str, Lowered]]) -> list[tuple[str, Lowered]]:
    """Those in the order of their costs; of equal ones, one of each kind of change before a second one of any."""
    kinds: Counter[tuple[float, str]] = Counter()
    ranked: list[tuple[float, int, str, Lowered]] = []
    for cost, change, lowered in found:
        kind = cost, change.split()[0]
        ranked.append((cost, kinds[kind], change, lowered))
        kinds[kind] += 1
    return [(change, lowered) for *_, change, lowered in sorted(ranked, key=lambda each: each[:2])]


def _same(one: Lowered, other: Lowered) -> bool:
    return one.plan.code == other.plan.code and one.nest == other.nest


def interleaved(inputs: Sequence[Any]) -> Compare:
    """Compares two kernels on copies of these inputs, turn by turn; the median of the ratios."""
    arrays = [np.array(array) for array in inputs]
    return lambda first, second, turns: compared(first, second, arrays, turns, 1.0).median


def by_model(machine: str, **sizes: int) -> Compare:
    """Compares the estimates of two kernels for a GPU; a kernel that the model cannot count takes for ever.

    ``sizes`` are those of the symbols. Nothing is measured: see :mod:`kernelgen.targets.gpu.launch.time_model`.
    """

    def seconds(kernel: Kernel) -> float:
        try:
            found = kernel.estimate(machine, **sizes)
        except UnsupportedError:
            return inf
        if found is None:
            raise ArgumentError(f"kernels for {kernel.target} have no estimate")
        return found.seconds

    return lambda first, second, turns: seconds(second) / max(seconds(first), LEAST_SECONDS)
