"""The command tune: measures plans for the kernels of a model, and keeps what it finds out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from graphkernel.cli.base import Dims, Flags, Level, Model, app, say
from graphkernel.cli.model import graph_of
from graphkernel.cli.progress import progress
from graphkernel.driver import optimize
from graphkernel.handoff import tuned_as
from graphkernel.report.page.counted import counted
from kernelgen.farm import Journal, Policy, answers, crew_of
from kernelgen.strict_json import from_json
from kernelgen.tensor.graph import Graph
from kernelgen.tuning.database import Finding, Subject
from kernelgen.tuning.task import USUAL_SECONDS, request, tuned

PATIENT = Policy(patience=180.0)
"""Measuring takes its time, and a second measurement beside the first one disturbs both."""


@app.command()
def tune(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="the file of findings; one that is there is added to")],
    dims: Dims = None,
    opt_level: Level = 2,
    flags: Flags = "",
    executor: Annotated[
        str | None, typer.Option(help="who measures: dask://HOST:PORT or package.module:function; none: this machine")
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="plans to try for a kernel")] = 40,
    seconds: Annotated[float, typer.Option(min=0.1, help="to search for each kernel")] = USUAL_SECONDS,
) -> None:
    """Look for faster plans of a model's kernels by measuring.

    `compile(graph, tuned=FILE)` and `optimize(graph, tuned=FILE)` follow what was found. A run that was stopped goes on
    where it was. Kernels are measured one at a time on each machine; machines must be like this one.
    """
    with progress("tune") as tell, crew_of(executor, 1) as crew, Journal(output) as journal:
        graph = optimize(graph_of(model, dims, tell), opt_level, "cpu", flags or None, progress=tell)
        kernels = kernels_of(graph)
        found: list[Finding] = []

        def requests() -> Iterator[tuple[str, bytes]]:
            for key, kernel in kernels.items():
                tell(f"tuning {key[:12]}{_best_of(found)}: kernels tuned", len(found), len(kernels))
                yield key, request(kernel, "cpu", most, seconds)

        for _, answer in answers(tuned, requests(), crew, journal, PATIENT):
            found.append(from_json(Finding, answer))
    for finding in sorted(found, key=lambda each: each.ratio.median):
        told = f"{finding.ratio.median:.2f} of {finding.seconds * 1e6:.1f} us" if finding.plan else "its own plan"
        say(f"{finding.kernel[:12]} {told} (noise {finding.noise:.0%}, {counted(finding.trials, 'plan')})")
    say(f"{sum(bool(each.plan) for each in found)} of {counted(len(found), 'kernel')} faster by more than the noise")


def _best_of(found: Sequence[Finding]) -> str:
    """What was gained so far, in words."""
    best = min((each for each in found if each.plan), key=lambda each: each.ratio.median, default=None)
    return "" if best is None else f", best so far {best.ratio.median:.2f} of {best.kernel[:12]}"


def kernels_of(graph: Graph) -> dict[str, Subject]:
    """The distinct kernels of an optimized graph, by what they are known by."""
    found = (tuned_as(node) for node in graph.operators if node.body is not None)
    return {each.key: each for each in found}
