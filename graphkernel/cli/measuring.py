"""Commands that measure: bench compares a fused model with itself unfused, profile tells where the time goes."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from graphkernel.cli.base import Dims, Flags, Inputs, Level, Model, Seed, Target, app, say, show
from graphkernel.cli.model import arrays_for, graph_of
from graphkernel.cli.progress import progress
from graphkernel.driver import compile, compile_as_is
from graphkernel.runtime.measure import Spread, compare
from graphkernel.runtime.measure import profile as profile_steps

Rounds = Annotated[int, typer.Option(min=1, help="how often everything is measured; the middle one counts")]


@app.command()
def bench(
    model: Model,
    inputs: Inputs = None,
    dims: Dims = None,
    opt_level: Level = 2,
    flags: Flags = "",
    target: Target = "cpu",
    rounds: Rounds = 15,
    seed: Seed = 0,
) -> None:
    """Times a model fused and unfused, in turns on the same inputs."""
    with progress("bench") as tell:
        graph = graph_of(model, dims, tell)
        arrays = arrays_for(graph, inputs, seed)
        fused = compile(graph, opt_level, target, flags or None, progress=tell)
        executables = {"fused": fused, "unfused": compile_as_is(graph)}
        calls = {name: partial(exe, *arrays) for name, exe in executables.items()}
        tell("measuring", 0, 0)
        found = compare(calls, rounds)
    say(executables["fused"].report.summary, err=True)
    rows = [
        (name, *_milliseconds(spread), f"{spread.median / found['fused'].median:.2f}") for name, spread in found.items()
    ]
    show(("", "ms", "least", "greatest", "of the fused time"), rows)


@app.command()
def profile(
    model: Model,
    inputs: Inputs = None,
    dims: Dims = None,
    opt_level: Level = 2,
    flags: Flags = "",
    target: Target = "cpu",
    rounds: Rounds = 15,
    seed: Seed = 0,
) -> None:
    """Times every kernel and host step of a fused model."""
    with progress("profile") as tell:
        graph = graph_of(model, dims, tell)
        arrays = arrays_for(graph, inputs, seed)
        executable = compile(graph, opt_level, target, flags or None, progress=tell)
        tell("measuring", 0, 0)
        times = profile_steps(executable, arrays, rounds)
    total = sum(step.seconds.median for step in times) or 1.0
    rows = [
        (step.name, step.kind, *_milliseconds(step.seconds), f"{step.seconds.median / total:.0%}") for step in times
    ]
    show(("step", "kind", "ms", "least", "greatest", "share"), rows)


def _milliseconds(seconds: Spread) -> list[str]:
    return [f"{1e3 * each:.4g}" for each in (seconds.median, seconds.least, seconds.greatest)]
