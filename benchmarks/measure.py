"""Rounds: every contestant runs once a round, in turning order; ratios are taken within a round, so that noise cancels."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import cycle
from typing import Any

import numpy as np

from benchmarks.contestants import OURS, Contestant

Times = Mapping[str, Sequence[float]]
BATCH_SECONDS = 0.02
LEAST_CALLS = 3


@dataclass(frozen=True)
class Spread:
    """Median, least and greatest of several rounds."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float], scale: float = 1.0) -> Spread:
        """The spread of scaled values."""
        scaled = [value * scale for value in values]
        return Spread(statistics.median(scaled), min(scaled), max(scaled))

    def __str__(self) -> str:
        return f"{self.median:.4g} ({self.low:.4g}-{self.high:.4g})"


def interleaved(
    contestants: Sequence[Contestant],
    rounds: int,
    batch_seconds: float = BATCH_SECONDS,
    clock: Callable[[], float] = time.perf_counter,
) -> Times:
    """Seconds per call of each contestant in each round, by the ``clock``."""
    calls = {contestant.name: _calls(contestant, batch_seconds, clock) for contestant in contestants}
    times: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    with _no_collector():
        for turn in range(rounds):
            start = turn % len(contestants)
            for contestant in [*contestants[start:], *contestants[:start]]:
                times[contestant.name].append(_per_call(contestant, calls[contestant.name], clock))
    return times


def on_one_thread(
    name: str,
    contestants: Sequence[Contestant],
    truth: np.ndarray,
    errors: Mapping[str, float],
    rounds: int,
    *,
    tiny: bool,
) -> dict[str, Any]:
    """Milliseconds of processor time of each contestant, and how many times ours that is.

    Raises ArithmeticError for answers to ``name`` that are off the ``truth`` by more of its largest number than ``errors`` say.
    """
    for contestant in contestants:
        if contestant.answer is None:
            continue
        error = float(np.abs(contestant.answer() - truth).max() / np.abs(truth).max())
        if not error <= errors[contestant.name]:
            raise ArithmeticError(f"{name}: {contestant.name} is off by {error:.1e}")
    times = interleaved(contestants, rounds, 0.0 if tiny else BATCH_SECONDS, time.process_time)
    return {
        "contestants": {name: asdict(Spread.of(seconds, 1e3)) for name, seconds in times.items()},
        "times_of_ours": {name: asdict(ratio(times, name, OURS)) for name in times if name != OURS},
    }


def turning(name: str, calls: Sequence[Callable[[], Any]]) -> Contestant:
    """A contestant that takes one of the calls after the other; the answer is the first result of the first.

    Each has been called before anything is measured: a first call takes twice as long, since it finds out where arrays lie.
    """
    for call in calls:
        call()
    turn = cycle(calls)
    return Contestant(name, lambda: next(turn)(), lambda: calls[0]()[0])


def ratio(times: Times, name: str, to: str) -> Spread:
    """Time of one contestant over that of another, round by round."""
    return Spread.of([a / b for a, b in zip(times[name], times[to], strict=True)])


def _calls(contestant: Contestant, batch_seconds: float, clock: Callable[[], float]) -> int:
    contestant.run()
    once = _per_call(contestant, 1, clock)
    return max(LEAST_CALLS, int(batch_seconds / max(once, 1e-7)))


def _per_call(contestant: Contestant, calls: int, clock: Callable[[], float]) -> float:
    run = contestant.run
    start = clock()
    for _ in range(calls):
        run()
    return (clock() - start) / calls


@contextmanager
def _no_collector() -> Generator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
