"""The command convert: the command line of MindSpore Lite's converter, for the graph kernel part of its work."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from graphkernel.cli.base import CHECK_FAILED, Dims, app, say
from graphkernel.cli.model import extents
from graphkernel.driver import optimize
from graphkernel.errors import OptionError, nearest
from graphkernel.export.kernels import export, maker_for
from graphkernel.export.summary import FAILED, KernelLine
from graphkernel.frontends.load import load, save
from kernelgen.system.bounded_io import read_text
from kernelgen.system.escape import lines
from kernelgen.tensor.graph import Graph

SECTION = "graph_kernel_param"

FRAMEWORKS: Mapping[str, tuple[str, ...]] = {"ONNX": (".onnx",), "GK": (".gk",), "COMPOSITE": (".json", ".info")}
"""What ``--fmk`` may be, and the extensions of its files."""

TARGETS: Mapping[str, str | None] = {"none": None, "general": "cpu", "gpu_oriented": "gpu", "ascend_oriented": "ascend"}
"""What ``--optimize`` may be: the target that the graph is fused for; none leaves it as it is.

A machine may stand behind ``ascend_oriented``: ``ascend_oriented:910A``, or the path of a platform_config ``.ini``.
"""

MACHINE = "910B"
"""The Ascend machine where none is named."""

OFF = f"no graph kernels: write opt_level=2 below [{SECTION}] of --configFile to switch them on"


@app.command()
def convert(
    framework: Annotated[str, typer.Option("--fmk", help=", ".join(FRAMEWORKS))],
    model: Annotated[Path, typer.Option("--modelFile", help="the model")],
    output: Annotated[Path, typer.Option("--outputFile", help="the result; .gk is added")],
    config: Annotated[
        Path | None, typer.Option("--configFile", help=f"graph kernel flags, key=value below [{SECTION}]")
    ] = None,
    orientation: Annotated[
        str, typer.Option("--optimize", help=", ".join(TARGETS) + "; ascend_oriented:910A for other machines")
    ] = "general",
    dims: Dims = None,
) -> None:
    """Fuses a model as MindSpore Lite's converter_lite does: opt_level comes from the configuration file, without it 0.

    ascend_oriented also writes the kernels into a folder beside the result, after a run of each in the simulator.
    """
    orientation, _, machine = orientation.partition(":")
    target = TARGETS[_one_of("--optimize", orientation, TARGETS)]
    if machine and target != "ascend":
        raise OptionError(f"--optimize={orientation}:{machine}: a machine stands behind ascend_oriented only")
    endings = FRAMEWORKS[_one_of("--fmk", framework.upper(), FRAMEWORKS)]
    if model.suffix not in endings:
        raise OptionError(f"--fmk={framework} reads {' and '.join(endings)}, not {model}")
    flags = read_config(config) if config is not None else {}
    graph = load(model, extents(dims or ()))
    if not output.name:
        raise OptionError(f"--outputFile={output}: a file is needed, such as fused.gk")
    written = output if output.suffix == ".gk" else output.with_name(f"{output.name}.gk")
    failures = 0
    if target is not None:
        fused = optimize(graph, 0, target, flags)
        kernels = any(node.body is not None for node in fused.operators)
        if not kernels and "opt_level" not in flags:
            say(OFF, err=True)
        if target == "ascend" and kernels:
            fused, failures = _kernels(graph, fused, written.with_name(f"{written.stem}_kernels"), machine or MACHINE)
        graph = fused
    save(graph, written)
    raise typer.Exit(CHECK_FAILED if failures else 0)


def _kernels(graph: Graph, fused: Graph, folder: Path, machine: str) -> tuple[Graph, int]:
    """Writes the kernels and their report, says what was found; gives the graph that runs with them, and the failures."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("kernels", total=None)

        def watch(done: int, total: int, line: KernelLine) -> None:
            progress.update(task, completed=done, total=total)
            progress.console.print(lines(f"{done}/{total} {line}"), markup=False, highlight=False, soft_wrap=True)

        runnable, summary = export(graph, fused, folder, machine, maker_for(machine), watch)
    say(summary.headline, err=True)
    say(f"{folder / 'report.html'}: what bounds each kernel, and why others stay with the vendor", err=True)
    return runnable, summary.count(FAILED)


def read_config(path: Path) -> dict[str, str]:
    """The flags in the section ``[graph_kernel_param]`` of a file. Raises ``OptionError`` when there is none."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]  # flags are case-sensitive
    try:
        parser.read_string(read_text(path, OptionError), str(path))
    except (OptionError, configparser.Error) as error:
        raise OptionError(f"--configFile={path}: cannot be read: {error}") from error
    if SECTION not in parser:
        raise OptionError(f"--configFile={path}: there is no section [{SECTION}]{nearest(SECTION, parser.sections())}")
    return dict(parser[SECTION])


def _one_of(option: str, given: str, choices: Mapping[str, object]) -> str:
    if given not in choices:
        raise OptionError(f"{option}={given}: one of {', '.join(choices)}{nearest(given, choices)}")
    return given
