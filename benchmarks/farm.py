"""``python -m benchmarks.farm CORPUS --json OUT``: what handing out work costs, and what a shared cache is asked.

``workers``: files verified by 1, 2 and 4 processes of this machine, in turns. ``simulated``: answers in a second from so many
workers that each take so long and compute nothing, against what they could give at best: all of the difference is the time
of the one who hands out. ``exchanges``: how often the place of a shared cache is asked, which times its latency is the wait.
"""

from __future__ import annotations

import datetime
import heapq
import json
import os
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer

import graphkernel as gk
from benchmarks.machine import describe
from graphkernel import ops
from kernelgen import options
from kernelgen.farm import Crew, answers
from kernelgen.farm.sandbox import told
from kernelgen.system.cores import core_count
from kernelgen.verify.pool import Job, verify_files

SIMULATED = tuple((workers, seconds) for workers in (1, 16, 256, 4096) for seconds in (0.01, 0.1, 1.0))
SPAN = 5.0
"""Seconds that a simulation lasts, about."""


class Simulated(Executor):
    """Any number of workers, each of whom takes so many seconds for an answer."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.numbers = seconds, count()
        self.due: list[tuple[float, int, Future[bytes]]] = []
        self.changed = threading.Condition()
        threading.Thread(target=self._answer, daemon=True).start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """An answer for later."""
        future: Future[bytes] = Future()
        with self.changed:
            heapq.heappush(self.due, (time.monotonic() + self.seconds, next(self.numbers), future))
            self.changed.notify()
        return future

    def _answer(self) -> None:
        reply = told(1)
        while True:
            with self.changed:
                while not self.due:
                    self.changed.wait()
                at, _, future = self.due[0]
                if at <= time.monotonic():
                    heapq.heappop(self.due)
                else:
                    self.changed.wait(at - time.monotonic())
                    continue
            future.set_result(reply)


def nothing(request: bytes) -> bytes:
    """What simulated workers would compute."""
    return told(len(request))


def simulated(workers: int, seconds: float) -> dict[str, float]:
    """Answers in a second, and what the workers could give at best."""
    crew = Crew("simulated", Simulated(seconds), lambda: workers)
    number = max(workers * 2, min(int(SPAN * workers / seconds), 60_000))
    start, spent = time.perf_counter(), time.thread_time()
    found = sum(1 for _ in answers(nothing, ((k, str(k).encode()) for k in range(number)), crew))
    assert found == number, "each once"
    took, spent = time.perf_counter() - start, time.thread_time() - spent
    return {
        "workers": workers, "seconds": seconds, "answers": number, "answers_per_second": round(number / took, 1),
        "at_best": workers / seconds, "processor_us_per_answer": round(1e6 * spent / number, 1),
    }  # fmt: skip


def workers(corpus: Path, files: int, rounds: int) -> dict[str, Any]:
    """Seconds for the same files with 1, 2 and 4 processes, in turns; each starts its processes anew."""
    paths = sorted(path for path in corpus.iterdir() if path.suffix == ".info")
    paths = [path for path in paths if path.stat().st_size < 6000]
    chosen = paths[:: max(1, len(paths) // files)][:files]
    times: dict[int, list[float]] = {1: [], 2: [], 4: []}
    for _ in range(rounds):
        for jobs, spent in times.items():
            start = time.perf_counter()
            assert len(verify_files(chosen, Job(), jobs)) == len(chosen), "each once"
            spent.append(time.perf_counter() - start)
    return {
        "files": len(chosen), "rounds": rounds,
        "seconds": {str(jobs): round(statistics.median(spent), 2) for jobs, spent in times.items()},
    }  # fmt: skip


class Counting:
    """A file system of fsspec's whose calls are counted."""

    def __init__(self, files: Any, calls: Counter[str]) -> None:
        self.files, self.calls, self.protocol = files, calls, "counted"

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self.files, name)


def exchanges() -> dict[str, Mapping[str, int]]:
    """How often the place is asked: by who compiles, by another machine that loads, and by one that has it."""
    found: dict[str, Mapping[str, int]] = {}

    def net(x: Any) -> Any:
        e = ops.exp(x - ops.reduce_max(x, axis=(1,), keep_dims=True))
        return e / ops.reduce_sum(e, axis=(1,), keep_dims=True)

    graph = gk.trace(net, gk.spec((64, 300), "float32"))
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "GRAPHKERNEL_SHARED_CACHE": "memory://kernels",
            "GRAPHKERNEL_SHARED_CACHE_KEY": "of this benchmark",
        }
        shared = options.shared_cache()
        assert shared is not None, "it was asked for"
        for who, machine in (("compiles", "one"), ("loads", "two"), ("has it", "two")):
            calls: Counter[str] = Counter()
            _ = shared._files  # pyright: ignore[reportPrivateUsage]  # the real one, before it is wrapped
            inner = shared._found  # pyright: ignore[reportPrivateUsage]
            real = inner[0].files if isinstance(inner[0], Counting) else inner[0]
            shared._found = (Counting(real, calls), inner[1])  # pyright: ignore[reportPrivateUsage]
            os.environ["GRAPHKERNEL_CACHE_DIR"] = f"{folder}/{machine}"
            gk.compile(graph)
            calls.pop("makedirs", None)  # what object stores do without
            calls.pop("protocol", None)
            found[who] = dict(calls)
    return found


def main(
    corpus: Annotated[Path, typer.Argument(help="a folder of composite JSON files", exists=True)],
    files: Annotated[int, typer.Option(help="how many of them")] = 24,
    rounds: Annotated[int, typer.Option(help="how often with each number of workers")] = 3,
    json_out: Annotated[Path | None, typer.Option("--json", help="where the record goes")] = None,
) -> None:
    """Measures all three."""
    record = {
        "date": str(datetime.datetime.now(datetime.UTC).date()), "machine": describe(), "cores": core_count(),
        "load": os.getloadavg()[0], "simulated": [simulated(*each) for each in SIMULATED],
        "exchanges": exchanges(), "workers": workers(corpus, files, rounds),
    }  # fmt: skip
    print(json.dumps(record, indent=1))
    if json_out:
        json_out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
