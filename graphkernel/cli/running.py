"""The command run: a model on arrays, beside the same model unfused, on numpy, or on onnxruntime as it is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

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
    say,
    show,
)
from graphkernel.cli.model import arrays_for, graph_of
from graphkernel.cli.progress import progress
from graphkernel.driver import compile_as_is
from graphkernel.errors import OptionError
from graphkernel.ops.library.random import seeded
from graphkernel.packages.manifest import PACKAGE
from graphkernel.packages.read import load_compiled
from graphkernel.recall import compile
from graphkernel.report.difference import summary, typed
from graphkernel.report.table import Amount
from graphkernel.report.verdict import Judge, Verdict, verdicts
from graphkernel.runtime.executable import Executable
from graphkernel.runtime.onnxruntime.whole_model import WholeModel
from graphkernel.step_hooks import Progress
from kernelgen.tensor.boxes import copied
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.inline import inline

PEERS = ("unfused", "numpy", "onnxruntime", "nothing")
Arrays = Sequence[np.ndarray]
Against = Annotated[str, typer.Option(help=f"what to compare with: {', '.join(PEERS)}")]


@app.command()
def run(
    model: Model,
    inputs: Inputs = None,
    dims: Dims = None,
    opt_level: Level = 2,
    flags: Flags = "",
    target: Target = "cpu",
    against: Against = "unfused",
    rtol: Annotated[float, typer.Option(help="tolerance relative to the largest value")] = 1e-4,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Run a model and compare its results.

    Where results are further apart than --rtol, the model is evaluated in float64, which judges them.
    """
    if against not in PEERS:
        raise OptionError(f"--against {against}: one of {', '.join(PEERS)}")
    with progress("run") as tell:
        if model.suffix == PACKAGE:
            graph, executable = _packed(model, dims)
        else:
            graph = seeded(graph_of(model, dims, tell))
            executable = compile(graph, opt_level, target, flags or None, progress=tell)
        arrays = arrays_for(graph, inputs, seed)
        tell("running", 0, 0)
        outputs = executable(*copied(arrays))
        expected = _expected(graph, arrays, against, model, tell)
        judge = partial(_judge, graph, arrays, tell)
        is_peer = against == "onnxruntime"
        found = verdicts(outputs, expected, judge, rtol, is_peer) if expected is not None else [None] * len(outputs)
    say(executable.report.summary, err=True)
    if executable.report.fallbacks:
        say("`graphkernel report` says why operators have no kernel", err=True)
    show(*_table(graph, outputs, found, against), as_json)
    if expected is not None:
        _conclude([each for each in found if each is not None], against, rtol)


def _packed(package: Path, dims: Sequence[str] | None) -> tuple[Graph, Executable]:
    """The graph of a package without its kernels, and the executable."""
    if dims:
        raise OptionError("--dim: a package runs with all extents that it was built for; give --input")
    executable = load_compiled(package)
    return inline(executable.graph, lambda _: True)[0], executable


def _expected(graph: Graph, arrays: Arrays, against: str, model: Path, tell: Progress) -> tuple[np.ndarray, ...] | None:
    tell(f"running on {against}", 0, 0)
    match against:
        case "unfused":
            return compile_as_is(graph)(*copied(arrays))
        case "numpy":
            return evaluate(graph, arrays)
        case "onnxruntime":
            return WholeModel(model)(*arrays)
        case _:
            return None


def _judge(graph: Graph, arrays: Arrays, tell: Progress) -> Judge:
    tell("results are apart: evaluating in float64", 0, 0)
    return Judge.of(graph, arrays)


def _table(
    graph: Graph, outputs: Arrays, found: Sequence[Verdict | None], against: str
) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    columns = ("output", "type", *(("apart", "verdict") if against != "nothing" else ()), "values")
    rows: list[tuple[object, ...]] = []
    for name, output, verdict in zip(graph.output_names, outputs, found, strict=True):
        judged = () if verdict is None else (Amount(verdict.apart, f"{verdict.apart:.1e}"), _word(verdict))
        rows.append((name, typed(output), *judged, summary(output)))
    return columns, rows


def _word(verdict: Verdict) -> str:
    return "differs" if not verdict.is_good else "same" if verdict.found is None else "rounding"


def _conclude(found: Sequence[Verdict], against: str, rtol: float) -> None:
    """The verdict in words, on stderr; ends with CHECK_FAILED when results differ."""
    worst = max((each.apart for each in found), default=0.0)
    told = f"fused and {against} are {worst:.1e} of the largest value apart"
    asked = max((each for each in found if each.found is not None), key=lambda each: each.apart, default=None)
    if asked is not None:
        told += (
            f"; from float64 fused is {asked.found:.1e} apart, {against} {asked.expected:.1e}, and numpy, which only "
            f"rounds, {asked.rounding:.1e}"
        )
    if all(each.is_good for each in found):
        say(f"good: {told}", err=True)
        return
    allowed = f"more than {rtol:g}" + (" and more than rounding explains" if asked else "")
    say(f"the results differ: {told}: {allowed}; `graphkernel bisect` looks for the cause", err=True)
    raise typer.Exit(CHECK_FAILED)
