"""What a warm start costs in a fresh process, beside onnxruntime: ``python -m benchmarks.warm_start MODEL... [--json OUT]``.

Three ways, in turns, each in processes of its own: an onnxruntime session as it comes; ``gk.compile(gk.load(model))`` with a
filled cache; ``gk.load_compiled`` of a package. ``ready`` is from the first import until the callable is there, imports
included; ``first`` until the first result. Wall time says what a user waits for, processor time is steadier where others work.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from benchmarks.child import told_by
from benchmarks.machine import describe
from benchmarks.models.children import draw
from graphkernel.report.table import print_table

PROGRAM = """
import json, sys, time
marks = []
def mark():
    marks.append((time.perf_counter() * 1e3, time.process_time() * 1e3))
mark()
{ready}
mark()
import numpy
with numpy.load(sys.argv[2]) as file:
    given = {{name: file[name] for name in file.files}}
mark()
{first}
mark()
between = [[b - a for a, b in zip(one, other)] for one, other in zip(marks, marks[1:])]
print(json.dumps({{"ready": between[0], "first": [a + b for a, b in zip(between[0], between[2])]}}))
"""
"""A process of one way: wall and processor time in milliseconds until it is ready, and until the first result."""

WAYS: Mapping[str, tuple[str, str]] = {
    "onnxruntime": (
        "import onnxruntime\n"
        "onnxruntime.set_default_logger_severity(4)\n"
        "run = onnxruntime.InferenceSession(sys.argv[1], providers=['CPUExecutionProvider'])",
        "run.run(None, given)",
    ),
    "cache": ("import graphkernel as gk\nrun = gk.compile(gk.load(sys.argv[1]))", "run(*given.values())"),
    "package": ("import graphkernel as gk\nrun = gk.load_compiled(sys.argv[3])", "run(*given.values())"),
}
CLOCKS = ("wall", "cpu")
Times = dict[str, dict[str, dict[str, float]]]


def warm_start(model: Path, rounds: int) -> Times:
    """Median milliseconds by way, by ``ready`` and ``first``, by clock.

    Raises ``ValueError`` where onnxruntime takes no inputs that were tried.
    """
    with tempfile.TemporaryDirectory() as folder:
        inputs, package = Path(folder, "inputs0.npz"), Path(folder, "model.gkx")
        environment = {
            "GRAPHKERNEL_CACHE_DIR": str(Path(folder, "cache")),
            "PYTHONPYCACHEPREFIX": str(Path(folder, "compiled")),  # what is installed has its bytecode beside it
        }
        if refused := draw(model, folder):
            raise ValueError(f"{model}: onnxruntime {refused}")
        build = f"import graphkernel as gk; gk.compile(gk.load({str(model)!r})).save({str(package)!r})"
        told_by(["-c", build], environment)
        runs: dict[str, list[dict[str, list[float]]]] = {way: [] for way in WAYS}
        for number in range(rounds + 1):  # the first round brings files into memory
            for way, (ready, first) in WAYS.items():
                program = PROGRAM.format(ready=ready, first=first)
                told = told_by(["-c", program, str(model), str(inputs), str(package)], environment)
                if number:
                    runs[way].append(told)
    return {
        way: {
            part: {clock: round(median(run[part][k] for run in found), 1) for k, clock in enumerate(CLOCKS)}
            for part in ("ready", "first")
        }
        for way, found in runs.items()
    }


def rows(name: str, times: Times) -> list[tuple[object, ...]]:
    """A row for each way: milliseconds, and how many times onnxruntime's."""
    found: list[tuple[object, ...]] = []
    for way, parts in times.items():
        numbers: list[str] = []
        for part in parts:
            for clock in CLOCKS:
                own, peer = parts[part][clock], times["onnxruntime"][part][clock]
                numbers += [f"{own:.0f}", f"{own / peer:.2f}"]
        found.append((name, way, *numbers))
    return found


def main() -> None:
    """Reads the arguments, measures, prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found: dict[str, Times] = {}
    load = os.getloadavg()[0]
    for model in arguments.models:
        found[model.stem] = warm_start(model, arguments.rounds)
        print(f"{model.stem} measured", file=sys.stderr, flush=True)
    header = (
        "model",
        "way",
        *(head for part in ("ready", "first") for clock in CLOCKS for head in (f"{part} {clock}", "x")),
    )
    print_table(header, [row for name, times in found.items() for row in rows(name, times)])
    if arguments.json is not None:
        record = {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "machine": describe(),
            "load": [round(load, 1), round(os.getloadavg()[0], 1)],
            "rounds": arguments.rounds,
            "models": found,
        }
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
