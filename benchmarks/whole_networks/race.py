"""All contestants of a network in turns, in processes that stay: everybody else sleeps while one is measured.

One thread is measured by the process's processor time, which other work on the machine disturbs little; several by wall time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.whole_networks.contestants import offers
from graphkernel.cli.contest import Contestant, Outcome, contest
from graphkernel.errors import RuntimeFailure
from graphkernel.report.difference import largest_difference

Arrays = Sequence[np.ndarray[Any, Any]]


def race(model: Path, arrays: Arrays, threads: int, rounds: int) -> dict[str, Any]:
    """What each contestant took, in milliseconds, and how far its results are from onnxruntime's; or why it failed."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    entered: dict[str, Contestant] = {name: each for name, each in offers(model, threads)}
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
