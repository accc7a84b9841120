"""The command convert: the command line of MindSpore Lite's converter, for the graph kernel part of its work."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from graphkernel.cli.base import app
from graphkernel.driver import optimize
from graphkernel.errors import OptionError, nearest
from graphkernel.frontends.load import load, save

SECTION = "graph_kernel_param"

FRAMEWORKS: Mapping[str, tuple[str, ...]] = {"ONNX": (".onnx",), "GK": (".gk",), "COMPOSITE": (".json", ".info")}
"""What ``--fmk`` may be, and the extensions of its files."""

TARGETS: Mapping[str, str | None] = {"none": None, "general": "cpu", "gpu_oriented": "gpu", "ascend_oriented": "ascend"}
"""What ``--optimize`` may be: the target that the graph is fused for; none leaves it as it is."""

OFF = f"no graph kernels: write opt_level=2 below [{SECTION}] of --configFile to switch them on"


@app.command()
def convert(
    framework: Annotated[str, typer.Option("--fmk", help=", ".join(FRAMEWORKS))],
    model: Annotated[Path, typer.Option("--modelFile", help="the model")],
    output: Annotated[Path, typer.Option("--outputFile", help="the result; .gk is added")],
    config: Annotated[
        Path | None, typer.Option("--configFile", help=f"graph kernel flags, key=value below [{SECTION}]")
    ] = None,
    orientation: Annotated[str, typer.Option("--optimize", help=", ".join(TARGETS))] = "general",
) -> None:
    """Fuses a model as MindSpore Lite's converter_lite does: opt_level comes from the configuration file, without it 0."""
    target = TARGETS[_one_of("--optimize", orientation, TARGETS)]
    endings = FRAMEWORKS[_one_of("--fmk", framework.upper(), FRAMEWORKS)]
    if model.suffix not in endings:
        raise OptionError(f"--fmk={framework} reads {' and '.join(endings)}, not {model}")
    flags = read_config(config) if config is not None else {}
    graph = load(model)
    if target is not None:
        graph = optimize(graph, 0, target, flags)
        if not any(node.body is not None for node in graph.operators) and "opt_level" not in flags:
            typer.echo(OFF, err=True)
    save(graph, output if output.suffix == ".gk" else output.with_name(f"{output.name}.gk"))


def read_config(path: Path) -> dict[str, str]:
    """The flags in the section ``[graph_kernel_param]`` of a file; ``OptionError`` when there is none."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]  # flags are case-sensitive
    try:
        parser.read_string(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        raise OptionError(f"--configFile={path}: cannot be read: {error}") from error
    if SECTION not in parser:
        raise OptionError(f"--configFile={path}: there is no section [{SECTION}]{nearest(SECTION, parser.sections())}")
    return dict(parser[SECTION])


def _one_of(option: str, given: str, choices: Mapping[str, object]) -> str:
    if given not in choices:
        raise OptionError(f"{option}={given}: one of {', '.join(choices)}{nearest(given, choices)}")
    return given
