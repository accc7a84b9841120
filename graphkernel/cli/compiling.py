"""Commands that take a model and fuse, explain or report it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphkernel.cli.base import Dims, Flags, Inputs, Json, Level, Model, Seed, Target, app, say
from graphkernel.cli.model import arrays_for, graph_of
from graphkernel.cli.progress import progress
from graphkernel.driver import compile
from graphkernel.driver import explain as explain_graph
from graphkernel.driver import optimize as optimize_graph
from graphkernel.errors import OptionError
from graphkernel.frontends.load import save
from graphkernel.report.page.counted import counted, size_text
from graphkernel.runtime.cuda.device_executable import DeviceExecutable
from graphkernel.runtime.executable import Executable
from graphkernel.runtime.measure import profile
from kernelgen.system.bounded_io import write_whole
from kernelgen.tensor.bind import bind_symbols
from kernelgen.tensor.graph import Graph

ROUNDS = 9  # of the times in a page; the middle one counts


@app.command()
def optimize(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="a .gk file, large constants beside it, or .onnx")],
    dims: Dims = None,
    opt_level: Level = 2,
    flags: Flags = "",
    target: Target = "cpu",
) -> None:
    """Fuse a model and write the result: as text, or as ONNX with kernels as functions, which any runtime runs."""
    with progress("optimize") as tell:
        graph = graph_of(model, dims, tell)
        fused = optimize_graph(graph, opt_level, target, flags or None, progress=tell)
        tell(f"writing {output.name}", 0, 0)
        save(fused, output)
    say(f"{became(graph, fused)}; written {' and '.join(map(_sized, _written(output)))}")


def became(before: Graph, after: Graph) -> str:
    """``228 operators became 52 kernels and 31 others``."""
    kernels = sum(node.body is not None for node in after.operators)
    rest = len(after.operators) - kernels
    return (
        f"{counted(len(before.operators), 'operator')} became {counted(kernels, 'kernel')} and {counted(rest, 'other')}"
    )


def _written(output: Path) -> list[Path]:
    """The files of a result: the named one, and the constants beside it."""
    return [path for path in (output, output.with_name(f"{output.name}.npz")) if path.exists()]


def _sized(path: Path) -> str:
    return f"{path} ({size_text(path.stat().st_size)})"


@app.command()
def explain(
    model: Model,
    why: Annotated[
        tuple[str, str] | None, typer.Option(help="two operators, nodes or kernels, as the model or explain call them")
    ] = None,
    dims: Dims = None,
    opt_level: Level = 2,
    flags: Flags = "",
    target: Target = "cpu",
    full: Annotated[bool, typer.Option("--all", help="every decision, not only the counts or the answer")] = False,
    as_json: Json = False,
) -> None:
    """What was fused, what was not, and why."""
    with progress("explain") as tell:
        explanation = explain_graph(graph_of(model, dims, tell), opt_level, target, flags or None, progress=tell)
    if as_json:
        say(explanation.to_json())
    elif why is not None:
        say(explanation.why(*why, full=full))
    else:
        say(str(explanation) if full else explanation.summary)


@app.command()
def report(
    model: Model,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=".html or .json; none: text on the terminal")
    ] = None,
    inputs: Inputs = None,
    dims: Dims = None,
    opt_level: Level = 2,
    flags: Flags = "",
    target: Target = "cpu",
    seed: Seed = 0,
    measure: Annotated[bool, typer.Option(help="run the model for the times in a page")] = True,
) -> None:
    """The kernels of a model and what runs elsewhere: as text, JSON, or a page with the graph before and after."""
    if output is not None and output.suffix not in (".html", ".json"):
        raise OptionError(f"a report is written as .html or .json, not {output.suffix or 'without an extension'}")
    if output is not None and not output.parent.is_dir():
        raise OptionError(f"{output}: there is no folder {output.parent}")
    with progress("report") as tell:
        graph = graph_of(model, dims, tell)
        executable = compile(graph, opt_level, target, flags or None, progress=tell)
        found = executable.report
        if output is None:
            say(str(found))
            return
        is_timed = measure and output.suffix == ".html" and runs_for_real(executable, target)
        tell("measuring", 0, 0)
        arrays = arrays_for(graph, inputs, seed) if is_timed else []
        times = profile(executable, arrays, ROUNDS) if is_timed else ()
        sizes = bind_symbols(graph.inputs, arrays) if is_timed else {}
    write_whole(output, found.to_html(times, sizes) if output.suffix == ".html" else found.to_json(), OptionError)
    say(f"{found.summary}; written {_sized(output)}")


def runs_for_real(executable: Executable, target: str) -> bool:
    """Whether its times mean something: kernels that are interpreted for want of a device tell none."""
    return target == "cpu" or isinstance(executable, DeviceExecutable)
