"""The page of programs that are no networks: one kernel beside numba by hand, and what it moves of memory on every target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from docs.markdown import RUNS, page, table
from docs.measured import read

INTRODUCTION = """Image pipelines and stencils in time (`benchmarks/stencils/programs.py`). Each becomes one kernel, whose
producers are fused into the tiles of their consumers behind their tiling: a tile of a producer is the image of its readers'
tiles under what they read, so that rows at borders are computed twice and nothing leaves the cache in between. isl proves
of every kernel that what is read was written, that tiles run in parallel without races, and that all is in bounds; an
independent checker sees the same of the finished loops. Neighbouring rows are taken four at once and share what they read
and compute ([kernelgen](kernelgen.md))."""
HAND = """Numba's programs are written by hand (`benchmarks/stencils/by_hand.py`) with the schedules that Halide's authors
publish for such pipelines: strips of rows, stage after stage inside of a strip, vectors along columns. Ours round as
the program says; of numba's `heat`, `wave` and `bank` do, and the others differ in the last bits. `pyramid` by hand adds both
rows of a square while it blurs them, which takes fewer operations.
"numba / ours" above 1 means that ours is sooner; the median of the rounds with the least and the greatest."""
MEMORY = """What moves when every operator runs alone, and what the fused kernel moves: its arguments, and temporaries that
are no tile's own, which are written and read. On Ascend tiles stay in the unified buffer, on a GPU in shared memory, where
they fit and are as many as the device has multiprocessors; tiles are whole rows, so that those of a wide picture do not,
and what is handed on goes through the device's memory between a few launches."""
DEVICES = """The same programs in the interpreter of PTX and in the simulator of AscendC, on smaller pictures; the largest
error is relative to the largest result in float64. "in memory" are temporaries that did not fit a tile."""
MEBIBYTE = 1 << 20
TARGETS = ("cpu", "gpu", "ascend")


def stencils() -> Mapping[str, str]:
    """The page of the committed runs; without one of them there is none."""
    record, devices = read("stencils.json"), read("stencil_devices.json")
    if record is None or devices is None:
        return {}
    clock = "processor time" if record["threads"] == 1 else "time on the wall"
    run = (
        f"{record['size']} x {record['size']} float32, {record['threads']} thread(s), {clock}, load {record['load']} "
        f"before the run, {record['machine']['processor']}. Run {record['date']}: `python -m benchmarks.stencils --json "
        "benchmarks/results/stencils.json`."
    )
    counted = (
        f"{devices['size']} x {devices['size']} float32. Run {devices['date']}: `python -m benchmarks.stencils.devices --json "
        "benchmarks/results/stencil_devices.json`."
    )
    times = table(("program", "ours, ms", "numba / ours", "numpy / ours", "a copy / ours"), _times(record["programs"]))
    moved = table(("program", "before, MiB", *(f"{target}, MiB" for target in TARGETS)), _moved(devices["programs"]))
    right = table(
        ("program", "target", "picture", "facts proved", "in memory, KiB", "error"), _right(devices["programs"])
    )
    parts = (
        INTRODUCTION,
        "## Beside numba",
        HAND,
        run,
        times,
        "## Memory",
        MEMORY,
        counted,
        moved,
        "## Devices",
        DEVICES,
        right,
    )
    return {"docs/stencils.md": page("Stencils", *parts, note=RUNS)}


def _times(programs: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    return [
        (
            f"`{name}`",
            f"{case['milliseconds']['median']:.2f}",
            *(_spread(case["times_of_ours"][who]) for who in ("numba", "numpy", "limit")),
        )
        for name, case in programs.items()
    ]


def _spread(of: Mapping[str, float]) -> str:
    return f"{of['median']:.2f} ({of['low']:.2f} to {of['high']:.2f})"


def _moved(programs: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    return [
        (
            f"`{name}`",
            f"{case['memory']['cpu']['before'] / MEBIBYTE:.0f}",
            *(f"{case['memory'][target]['after'] / MEBIBYTE:.0f}" for target in TARGETS),
        )
        for name, case in programs.items()
    ]


def _right(programs: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    return [
        (
            f"`{name}`",
            target,
            "x".join(map(str, found["shape"])),
            str(found["proved"]),
            f"{found['temporaries'] / 1024:.0f}",
            f"{found['error']:.0e}",
        )
        for name, case in programs.items()
        for target, found in case["devices"].items()
    ]
