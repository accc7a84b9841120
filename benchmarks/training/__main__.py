"""``python -m benchmarks.training --json OUT [--layers N] [--threads N] [--rounds N] [--only NAME]``: ours beside torch's.

All run in one process in turns, on one thread by processor time, on more by the wall. Before anything is measured, each has
made one step from the same weights, and weights and moments are compared with those of torch in float64.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import graphkernel as gk
from benchmarks.contestants import OURS, Contestant
from benchmarks.machine import describe
from benchmarks.measure import Spread, interleaved, ratio
from benchmarks.training.programs import Array, Program, programs

GREATEST_ERROR = 2e-2
"""Of float32 sums in another order, as a share of the greatest gradient of a weight."""


def main() -> int:
    """Measures all programs."""
    arguments = _parser().parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(arguments.threads)
    import torch

    torch.set_num_threads(arguments.threads)
    found: dict[str, Any] = {}
    for program in programs(arguments.layers, tiny=arguments.tiny):
        if arguments.only in program.name:
            found[program.name] = measured(program, arguments.threads, arguments.rounds)
            print(program.name, json.dumps(found[program.name], indent=1), flush=True)
    if arguments.json:
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        record = {"date": date, "machine": describe(), "threads": arguments.threads, "programs": found}
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0


def measured(program: Program, threads: int, rounds: int) -> dict[str, Any]:
    """One step: milliseconds, the times of ours that torch takes, and how far numbers are apart."""
    from benchmarks.training.by_torch import steps, truth

    graph = program.graph()
    start = program.start(graph)
    loss, right = truth(program, start)
    executable, mine = gk.compile(graph, threads=threads), start.copied()
    contestants = [Contestant(OURS, partial(executable, *mine.all))]
    losses = {OURS: float(executable(*mine.all)[0])}
    errors = {OURS: error_of({**mine.weights, **mine.moments}, right)}
    for name, step, run in steps(program, start):
        losses[name] = float(run())
        errors[name] = error_of({key: step.array(key) for key in right}, right)
        contestants.append(Contestant(name, run))
    for name, error in errors.items():
        if not (error <= GREATEST_ERROR and np.isclose(losses[name], loss, rtol=GREATEST_ERROR)):
            raise ArithmeticError(f"{program.name}: {name} is off by {error:.1e}, its loss {losses[name]} is {loss}")
    clock = time.process_time if threads == 1 else time.perf_counter
    times = interleaved(contestants, rounds, 0.0, clock)
    return {
        "milliseconds": {name: asdict(Spread.of(seconds, 1e3)) for name, seconds in times.items()},
        "times_of_ours": {name: asdict(ratio(times, name, OURS)) for name in times if name != OURS},
        "errors": errors,
        "kernels": executable.report.kernel_calls,
        "load": round(os.getloadavg()[0], 1),
    }


def error_of(after: Mapping[str, Array], truth: Mapping[str, Array]) -> float:
    """The greatest difference as a share of the greatest number of an array. First moments were zero: they are gradients.

    Some gradients are zero but for rounding, such as those of keys' biases: no array counts as smaller than a thousandth of the
    greatest of its kind.
    """
    greatest: dict[str, float] = {}
    for name, right in truth.items():
        kind = name.rpartition("_")[2]
        greatest[kind] = max(greatest.get(kind, 0.0), float(np.abs(right).max()))
    return max(
        float(np.abs(after[name].astype(np.float64) - right).max())
        / max(float(np.abs(right).max()), 1e-3 * greatest[name.rpartition("_")[2]])
        for name, right in truth.items()
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="the file to write")
    parser.add_argument("--layers", type=int, default=12, help="of BERT")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="programs whose name has this in it")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to see that it runs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
