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

from graphkernel.driver import compile, explain as explain_graph, optimize as optimize_graph
from graphkernel.errors import GraphKernelError, InputError, OptionError
from graphkernel.frontends.load import load, save
from graphkernel.hooks import write_atomically
from graphkernel.ir.bind import concrete_shape
from graphkernel.ir.evaluate import evaluate
from graphkernel.ir.graph import Graph
from graphkernel.ir.types import TensorType, symbols_of
from graphkernel.options import Environment, Options, flag_table
from graphkernel.pipeline import builtin_catalogue, steps_for

CHECK_FAILED, WRONG_USE = 1, 2

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)

Model = Annotated[Path, typer.Argument(help=".onnx, .gk or .json")]
Level = Annotated[int, typer.Option("--opt-level", min=0, max=3, help="0 off, 1 basic fusion, 2 all stable passes, 3 more")]
Flags = Annotated[str, typer.Option(help="graph kernel flags, such as '--disable_pass=highlevelopt1.arithmetic_simplify'")]
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
    output: Annotated[Path | None, typer.Option("--output", "-o", help=".html or .json; none: text on the terminal")] = None,
    opt_level: Level = 2,
    flags: Flags = "",
    target: Target = "cpu",
) -> None:
    """Compiles a model and tells its kernels, host steps and fallbacks."""
    found = compile(load(model), opt_level, target, flags or None).report
    match output.suffix if output is not None else "":
        case "":
            typer.echo(str(found))
        case ".html":
            write_atomically(Path(str(output)), found.to_html())
        case ".json":
            write_atomically(Path(str(output)), found.to_json())
        case other:
            raise OptionError(f"a report is written as .html or .json, not {other}")


@app.command()
def run(
    model: Model,
    inputs: Annotated[Path | None, typer.Option("--input", help="an .npz with an array per input; none: random ones")] = None,
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
    arrays = _arrays(graph, inputs) if inputs is not None else _random_arrays(graph, dim or [], seed)
    executable = compile(graph, opt_level, target, flags or None)
    outputs = executable(*arrays)
    typer.echo(executable.report.summary, err=True)
    expected = _expected(graph, arrays, against)
    rows: list[tuple[object, ...]] = []
    for value, output, reference in zip(graph.outputs, outputs, expected or outputs, strict=True):
        difference = _difference(output, reference)
        rows.append((value.node.name, f"{output.dtype}{list(output.shape)}", _summary(output), f"{difference:.2e}" if expected else ""))
    _table(("output", "type", "values", f"largest difference to {against}"), rows)
    if expected and any(not _difference(*pair) <= rtol for pair in zip(outputs, expected, strict=True)):
        typer.echo(f"the results differ by more than {rtol:g} of the largest value", err=True)
        raise typer.Exit(CHECK_FAILED)


@app.command()
def passes(opt_level: Level = 2, flags: Flags = "", target: Target = "cpu") -> None:
    """The pipeline: every step in order, whether it runs, and why it stands there."""
    options = Options.resolve(flags or None, base=Options.parse({"opt_level": opt_level, "target": target}))
    rows = [(step.name, step.level, "on" if step.enabled else "off", step.why) for step in steps_for(options)]
    _table(("pass", "level", "", "why"), rows)


@app.command()
def ops() -> None:
    """The operators."""
    _table(("operator", "kind", "attributes", ""), [(op.name, op.kind.name, ", ".join(op.attributes), op.doc) for op in builtin_catalogue().ops])


@app.command()
def patterns() -> None:
    """The fusion patterns and the rewriting rules."""
    catalogue = builtin_catalogue()
    fusion = [(pattern.name, "fusion", _first_line(pattern.doc)) for pattern in catalogue.fusion_patterns]
    _table(("name", "kind", ""), [*fusion, *((rule.name, f"rule, {rule.safety.name}", str(rule.equation)) for rule in catalogue.rules)])


@app.command()
def expanders() -> None:
    """The operators that are rewritten by basic ones."""
    _table(("operator", ""), [(entry.name, _first_line(entry.doc)) for entry in builtin_catalogue().expanders])


@app.command()
def flags() -> None:
    """The graph kernel flags."""
    _table(("flag", "type", "default", "meaning"), [(f"--{flag.name}", flag.type, flag.default, flag.meaning) for flag in flag_table()])


@app.command()
def doctor() -> None:
    """What is installed, what works without it, and the settings in force."""
    needs = {
        "numpy": "everything", "islpy": "kernels", "llvmlite": "kernels on the CPU", "onnx": "reading ONNX models",
        "onnxruntime": "operators that no kernel computes, at speed", "torch": "the torch.compile backend", "cupy": "kernels on GPUs",
    }  # fmt: skip
    _table(("package", "version", "for"), [(name, _version(name), use) for name, use in needs.items()])
    environment = Environment.read()
    _table(("setting", "value"), [
        ("python", platform.python_version()),
        ("machine", f"{platform.machine()} {platform.system()}"),
        ("MS_DEV_GRAPH_KERNEL_FLAGS", environment.flags if environment.flags is not None else "(not set)"),
        ("OMP_NUM_THREADS", environment.threads or "(not set)"),
    ])  # fmt: skip


def main() -> None:
    """The entry point: errors of use become one line on stderr."""
    logging.basicConfig(level=Environment.read().log_level, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    try:
        app()
    except GraphKernelError as error:
        typer.echo(f"error: {error}", err=True)
        raise SystemExit(WRONG_USE) from error


def _arrays(graph: Graph, path: Path) -> list[np.ndarray]:
    with np.load(path, allow_pickle=False) as found:
        missing = [value.node.name for value in graph.inputs if value.node.name not in found.files]
        if missing:
            raise InputError(f"{path} holds {', '.join(found.files)}; no array is called {', '.join(missing)}")
        return [found[value.node.name] for value in graph.inputs]


def _random_arrays(graph: Graph, dims: Iterable[str], seed: int) -> list[np.ndarray]:
    """Floats are normal; integers and booleans are 0 or 1, which suits masks and is an index that always exists."""
    given = dict(entry.partition("=")[::2] for entry in dims)
    names = symbols_of(dim for value in graph.inputs for dim in value.type.shape)
    unknown = [name for name, extent in given.items() if name not in names or not extent.isdigit()]
    if unknown:
        raise OptionError(f"--dim {unknown[0]}: write NAME=EXTENT with one of the symbols {', '.join(names) or '(none)'}")
    extents = {name: int(given.get(name, 8)) for name in names}
    generator = np.random.default_rng(seed)
    return [_random(generator, value.type, concrete_shape(value.type.shape, extents)) for value in graph.inputs]


def _random(generator: np.random.Generator, of: TensorType, shape: tuple[int, ...]) -> np.ndarray:
    drawn = generator.standard_normal(shape) if of.dtype.is_float else generator.integers(0, 2, shape)
    return drawn.astype(of.dtype.numpy)


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


def _difference(output: np.ndarray, reference: np.ndarray) -> float:
    """The largest difference over the largest finite value; infinite where not-a-numbers or infinities disagree."""
    a, b = output.astype(np.float64), reference.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    return float(np.abs(a - b)[finite].max() / max(np.abs(b[finite]).max(), np.finfo(np.float64).tiny))


def _summary(array: np.ndarray) -> str:
    if array.size == 0:
        return "no elements"
    wide = array.astype(np.float64)
    return f"min {wide.min():.6g}, mean {wide.mean():.6g}, max {wide.max():.6g}"


def _first_line(doc: str) -> str:
    return doc.strip().partition("\n")[0]


def _version(package: str) -> str:
    if importlib.util.find_spec(package) is None:
        return "not installed"
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "installed"


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table for people on a terminal, tab-separated lines for programs."""
    texts = [[str(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        typer.echo("\n".join("\t".join(row) for row in [list(columns), *texts]))
        return
    from rich.console import Console  # only terminals need it
    from rich.markup import escape
    from rich.table import Table

    table = Table(*columns)
    for row in texts:
        table.add_row(*map(escape, row))
    Console().print(table)


__all__ = ["app", "main"]
