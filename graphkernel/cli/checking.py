"""Commands that look for faults of the optimizer itself: check holds every step to the numbers, bisect names the guilty."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from graphkernel.bisect import bisect as bisect_graph
from graphkernel.cli.base import (
    CHECK_FAILED,
    Dims,
    Flags,
    Inputs,
    Json,
    Level,
    Model,
    Seed,
    Target,
    app,
    options_of,
    say,
    show,
)
from graphkernel.cli.model import arrays_for, graph_of
from graphkernel.cli.progress import progress
from graphkernel.declarations import builtin_catalogue
from graphkernel.errors import PassError, RuntimeFailure
from graphkernel.ops.library.random import seeded
from graphkernel.options import MAX_LEVEL, Options
from graphkernel.passes.base import run_steps
from graphkernel.pipeline import steps_for
from graphkernel.report.difference import largest_difference, summary, typed
from graphkernel.report.table import Amount
from graphkernel.report.verdict import Judge, verdicts
from graphkernel.runtime.onnxruntime.whole_model import WholeModel
from graphkernel.step_hooks import Advance, Progress, SameNumbers, Trail, Verify
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph

GOOD, SKIPPED = "good", "onnxruntime does not run it"
Arrays = Sequence[np.ndarray]
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
    as_json: Json = False,
) -> None:
    """Run the passes of every level: after each, the graph must be valid and its numbers the same.

    Before that, of an .onnx file: what was read must give the types, shapes and numbers that onnxruntime gives.
    """
    with progress("check") as tell:
        graph = seeded(graph_of(model, dims, tell))
        arrays = arrays_for(graph, inputs, seed)
        given = [options_of(level, target, flags) for level in range(MAX_LEVEL + 1)]
        tried = list(dict.fromkeys(given))  # flags that name a level leave only that one
        tell("evaluating the model with numpy", 0, 0)
        expected = evaluate(graph, arrays)
        row = partial(_row, graph, arrays, expected, tolerance=tolerance, tell=tell)
        read = [_read(model, graph, arrays, expected, tolerance, tell)] if model.suffix == ".onnx" else []
        rows = [*read, *(row(options) for options in tried)]
    show(("level", "steps", "changed", "kernels", "largest difference", "verdict"), rows, as_json)
    if any(row[-1] not in (GOOD, SKIPPED) for row in rows):
        say("`graphkernel bisect` says which decision is to blame", err=True)
        raise typer.Exit(CHECK_FAILED)
    say(f"good: every step of every level keeps the numbers of {model}", err=True)


def _read(
    model: Path, graph: Graph, arrays: Arrays, expected: Arrays, tolerance: float, tell: Progress
) -> tuple[object, ...]:
    """Whether the graph means what the file means to onnxruntime."""
    tell("running the file on onnxruntime", 0, 0)
    try:
        theirs = WholeModel(model)(*arrays)
    except RuntimeFailure as error:
        say(error, err=True)
        return "read", "", "", "", "", SKIPPED
    found = verdicts(expected, theirs, lambda: Judge.of(graph, arrays), tolerance, is_independent=True)
    other = [
        f"{name} is {typed(ours)} ({summary(ours)}), on onnxruntime {typed(given)} ({summary(given)})"
        for name, ours, given, each in zip(graph.output_names, expected, theirs, found, strict=True)
        if not each.is_good
    ]
    apart = max((each.apart for each in found), default=0.0)
    return "read", "", "", "", Amount(apart, f"{apart:.1e}"), "; ".join(other) or GOOD


def _row(
    graph: Graph, arrays: Arrays, expected: Arrays, options: Options, *, tolerance: float, tell: Progress
) -> tuple[object, ...]:
    """What became of the graph at one level."""
    trail, level = Trail(), options.opt_level
    catalogue, steps = builtin_catalogue(), steps_for(options)
    same = SameNumbers(arrays, tolerance, tolerance)
    watchers = (Verify(), same, trail, *Advance.over(steps, tell, f"level {level}: step"))
    try:
        after = run_steps(graph, steps, catalogue.context(options, steps=steps), watchers)
    except PassError as error:
        return level, trail.steps, trail.changed, "", "", str(error)
    kernels = sum(node.body is not None for node in after.operators)
    apart = max(map(largest_difference, same.results(after), expected), default=0.0)
    return level, trail.steps, trail.changed, kernels, Amount(apart, f"{apart:.1e}"), GOOD


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
    """Name the first step, and the decision in it, that makes results wrong; or the kernel whose code does."""
    with progress("bisect") as tell:
        graph = seeded(graph_of(model, dims, tell))
        arrays = arrays_for(graph, inputs, seed)
        options = options_of(opt_level, target, flags)
        found = bisect_graph(graph, arrays, options, tolerance=tolerance, progress=tell)
    if found is None:
        say("every step, every kernel and the whole run keep the numbers")
        return
    say(str(found))
    raise typer.Exit(CHECK_FAILED)
