"""``python -m tests.random_graphs --count 20000 --seed 0 --json OUT``: random graphs x flags keep their numbers.

Each is optimized, and its plan verified and run in poisoned memory, on numpy and on onnxruntime. Each failure is made small
and printed: a program that rebuilds it, the graph and the flags. The record holds how many graphs there were, which
operators they used, and every failure; it is written again and again while the run goes on. Ends with status 1 when there
was a failure.
"""

from __future__ import annotations

import argparse
import datetime
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "support"))  # where pytest finds the helpers too

from graph_samples import Sample, case, failure, smallest

CHUNK = 50
MOST_SHRUNK = 20  # failures that are made small; the rest is listed as it is


def main() -> None:
    """Runs the samples in processes, with a line of progress."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_graphs", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; the others follow")
    parser.add_argument("--json", metavar="OUT", help="where the record goes")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    start = time.perf_counter()
    record: dict[str, Any] = {"graphs": 0, "failures": []}
    for record in run(arguments.seed, arguments.count, arguments.processes):
        record |= {
            "seconds": round(time.perf_counter() - start), "date": str(datetime.datetime.now(datetime.UTC).date())
        }  # fmt: skip
        if arguments.json:
            Path(arguments.json).write_text(json.dumps(record, indent=1) + "\n")
    print(f"{record['graphs']} graphs, {len(record['failures'])} failures")
    sys.exit(bool(record["failures"]))


def run(first: int, count: int, processes: int) -> Iterator[dict[str, Any]]:
    """The record of ``count`` samples from a seed on, after every chunk of them."""
    failures: list[dict[str, Any]] = []
    seen: Counter[str] = Counter()
    with ProcessPoolExecutor(processes) as pool:
        starts = range(first, first + count, CHUNK)
        sizes = [min(CHUNK, first + count - start) for start in starts]
        for found, counted in pool.map(chunk, starts, sizes):
            seen += counted
            for seed, why in found:
                failures.append(shown(seed, why, shrink=len(failures) < MOST_SHRUNK))
            print(
                f"\r{seen['graphs']} of {count} graphs, {len(failures)} failures", end="", file=sys.stderr, flush=True
            )
            uses = {name: number for name, number in seen.most_common() if name != "graphs"}
            yield {"seed": first, "graphs": seen["graphs"], "failures": failures, "uses": uses}
    print(file=sys.stderr)


def chunk(first: int, count: int) -> tuple[list[tuple[int, str]], Counter[str]]:
    """The failures among some samples, and how many graphs used what."""
    logging.disable(logging.WARNING)
    seen: Counter[str] = Counter()
    found: list[tuple[int, str]] = []
    for seed in range(first, first + count):
        seen.update(uses(seed))
        why = failure(Sample.of(seed))
        if why is not None:
            found.append((seed, why))
    return found, seen


def uses(seed: int) -> Iterator[str]:
    """What a sample is an example of, once each: operators, properties of the graph, flags."""
    given = case(Sample.of(seed))
    graph = given.graph
    yield "graphs"
    yield from sorted({node.op.name for node in graph.operators})
    yield f"{given.options['target']} at level {given.options['opt_level']}"
    yield from (f"flag {flag}" for flag in given.options if flag not in ("opt_level", "target"))
    yield f"data type {graph.inputs[0].type.dtype.name}"
    traits = {
        "symbolic extents": not all(value.type.is_static for value in graph.inputs),
        "zero-size": any(array.size == 0 for array in given.arrays),
        "scalar inputs": any(array.ndim == 0 for array in given.arrays),
        "written in place": bool(graph.aliases),
        "several outputs": len(graph.outputs) > 1,
        "several users of a value": any(len(users) > 1 for users in graph.users.values()),
    }
    yield from (name for name, holds in traits.items() if holds)


def shown(seed: int, why: str, *, shrink: bool) -> dict[str, Any]:
    """Prints a failure, small where that is wanted."""
    again = shrink and failure(Sample.of(seed)) is not None  # one that depends on threads may not come again
    sample, why = smallest(Sample.of(seed)) if again else (Sample.of(seed), why)
    given = case(sample)
    print(f"\n{why}\nfailure({sample})\nflags: {dict(given.options)}\n{given.graph}", flush=True)
    return {"seed": seed, "why": why, "sample": repr(sample), "options": dict(given.options), "graph": str(given.graph)}


if __name__ == "__main__":
    main()
