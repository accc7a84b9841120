"""The whole run on a device, within its time: correctness, then the classes in processes of their own; the record as it grows.

A class has a budget. A process that is silent for longer is ended, and the next one goes on with the class after it.
"""

from __future__ import annotations

import json
import os
import platform
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from statistics import geometric_mean
from typing import IO, Any

from benchmarks.gpu import estimates
from benchmarks.gpu.cases import CASES
from benchmarks.gpu.contestants import CAPTURED, EAGER, MODES, OURS
from benchmarks.gpu.correctness import catalogue, every, verified
from benchmarks.gpu.estimates import MACHINE
from kernelgen.targets.gpu.launch.device import NoDevice, find_device

TOTAL_SECONDS = 460.0  # under eight minutes, with the time to start and to write
CLASS_SECONDS = 75.0
START_SECONDS = 60.0  # loading torch, and its first compilation
CATALOGUE_SECONDS, CORPUS_SECONDS = 75.0, 100.0
CORPUS_FILES = 200
DISTRIBUTIONS = ("graphkernel", "numpy", "islpy", "cupy-cuda13x", "torch", "triton", "nvidia-cuda-nvrtc")
Record = dict[str, Any]
Save = Callable[[Record], None]


@dataclass(frozen=True)
class Request:
    """What to run. ``corpus`` None leaves the corpus out; ``names`` are classes, none means all."""

    names: Sequence[str]
    corpus: Path | None
    tiny: bool
    with_peers: bool
    seconds: float = TOTAL_SECONDS


def run(request: Request, save: Save, known: Record | None = None) -> Record:
    """The record; ``save`` is called with what there is after every part. Without a device it holds estimates, beside what
    a device measured before, the record ``known``, or says that there was none.
    """
    device = find_device()
    record: Record = {"versions": _versions(), "tiny": request.tiny}
    if isinstance(device, NoDevice):
        record = dict(known) if known else record | {"device": None, "reason": device.reason}
        record |= {"estimate": {"machine": MACHINE, "classes": {}}}
        for case in CASES:
            if case.name in request.names or not request.names:
                record["estimate"]["classes"][case.name] = estimates.guarded(case, request.tiny)
                print(estimate_line(case.name, record["estimate"]["classes"][case.name]), flush=True)
                save(record)
        return record
    runtime = device.cupy.cuda.runtime
    record["device"] = {
        "name": device.name, "arch": device.arch, "driver": runtime.driverGetVersion(), "cuda": runtime.runtimeGetVersion()
    }  # fmt: skip
    start = time.perf_counter()
    record["correctness"] = correctness = {}
    for part, found in _correctness(request):
        correctness[part] = found
        print(part, {key: value for key, value in found.items() if key != "faults"}, flush=True)
        save(record)
    record["classes"] = {}
    _classes(request, record, save, request.seconds - (time.perf_counter() - start))
    record["seconds"] = round(time.perf_counter() - start, 1)
    record["summary"] = summary(record)
    return record


def _correctness(request: Request) -> list[tuple[str, Record]]:
    names = ("Add", "ReduceSum") if request.tiny else ()
    with tempfile.TemporaryDirectory() as folder:
        catalogue(Path(folder), names)
        found = [("catalogue", verified(sorted(Path(folder).glob("*.info")), "gpu", CATALOGUE_SECONDS))]
    if request.corpus is not None:
        files = every(sorted(request.corpus.glob("*.info")), 2 if request.tiny else CORPUS_FILES)
        found.append(("corpus", verified(files, "gpu", CORPUS_SECONDS)))
    return found


def _classes(request: Request, record: Record, save: Save, seconds: float) -> None:
    """Measures the classes; a process that hangs or dies costs the class that it was at."""
    left = [case.name for case in CASES if case.name in request.names or not request.names]
    deadline = time.perf_counter() + seconds
    while left and time.perf_counter() < deadline:
        with tempfile.TemporaryDirectory() as folder:
            done = _child(request, left, record, save, deadline, Path(folder))
        left = left[done:]
    record["classes"].update({name: {"failed": "the time was up"} for name in left})


def _child(request: Request, names: Sequence[str], record: Record, save: Save, deadline: float, folder: Path) -> int:
    """How many of the classes are dealt with: measured, or given up because the process hung or died at them."""
    caches = {"GRAPHKERNEL_CACHE_DIR": str(folder / "kernels"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}
    options = [*(["--tiny"] if request.tiny else []), *([] if request.with_peers else ["--no-peers"])]
    command = [sys.executable, "-m", "benchmarks.gpu.classes", *names, *options]
    done, patience = 0, START_SECONDS + CLASS_SECONDS
    with subprocess.Popen(command, env=os.environ | caches, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None, "asked for above"
        lines = _lines(process.stdout)
        try:
            while done < len(names):
                line = lines.get(timeout=max(min(patience, deadline - time.perf_counter()), 0.1))
                if line is None:
                    record["classes"][names[done]] = {"failed": f"the process ended with code {process.wait()}"}
                    return done + 1
                done += _taken(json.loads(line), record)
                save(record)
                patience = CLASS_SECONDS
        except queue.Empty:
            record["classes"][names[done]] = {"failed": f"not done after {patience:.0f} s"}
            return done + 1
        finally:
            process.kill()
    return done


def _taken(found: Record, record: Record) -> int:
    """Puts what a child said into the record; 1 when it was a class."""
    if "class" not in found:
        record.update(found)
        return 0
    record["classes"][found["class"]] = found["record"]
    print(table_line(found["class"], found["record"]), flush=True)
    return 1


def _lines(stream: IO[str]) -> queue.Queue[str | None]:
    """The lines as they come; None at the end. Lines of other programs are left out."""
    found: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in stream:
            if line.startswith("{"):
                found.put(line)
        found.put(None)

    threading.Thread(target=read, daemon=True).start()
    return found


def table_line(name: str, record: Record) -> str:
    """A class in one line: our time, what the others take of it, and the fraction of the copy's bandwidth."""
    if "failed" in record:
        return f"{name:24s} {record['failed']}"
    ours, against = record["contestants"][OURS], record["times_of_ours"]
    others = "  ".join(
        f"{other} {against[other]['median']:.2f}x" for other in (CAPTURED, *MODES, EAGER) if other in against
    )
    return (
        f"{name:24s} {ours['milliseconds']['median']:9.4f} ms  {ours['bandwidth_fraction']:6.1%} of copy  {others}"
        f"{'' if ours['right'] else '  WRONG'}"
    )


def estimate_line(name: str, found: Record) -> str:
    """A class in one line where nothing could be measured."""
    if "failed" in found:
        return f"{name:24s} {found['failed']}"
    share = f"{found['bandwidth_fraction']:6.1%} of copy" if found["bandwidth_fraction"] else "not all of it by kernels"
    return f"{name:24s} {found['milliseconds']:9.4f} ms estimated on {MACHINE}  {share}"


def summary(record: Record) -> Record:
    """Geometric means over the classes that were measured: torch's best mode over ours, the copy's share where launches are
    not all of it, cold compiles.
    """
    rows = [one for one in record["classes"].values() if "failed" not in one]
    best = [min(one["times_of_ours"][mode]["median"] for mode in MODES) for one in rows
            if all(mode in one["times_of_ours"] for mode in MODES)]  # fmt: skip
    cold = [
        min(one["contestants"][mode]["cold_compile_ms"] for mode in MODES) / one["contestants"][OURS]["cold_compile_ms"]
        for one in rows
        if all(mode in one["contestants"] for mode in MODES)
    ]
    small = {case.name for case in CASES if case.small}
    shares = [
        one["contestants"][OURS]["bandwidth_fraction"]
        for name, one in record["classes"].items()
        if "failed" not in one and name not in small
    ]
    return {
        "measured": len(rows),
        "right": sum(one["contestants"][OURS]["right"] for one in rows),
        "torch_over_ours": geometric_mean(best) if best else None,
        "bandwidth_fraction": geometric_mean(shares) if shares else None,
        "torch_cold_compile_over_ours": geometric_mean(cold) if cold else None,
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
