"""``python -m benchmarks.overlap --json OUT --picture SVG``: a product that is added up over ranks, whole and in chunks.

The link is simulated. The clock is the processor's time of this process: products are really computed, and what else runs
on the machine does not count. A transfer takes its latency and its bytes over the bandwidth on that clock and none of the
processor's time, one transfer after another; waiting for one moves the clock on. What equal ranks would give is put into the
result off the clock. So the figures say what overlapping gains where a network card moves bytes by itself, and nothing about
any one network. Chunk counts are interleaved in one run on one core; the median of the rounds is told with the least and
the greatest. Products are kernels of ours for any number of rows, with constant weights; numpy's product, which is sent
whole, is timed beside them. A case ends with its rounds or its share of ``--seconds``, on the processor's clock.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import graphkernel as gk
from benchmarks.machine import describe
from graphkernel.communication.alone import Alone
from graphkernel.communication.chunks import Costs, chunks_of
from graphkernel.communication.communicator import Array, Pending
from graphkernel.runtime.steps.reduced_product import reduced_product, reduced_rows
from kernelgen.tensor.types import Attrs

COUNTS = (0, 1, 2, 4, 8, 16)
"""Of chunks; 0 is numpy's product, which is sent whole."""
LEAST_ROUNDS = 3
LABELS = {0: "numpy", 1: "unfused"}
RANKS = 4
LINKS = {"1 Gbit/s": (5e-5, 1.25e8), "10 Gbit/s": (5e-5, 1.25e9), "25 Gbit/s": (3e-5, 3.1e9)}
SHAPES = ((512, 512, 1024), (2048, 256, 1024), (2048, 1024, 1024))
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass
class Clock:
    """The processor's time of this process, and what was waited for."""

    waited: float = 0.0

    def now(self) -> float:
        """Seconds."""
        return time.process_time() + self.waited


class _Transfer(NamedTuple):
    """What is under way on the link until ``end``, in seconds of the clock."""

    clock: Clock
    end: float

    def wait(self) -> None:
        """Moves the clock to the end, if that is still to come."""
        self.clock.waited += max(0.0, self.end - self.clock.now())


Moments = tuple[float, float, float]
"""When a chunk was computed, when its transfer began, and when that ended: seconds."""


@dataclass(frozen=True)
class SimulatedLink(Alone):
    """One of several equal ranks on a ring: each sends 2 (n - 1) / n of the bytes of what is added up."""

    latency: float = 0.0
    bandwidth: float = 1.0
    clock: Clock = field(default_factory=Clock)
    transfers: list[Moments] = field(default_factory=list[Moments])

    def all_reduce(self, x: Array, out: Array, op: str) -> Pending:
        """As many times ``x``, the ``op`` of ``out`` being a sum."""
        now = self.clock.now()
        begin = max(now, self.transfers[-1][2]) if self.transfers else now
        end = begin + self.latency + 2 * (RANKS - 1) / RANKS * x.nbytes / self.bandwidth
        self.transfers.append((now, begin, end))
        np.multiply(x, RANKS, out=out)
        self.clock.waited -= self.clock.now() - now
        return _Transfer(self.clock, end)


class Product:
    """The product of one shape: rows of it by a kernel, or all of it by numpy."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        rows, inner, columns = shape
        draw = np.random.default_rng(0)
        self.x, self.w = (draw.standard_normal(size).astype(np.float32) for size in ((rows, inner), (inner, columns)))
        self.rows, self.out, self.wanted = *np.empty((2, rows, columns), np.float32), RANKS * (self.x @ self.w)
        self.kernel = gk.compile(gk.trace(lambda x: x @ self.w, gk.spec(("rows", inner))))

    def some(self, rows: slice) -> None:
        """Computes rows, as a plan does."""
        self.kernel(self.x[rows], out=[self.rows[rows]])

    def start(self, link: SimulatedLink, count: int) -> Pending:
        """The sum over ranks, in so many chunks; in none by numpy for 0."""
        if count:
            return reduced_rows(link, "sum", self.some, self.rows, self.out, count)
        return reduced_product(link, Attrs.of(op="sum"), (self.x, self.w), self.out)


def run(link: SimulatedLink, product: Product, count: int) -> tuple[float, list[Moments]]:
    """The seconds of one call, and the moments of its chunks since it began."""
    link.transfers.clear()
    start = link.clock.now()
    product.start(link, count).wait()
    took = link.clock.now() - start
    return took, [(done - start, begin - start, end - start) for done, begin, end in link.transfers]


def measured(product: Product, told: tuple[float, float], rounds: int, seconds: float) -> Iterator[dict[str, Any]]:
    """A record for each chunk count."""
    link = SimulatedLink(latency=told[0], bandwidth=told[1])
    for count in COUNTS:  # each is right, and warm
        run(link, product, count)
        np.testing.assert_allclose(product.out, product.wanted, rtol=1e-4, atol=1e-3)
    found: dict[int, list[tuple[float, list[Moments]]]] = {count: [] for count in COUNTS}
    end = time.process_time() + seconds
    while len(found[1]) < rounds and (len(found[1]) < LEAST_ROUNDS or time.process_time() < end):
        for count in COUNTS:
            found[count].append(run(link, product, count))
    whole = statistics.median(took for took, _ in found[1])
    for count in COUNTS:
        times = sorted(took for took, _ in found[count])
        middle = found[count][[took for took, _ in found[count]].index(times[len(times) // 2])]
        yield {
            "chunks": count, "rounds": len(times), "millitimes": round(middle[0] * 1e3, 3),
            "least": round(times[0] * 1e3, 3), "greatest": round(times[-1] * 1e3, 3),
            "whole_over_this": round(whole / middle[0], 3),
            "moments_ms": [[round(moment * 1e3, 3) for moment in moments] for moments in middle[1]],
        }  # fmt: skip


def record(rounds: int, seconds: float) -> dict[str, Any]:
    """All shapes over all links, each told of as soon as it is measured."""
    cases: list[dict[str, Any]] = []
    for shape in SHAPES:
        product, result = Product(shape), (shape[0], shape[2])
        for name, (latency, bandwidth) in LINKS.items():
            costs = Costs(bandwidth * RANKS / (2 * (RANKS - 1)))
            share = seconds / len(SHAPES) / len(LINKS)
            case: dict[str, Any] = {
                "shape": shape, "link": name, "latency_us": latency * 1e6, "bytes_per_second": bandwidth,
                "chosen_blindly": chunks_of(result, 4), "chosen_for_this_link": chunks_of(result, 4, costs),
                "counts": list(measured(product, (latency, bandwidth), rounds, share)),
            }  # fmt: skip
            cases.append(case)
            told = ", ".join(
                f"{entry['chunks'] or 'numpy'}: {entry['whole_over_this']:.2f}" for entry in case["counts"]
            )
            print(f"{shape} {name}: {told}; chosen {case['chosen_blindly']}", flush=True)
    return {"ranks": RANKS, "link": "simulated", "rounds": rounds, "dtype": "float32", "threads": 1, "cases": cases}


def gain(case: dict[str, Any]) -> float:
    """What the best number of chunks gains over a single one."""
    return max(float(entry["whole_over_this"]) for entry in case["counts"])


def picture(case: dict[str, Any]) -> str:
    """When the processor multiplies and when the link is busy, a pair of bars for each chunk count."""
    width, left, height = 760.0, 90.0, 30
    scale = (width - left - 60) / max(entry["milliseconds"] for entry in case["counts"])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {len(case["counts"]) * (height + 14) + 50}" '
        'font-family="sans-serif" font-size="12">',
        f'<text x="4" y="16">{"x".join(map(str, case["shape"]))} float32 over {RANKS} ranks, {case["link"]} (simulated): '
        "product in blue, transfers in orange</text>",
    ]
    for number, entry in enumerate(case["counts"]):
        y = 30 + number * (height + 14)
        label = LABELS.get(entry["chunks"], f"{entry['chunks']} chunks")
        parts.append(f'<text x="4" y="{y + 18}">{label}</text>')
        since = 0.0
        for done, begin, end in entry["moments_ms"]:
            parts.append(_bar(left + since * scale, y, (done - since) * scale, "#4878a8"))
            parts.append(_bar(left + begin * scale, y + 15, (end - begin) * scale, "#e08a3c"))
            since = done
        parts.append(
            f'<text x="{left + entry["milliseconds"] * scale + 3:.1f}" y="{y + 20}">{entry["milliseconds"]:.1f} ms</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _bar(x: float, y: float, width: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y}" width="{max(width - 0.6, 0.4):.1f}" height="13" fill="{colour}"/>'


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overlap", description=__doc__)
    parser.add_argument("--json", required=True, metavar="OUT")
    parser.add_argument("--picture", metavar="SVG", help="the timeline of one case")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the processor's time, for all cases")
    arguments = parser.parse_args()
    if any(os.environ.get(name) != "1" for name in THREADS):
        command = [sys.executable, "-m", "benchmarks.overlap", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | dict.fromkeys(THREADS, "1"))
    found: dict[str, Any] = record(arguments.rounds, arguments.seconds) | {
        "date": str(datetime.datetime.now(datetime.UTC).date()),
        "machine": describe(),
    }
    Path(arguments.json).write_text(json.dumps(found, indent=1) + "\n")
    if arguments.picture:
        Path(arguments.picture).write_text(picture(max(found["cases"], key=gain)))


if __name__ == "__main__":
    main()
