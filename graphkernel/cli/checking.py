"""Commands that look for faults of the optimizer itself: check holds every step to the numbers, bisect names the guilty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import typer

from graphkernel.bisect import bisect as bisect_graph
from graphkernel.cli.base import (
    CHECK_FAILED,
    Dims,
    Flags,
    Inputs,
    Level,
    Model,
    Seed,
    Target,
    app,
    arrays_for,
    options_of,
    say,
    show,
)
from graphkernel.declarations import builtin_catalogue
from graphkernel.errors import PassError
from graphkernel.frontends.load import load
from graphkernel.hooks import SameNumbers, Trail, Verify
from graphkernel.ir.evaluate import evaluate
from graphkernel.ir.graph import Graph
from graphkernel.ops.random import seeded
from graphkernel.options import MAX_LEVEL, Options
from graphkernel.passes.base import run_steps
from graphkernel.pipeline import steps_for
from graphkernel.report.difference import largest_difference

Tolerance = Annotated[float, typer.Option("--rtol", help="how far results may be apart")]


@app.command()
def check(
    model: Model,
    inputs: Inputs = None,
    dims: Dims = None,
    flags: Flags = "",
    target: Target = "cpu",
    tolerance: Tolerance = 1e-4,
    seed: Seed = 0,
) -> None:
    """Runs the passes of every level: after each, the graph must be valid and its numbers the same."""
    graph = seeded(load(model))
    arrays = arrays_for(graph, inputs, dims, seed)
    given = [options_of(level, target, flags) for level in range(MAX_LEVEL + 1)]
    tried = list(dict.fromkeys(given))  # flags that name a level leave only that one
    rows = [_row(graph, arrays, options, tolerance) for options in tried]
    show(("level", "steps", "changed", "kernels", "largest difference", "verdict"), rows)
    if any(row[-1] != "good" for row in rows):
        say("`graphkernel bisect` says which decision is to blame", err=True)
        raise typer.Exit(CHECK_FAILED)


def _row(graph: Graph, arrays: Sequence[np.ndarray], options: Options, tolerance: float) -> tuple[object, ...]:
    """What became of the graph at one level."""
    trail = Trail()
    catalogue = builtin_catalogue()
    watchers = (Verify(), SameNumbers(arrays, tolerance, tolerance), trail)
    try:
        after = run_steps(graph, steps_for(options), catalogue.context(options), watchers)
    except PassError as error:
        return options.opt_level, trail.steps, trail.changed, "", "", str(error)
    kernels = sum(node.body is not None for node in after.operators)
    apart = max(map(largest_difference, evaluate(after, arrays), evaluate(graph, arrays)), default=0.0)
    return options.opt_level, trail.steps, trail.changed, kernels, f"{apart:.1e}", "good"


@app.command()
def bisect(
    model: Model,
    inputs: Inputs = None,
    dims: Dims = None,
    opt_level: Level = 2,
    flags: Flags = "",
    target: Target = "cpu",
    tolerance: Tolerance = 1e-4,
    seed: Seed = 0,
) -> None:
    """Names the first step, and the decision in it, that makes results wrong; or the kernel whose code does."""
    graph = load(model)
    found = bisect_graph(
        graph, arrays_for(graph, inputs, dims, seed), options_of(opt_level, target, flags), tolerance=tolerance
    )
    if found is None:
        say("every step, every kernel and the whole run keep the numbers")
        return
    say(str(found))
    raise typer.Exit(CHECK_FAILED)
