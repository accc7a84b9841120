"""``python -m benchmarks.tuning MODEL CORPUS --json OUT``: what tuning gains on a model's kernels and on some of a corpus.

Each kernel is tuned on this machine, then once more by the worker of a dask cluster on loopback. The gain is the median of
the ratio to the untuned kernel, timed in turns after the search, with the bounds that hold it. Then every finding is followed
in a process of its own, whose kernels must be those that were measured, byte for byte; and the whole model is timed untuned
and tuned, where any of its kernels is another one.
"""

from __future__ import annotations

import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from math import exp, log
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import graphkernel as gk
import kernelgen
from benchmarks.machine import describe
from graphkernel.cli.model import extents
from graphkernel.cli.tuning import PATIENT, kernels_of
from graphkernel.runtime.inputs.samples import random_inputs
from kernelgen.errors import KernelgenError
from kernelgen.farm import Crew, Journal, answers, crew_of, local
from kernelgen.samples.smaller_shapes import argument_bytes
from kernelgen.strict_json import from_json
from kernelgen.system.cores import core_count
from kernelgen.tensor.graph import Graph
from kernelgen.tuning.database import Finding, Subject, Tunings, digest_of
from kernelgen.tuning.task import request, tuned
from tests.farm.cluster import cluster

MOST_BYTES = 16 << 20
"""Arguments of a corpus kernel that takes part; larger ones take long to measure."""

ROUNDS = 41

Kernels = Mapping[str, Subject]
"""Kernels by what they are called here."""


def corpus_kernels(folder: Path, count: int) -> Kernels:
    """So many kernels of a corpus, evenly spread among those that are small enough and compile."""
    paths = sorted(path for path in folder.iterdir() if path.suffix == ".info")
    found: dict[str, Subject] = {}
    for path in paths[:: max(1, len(paths) // (3 * count))]:
        try:
            desc = kernelgen.load_desc(path)
            if len(found) < count and argument_bytes(desc) <= MOST_BYTES:
                kernelgen.compile(desc)
                found[path.stem[:60]] = Subject(kernelgen.dump_desc(desc))
        except KernelgenError:
            continue
    return found


class Limits(NamedTuple):
    """Of the search for each kernel: plans, and seconds."""

    plans: int
    seconds: float


def tune(kernels: Kernels, limits: Limits, crew: Crew, path: Path) -> dict[str, Finding]:
    """The findings by name; what the file has is not measured again."""
    requests = ((name, request(kernel, "cpu", *limits)) for name, kernel in kernels.items())
    found: dict[str, Finding] = {}
    start = time.monotonic()
    with Journal(path) as journal:
        for name, answer in answers(tuned, requests, crew, journal, PATIENT):
            found[name] = from_json(Finding, answer)
            best = min(each.ratio.median if each.plan else 1.0 for each in found.values())
            told = f"{len(found)} of {len(kernels)} in {time.monotonic() - start:.0f} s, best so far {best:.2f}"
            print(f"{crew.name}, {told}: {name}: {found[name].ratio}, noise {found[name].noise}", flush=True)
    return {name: found[name] for name in kernels}


def replayed(kernels: Kernels, path: Path) -> dict[str, str]:
    """The digest of each kernel's text, compiled in a process of its own as the findings say."""
    program = (
        "import json, sys; from pathlib import Path; from benchmarks.tuning import followed, given;"
        " print(json.dumps(followed(given(sys.stdin.read()), Path(sys.argv[1]))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        input=json.dumps({name: kernel._asdict() for name, kernel in kernels.items()}),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def given(text: str) -> Kernels:
    """The kernels that a text names."""
    return {name: Subject(each["description"], tuple(each["constants"])) for name, each in json.loads(text).items()}


def followed(kernels: Kernels, path: Path) -> dict[str, str]:
    """As :func:`replayed`, in this process."""
    tunings, found = Tunings.read(path), dict[str, str]()
    for name, kernel in kernels.items():
        plan = tunings.plan(kernel, "cpu")
        asked = kernelgen.Plan.from_json(json.loads(plan)) if plan else None
        desc = kernelgen.load_desc(kernel.description)
        found[name] = digest_of(kernelgen.compile(desc, "cpu", asked, kernel.constants).source)
    return found


def network(graph: Graph, path: Path) -> dict[str, Any]:
    """The whole model, untuned and tuned, in turns."""
    plain, better = gk.compile(graph), gk.compile(graph, tuned=path)
    inputs = random_inputs(graph, seed=0)
    times: list[tuple[float, float]] = []
    for turn in range(ROUNDS + 3):
        spent = {exe: _seconds(exe, inputs) for exe in ((plain, better) if turn % 2 else (better, plain))}
        times.append((spent[plain], spent[better]))
    ratios = sorted(after / before for before, after in times[3:])
    cut = len(ratios) // 4
    return {
        "untuned_ms": round(statistics.median(before for before, _ in times[3:]) * 1e3, 3),
        "ratio": {"median": statistics.median(ratios), "quartiles": [ratios[cut], ratios[-1 - cut]]},
        "rounds": ROUNDS,
    }


def _seconds(exe: Any, inputs: Sequence[Any]) -> float:
    start = time.perf_counter()
    exe(*inputs)
    return time.perf_counter() - start


def row(here: Finding, there: Finding, again: str) -> dict[str, Any]:
    """What is told of a kernel: both findings, and whether following the first gave what was measured."""
    overlap = here.ratio.low <= there.ratio.high and there.ratio.low <= here.ratio.high
    return {
        "untuned_us": round(here.seconds * 1e6, 2), "plans": here.trials, "kept": bool(here.plan),
        "ratio": [here.ratio.low, here.ratio.median, here.ratio.high], "noise": here.noise,
        "changes": list(here.changes), "same_bytes_again": again == here.source,
        "dask": {
            "kept": bool(there.plan), "ratio": [there.ratio.low, there.ratio.median, there.ratio.high],
            "noise": there.noise, "same_text": there.source == here.source, "measurements_agree": overlap,
        },
    }  # fmt: skip


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts, and the geometric mean of the ratios: those that are kept, and 1 for the others."""
    kept = [each for each in rows if each["kept"]]
    ratios = [each["ratio"][1] if each["kept"] else 1.0 for each in rows]
    return {
        "kernels": len(rows), "kept": len(kept),
        "best": min(ratios, default=1.0), "mean_of_kept": _mean([each["ratio"][1] for each in kept]),
        "mean_of_all": _mean(ratios), "same_bytes_again": sum(each["same_bytes_again"] for each in rows),
        "dask_same_choice": sum(each["dask"]["same_text"] for each in rows),
        "dask_same_choice_where_measurements_agree": [
            sum(each["dask"]["same_text"] for each in rows if each["dask"]["measurements_agree"]),
            sum(each["dask"]["measurements_agree"] for each in rows),
        ],
    }  # fmt: skip


def _mean(ratios: Sequence[float]) -> float:
    return exp(sum(map(log, ratios)) / len(ratios)) if ratios else 1.0


def main(
    model: Annotated[Path, typer.Argument(help="an ONNX model", exists=True)],
    corpus: Annotated[Path, typer.Argument(help="a folder of composite JSON files", exists=True)],
    dims: Annotated[list[str] | None, typer.Option("--dim", help="N=8")] = None,
    count: Annotated[int, typer.Option(help="kernels of the corpus")] = 20,
    most: Annotated[int, typer.Option(help="plans to try for a kernel")] = 10,
    seconds: Annotated[float, typer.Option(help="to search for each kernel")] = 6.0,
    json_out: Annotated[Path | None, typer.Option("--json", help="where the record goes")] = None,
    findings: Annotated[Path | None, typer.Option(help="a folder for findings: a run that was stopped goes on")] = None,
) -> None:
    """Tunes here and on a cluster, follows the findings, and times the model."""
    graph = gk.load(model, extents(dims or ()))
    of_model = kernels_of(gk.optimize(graph))
    kernels = {**{key[:12]: each for key, each in of_model.items()}, **corpus_kernels(corpus, count)}
    with tempfile.TemporaryDirectory() as folder:
        files = {who: (findings or Path(folder)) / f"{who}.jsonl" for who in ("here", "there")}
        with local(1) as crew:
            here = tune(kernels, Limits(most, seconds), crew, files["here"])
        with cluster(1) as engine, crew_of(engine.address) as crew:
            there = tune(kernels, Limits(most, seconds), crew, files["there"])
        again = replayed(kernels, files["here"])
        rows = {name: row(here[name], there[name], again[name]) for name in kernels}
        whole = network(graph, files["here"]) if any(here[key[:12]].plan for key in of_model) else None
    parts = {"model": [key[:12] for key in of_model]}
    parts["corpus"] = [name for name in kernels if name not in parts["model"]]
    record: dict[str, Any] = {
        "date": str(datetime.datetime.now(datetime.UTC).date()), "machine": describe(), "threads": core_count(),
        "load": round(os.getloadavg()[1], 1), "plans_at_most": most, "seconds_at_most": seconds,
        "model": model.name, "dims": dims or [], "network": whole,
        "summary": {part: summary([rows[name] for name in names]) for part, names in parts.items()},
        "kernels": rows, "keys": {name: each.key for name, each in kernels.items()},
    }  # fmt: skip
    print(json.dumps({"summary": record["summary"], "network": whole}, indent=1))
    if json_out:
        json_out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
