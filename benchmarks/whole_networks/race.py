"""All contestants of a network in turns, in processes that stay: everybody else sleeps while one is measured.

One thread is measured by the process's processor time, which other work on the machine disturbs little; several by wall time,
and at real-time priority where the system allows that: other work waits for the milliseconds that a turn takes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.whole_networks.contestants import offers
from graphkernel.cli.contest import Contestant, Made, Outcome, contest
from graphkernel.errors import RuntimeFailure
from graphkernel.report.difference import largest_difference
from graphkernel.step_hooks import Progress

Arrays = Sequence[np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Undisturbed:
    """A contestant whose threads, once all are there, go before other work."""

    contestant: Contestant

    def make(self, tell: Progress) -> Made:
        """Loads the network."""
        run, report = self.contestant.make(tell)
        calls = iter((False, True))

        def undisturbed(*arrays: np.ndarray[Any, Any]) -> Sequence[Any]:
            if next(calls, False):  # the second call: the first one started the threads
                _go_first()
            return run(*arrays)

        return undisturbed, report


def _go_first() -> None:
    for thread in os.listdir("/proc/self/task") if hasattr(os, "sched_setscheduler") else ():
        with suppress(PermissionError, ProcessLookupError):
            os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(1))


def race(model: Path, arrays: Arrays, threads: int, rounds: int) -> dict[str, Any]:
    """What each contestant took, in milliseconds, and how far its results are from onnxruntime's; or why it failed."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    entered: dict[str, Contestant] = {
        name: each if threads == 1 else Undisturbed(each) for name, each in offers(model, threads)
    }
    failed: dict[str, str] = {}
    while True:
        try:
            found = contest(entered, arrays, rounds, lambda *_: None, clock)
        except RuntimeFailure as error:
            name = next(name for name in entered if str(error).startswith(f"{name}: "))
            failed[name] = str(error).splitlines()[0][:200]
            del entered[name]
        else:
            return _record(found) | failed


def _record(found: Mapping[str, Outcome]) -> dict[str, Any]:
    expected = found["onnxruntime"].results
    return {
        name: {
            "median": _milliseconds(each.seconds.median),
            "least": _milliseconds(each.seconds.least),
            "off": max(largest_difference(*pair) for pair in zip(each.results, expected, strict=True)),
        }
        for name, each in found.items()
    }


def _milliseconds(seconds: float) -> float:
    return round(1e3 * seconds, 4)
