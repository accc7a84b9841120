"""Commands that take a model and fuse, explain or run it."""

from __future__ import annotations

from collections.abc import Sequence
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
    arrays_for,
    say,
    show,
)
from graphkernel.doors import write_whole
from graphkernel.driver import compile, compile_as_is
from graphkernel.driver import explain as explain_graph
from graphkernel.driver import optimize as optimize_graph
from graphkernel.errors import OptionError
from graphkernel.frontends.load import load, save
from graphkernel.ir.evaluate import evaluate
from graphkernel.ir.graph import Graph
from graphkernel.ops.random import seeded
from graphkernel.report.difference import largest_difference, summary


@app.command()
def optimize(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="a .gk file, large constants beside it, or .onnx")],
    opt_level: Level = 2,
    flags: Flags = "",
    target: Target = "cpu",
) -> None:
    """Fuses a model and writes the result: as text, or as ONNX with kernels as functions, which any runtime runs."""
    save(optimize_graph(load(model), opt_level, target, flags or None), output)


@app.command()
def explain(
    model: Model,
    why: Annotated[tuple[str, str] | None, typer.Option(help="two nodes, operators or kernels")] = None,
    opt_level: Level = 2,
    flags: Flags = "",
    target: Target = "cpu",
    full: Annotated[bool, typer.Option("--all", help="every decision, not only the counts")] = False,
    as_json: Json = False,
) -> None:
    """Says what was fused, what was not, and why."""
    explanation = explain_graph(load(model), opt_level, target, flags or None)
    if as_json:
        say(explanation.to_json())
    elif why is not None:
        say(explanation.why(*why))
    else:
        say(str(explanation) if full else explanation.summary)


@app.command()
def report(
    model: Model,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=".html or .json; none: text on the terminal")
    ] = None,
    opt_level: Level = 2,
    flags: Flags = "",
    target: Target = "cpu",
) -> None:
    """Compiles a model and tells its kernels, host steps and fallbacks."""
    if output is not None and output.suffix not in (".html", ".json"):
        raise OptionError(f"a report is written as .html or .json, not {output.suffix or 'without an extension'}")
    if output is not None and not output.parent.is_dir():
        raise OptionError(f"{output}: there is no folder {output.parent}")
    found = compile(load(model), opt_level, target, flags or None).report
    if output is None:
        say(str(found))
    else:
        write_whole(output, found.to_html() if output.suffix == ".html" else found.to_json(), OptionError)


@app.command()
def run(
    model: Model,
    inputs: Inputs = None,
    dims: Dims = None,
    opt_level: Level = 2,
    flags: Flags = "",
    target: Target = "cpu",
    against: Annotated[str, typer.Option(help="what to compare with: unfused, numpy or nothing")] = "unfused",
    rtol: Annotated[float, typer.Option(help="tolerance relative to the largest value")] = 1e-4,
    seed: Seed = 0,
) -> None:
    """Runs a model, and compares with the same model unfused."""
    graph = seeded(load(model))
    arrays = arrays_for(graph, inputs, dims, seed)
    executable = compile(graph, opt_level, target, flags or None)
    outputs = executable(*arrays)
    say(executable.report.summary, err=True)
    if executable.report.fallbacks:
        say("`graphkernel report` says why operators have no kernel", err=True)
    expected = _expected(graph, arrays, against)
    rows: list[tuple[object, ...]] = []
    for name, output, reference in zip(graph.output_names, outputs, expected or outputs, strict=True):
        difference = largest_difference(output, reference)
        rows.append(
            (
                name,
                f"{output.dtype}{list(output.shape)}",
                summary(output),
                f"{difference:.2e}" if expected else "",
            )
        )
    show(("output", "type", "values", f"largest difference to {against}"), rows)
    if expected and any(not largest_difference(*pair) <= rtol for pair in zip(outputs, expected, strict=True)):
        say(f"the results differ by more than {rtol:g} of the largest value", err=True)
        raise typer.Exit(CHECK_FAILED)


def _expected(graph: Graph, arrays: Sequence[np.ndarray], against: str) -> tuple[np.ndarray, ...] | None:
    match against:
        case "unfused":
            return compile_as_is(graph)(*arrays)
        case "numpy":
            return evaluate(graph, arrays)
        case "nothing":
            return None
        case other:
            raise OptionError(f"--against {other}: one of unfused, numpy, nothing")
