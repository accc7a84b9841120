"""``python -m benchmarks.stencils [--size N] [--rounds N] [--threads N] [--json OUT]``: ours, numba by hand and numpy.

All run in one process in turns, on one thread by processor time, on more by the wall. Each gives arrays of its own, and all
are compared with float64 before anything is measured. Needs numba (dependency group ``bench``).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import graphkernel as gk
from benchmarks.contestants import LIMIT, OURS, Contestant
from benchmarks.machine import Copy, describe
from benchmarks.measure import Spread, interleaved, ratio
from benchmarks.stencils.programs import PROGRAMS

NUMBA, NUMPY = "numba", "numpy"
GREATEST_ERROR = 2e-3


def main() -> int:
    """Measures all programs."""
    arguments = _parser().parse_args()
    os.environ["NUMBA_NUM_THREADS"] = str(arguments.threads)
    from benchmarks.stencils.by_hand import BY_HAND  # numba reads the number of threads when it is imported

    load, _, _ = os.getloadavg()
    programs: dict[str, Any] = {}
    print(
        f"{'program':10s}{'ours ms':>24s}{'numba / ours':>24s}{'numpy / ours':>24s}{'a copy / ours':>24s}  kernels",
        flush=True,
    )
    for program in PROGRAMS:
        name = program.__name__
        record = measured(program, BY_HAND[name], arguments.size, arguments.rounds, arguments.threads)
        programs[name] = record
        ratios = "".join(f"{Spread(**record['times_of_ours'][who])!s:>24s}" for who in (NUMBA, NUMPY, LIMIT))
        print(f"{name:10s}{Spread(**record['milliseconds'])!s:>24s}{ratios}  {record['kernels']}", flush=True)
    whole = {
        "date": str(date.today()),
        "machine": describe(),
        "load": round(load, 1),
        "size": arguments.size,
        "threads": arguments.threads,
        "programs": programs,
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(whole, indent=1) + "\n")
    return 0


def measured(
    program: Callable[[Any], Any], by_hand: Callable[[Any], Any], size: int, rounds: int, threads: int
) -> dict[str, Any]:
    """One program on a picture of ``size x size`` float32, times in milliseconds. Raises AssertionError for wrong numbers."""
    x = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32)
    ours = gk.compile(gk.trace(program, gk.spec(x.shape, "float32")), threads=threads)
    expected = results(program(x.astype(np.float64)))
    for answer in (ours(x), results(by_hand(x))):
        for result, right in zip(answer, expected, strict=True):
            np.testing.assert_allclose(result, right, rtol=GREATEST_ERROR, atol=GREATEST_ERROR * np.abs(right).max())
    moved = x.nbytes + sum(result.nbytes for result in results(ours(x)))
    contestants = (
        Contestant(OURS, partial(ours, x)),
        Contestant(NUMBA, partial(by_hand, x)),
        Contestant(NUMPY, partial(program, x)),
        Contestant(LIMIT, Copy(moved)),
    )
    clock = time.process_time if threads == 1 else time.perf_counter
    times = interleaved(contestants, rounds, clock=clock)
    return {
        "milliseconds": asdict(Spread.of(times[OURS], 1e3)),
        "times_of_ours": {each.name: asdict(ratio(times, each.name, OURS)) for each in contestants[1:]},
        "kernels": ours.report.kernel_calls,
    }


def results(given: Any) -> tuple[Any, ...]:
    """One result or several, as several."""
    return given if isinstance(given, tuple) else (given,)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stencils", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=2048, help="rows and columns of the picture")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main())
