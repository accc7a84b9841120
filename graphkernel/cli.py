"""The command line: ``graphkernel optimize|explain|report|run MODEL``, the catalogues, and ``doctor``.

Models are .onnx, .gk or .json files. Progress and errors go to stderr. Exit codes: 0 fine, 1 results differ, 2 wrong use.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import logging
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from graphkernel.driver import compile
from graphkernel.driver import explain as explain_graph
from graphkernel.driver import optimize as optimize_graph
from graphkernel.errors import GraphKernelError, OptionError
from graphkernel.frontends.load import load, save
from graphkernel.hooks import write_atomically
from graphkernel.ir.evaluate import evaluate
from graphkernel.ir.graph import Graph
from graphkernel.options import Environment, Options, flag_table
from graphkernel.pipeline import builtin_catalogue, steps_for
from graphkernel.report.difference import largest_difference, summary
from graphkernel.report.table import print_table
from graphkernel.runtime.samples import random_inputs, read_inputs

CHECK_FAILED, WRONG_USE = 1, 2

NEEDS = {
    "numpy": "everything",
    "islpy": "kernels",
    "llvmlite": "kernels on the CPU",
    "onnx": "reading ONNX models",
    "onnxruntime": "operators that no kernel computes, at speed",
}
"""What doctor looks for, and what it is needed for."""

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)

Model = Annotated[Path, typer.Argument(help=".onnx, .gk or .json")]
Level = Annotated[
    int, typer.Option("--opt-level", min=0, max=3, help="0 off, 1 basic fusion, 2 all stable passes, 3 more")
]
Flags = Annotated[
    str, typer.Option(help="graph kernel flags, such as '--disable_pass=highlevelopt1.arithmetic_simplify'")
]
Target = Annotated[str, typer.Option(help="cpu, gpu or ascend")]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]


@app.command()
def optimize(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="a .gk file; large constants go beside it")],
    opt_level: Level = 2,
    flags: Flags = "",
    target: Target = "cpu",
) -> None:
    """Fuses a model and writes the result as text."""
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
        typer.echo(explanation.to_json())
    elif why is not None:
        typer.echo(explanation.why(*why))
    else:
        typer.echo(str(explanation) if full else explanation.summary)


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
    found = compile(load(model), opt_level, target, flags or None).report
    if output is None:
        typer.echo(str(found))
    else:
        write_atomically(output, found.to_html() if output.suffix == ".html" else found.to_json())


@app.command()
def run(
    model: Model,
    inputs: Annotated[
        Path | None, typer.Option("--input", help="an .npz with an array per input; none: random ones")
    ] = None,
    dim: Annotated[list[str] | None, typer.Option(help="the extent of a symbol for random inputs, N=8")] = None,
    opt_level: Level = 2,
    flags: Flags = "",
    target: Target = "cpu",
    against: Annotated[str, typer.Option(help="what to compare with: unfused, numpy or nothing")] = "unfused",
    rtol: Annotated[float, typer.Option(help="tolerance relative to the largest value")] = 1e-4,
    seed: Annotated[int, typer.Option(help="of the random inputs")] = 0,
) -> None:
    """Runs a model, and compares with the same model unfused."""
    graph = load(model)
    arrays = read_inputs(graph, inputs) if inputs is not None else random_inputs(graph, _extents(dim or []), seed)
    executable = compile(graph, opt_level, target, flags or None)
    outputs = executable(*arrays)
    typer.echo(executable.report.summary, err=True)
    if executable.report.fallbacks:
        typer.echo("`graphkernel report` says why operators have no kernel", err=True)
    expected = _expected(graph, arrays, against)
    rows: list[tuple[object, ...]] = []
    for value, output, reference in zip(graph.outputs, outputs, expected or outputs, strict=True):
        difference = largest_difference(output, reference)
        rows.append(
            (
                value.node.name,
                f"{output.dtype}{list(output.shape)}",
                summary(output),
                f"{difference:.2e}" if expected else "",
            )
        )
    print_table(("output", "type", "values", f"largest difference to {against}"), rows)
    if expected and any(not largest_difference(*pair) <= rtol for pair in zip(outputs, expected, strict=True)):
        typer.echo(f"the results differ by more than {rtol:g} of the largest value", err=True)
        raise typer.Exit(CHECK_FAILED)


@app.command()
def passes(opt_level: Level = 2, flags: Flags = "", target: Target = "cpu") -> None:
    """The pipeline: every step in order, whether it runs, and why it stands there."""
    options = Options.resolve(flags or None, base=Options.parse({"opt_level": opt_level, "target": target}))
    rows = [(step.name, step.level, "on" if step.enabled else "off", step.why) for step in steps_for(options)]
    print_table(("pass", "level", "", "why"), rows)


@app.command()
def ops() -> None:
    """The operators."""
    print_table(
        ("operator", "kind", "attributes", ""),
        [(op.name, op.kind.name, ", ".join(op.attributes), op.doc) for op in builtin_catalogue().ops],
    )


@app.command()
def patterns() -> None:
    """The fusion patterns and the rewriting rules."""
    catalogue = builtin_catalogue()
    fusion = [(pattern.name, "fusion", _first_line(pattern.doc)) for pattern in catalogue.fusion_patterns]
    print_table(
        ("name", "kind", ""),
        [*fusion, *((rule.name, f"rule, {rule.safety.name}", str(rule.equation)) for rule in catalogue.rules)],
    )


@app.command()
def expanders() -> None:
    """The operators that are rewritten by basic ones."""
    print_table(("operator", ""), [(entry.name, _first_line(entry.doc)) for entry in builtin_catalogue().expanders])


@app.command()
def flags() -> None:
    """The graph kernel flags."""
    print_table(
        ("flag", "type", "default", "meaning"),
        [(f"--{flag.name}", flag.type, flag.default, flag.meaning) for flag in flag_table()],
    )


@app.command()
def doctor() -> None:
    """What is installed, what works without it, and the settings in force."""
    print_table(("package", "version", "for"), [(name, _version(name), use) for name, use in NEEDS.items()])
    environment = Environment.read()
    print_table(("setting", "value"), [
        ("python", platform.python_version()),
        ("machine", f"{platform.machine()} {platform.system()}"),
        ("MS_DEV_GRAPH_KERNEL_FLAGS", environment.flags if environment.flags is not None else "(not set)"),
        ("OMP_NUM_THREADS", environment.threads or "(not set)"),
    ])  # fmt: skip


def main() -> None:
    """The entry point: errors of use become one line on stderr."""
    logging.basicConfig(
        level=Environment.read().log_level, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s"
    )
    try:
        app()
    except GraphKernelError as error:
        typer.echo(f"error: {error}", err=True)
        raise SystemExit(WRONG_USE) from error


def _extents(dims: Iterable[str]) -> dict[str, int]:
    """``N=8`` entries as a mapping."""
    pairs = [(entry, *entry.partition("=")[::2]) for entry in dims]
    for entry, name, extent in pairs:
        if not (name and extent.isdigit()):
            raise OptionError(f"--dim {entry}: write NAME=EXTENT, such as N=8")
    return {name: int(extent) for _, name, extent in pairs}


def _expected(graph: Graph, arrays: Sequence[np.ndarray], against: str) -> tuple[np.ndarray, ...] | None:
    match against:
        case "unfused":
            return compile(graph)(*arrays)
        case "numpy":
            return evaluate(graph, arrays)
        case "nothing":
            return None
        case other:
            raise OptionError(f"--against {other}: one of unfused, numpy, nothing")


def _first_line(doc: str) -> str:
    return doc.strip().partition("\n")[0]


def _version(package: str) -> str:
    if importlib.util.find_spec(package) is None:
        return "not installed"
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "installed"
