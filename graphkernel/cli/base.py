"""The application object, and the arguments that several commands take."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from graphkernel.errors import OptionError
from graphkernel.escape import lines
from graphkernel.ir.graph import Graph
from graphkernel.options import Options
from graphkernel.runtime.samples import random_inputs, read_inputs

CHECK_FAILED, WRONG_USE = 1, 2

HELP = """Fuses tensor graphs into proven kernels. Models are .onnx, .gk or .json files.

Progress and errors go to stderr. Exit codes: 0 fine, 1 results differ, 2 wrong use."""

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=HELP)

Model = Annotated[Path, typer.Argument(help=".onnx, .gk or .json")]
Level = Annotated[int, typer.Option("--opt-level", help="0 off, 1 basic fusion, 2 all stable passes, 3 more")]
Flags = Annotated[
    str, typer.Option(help="graph kernel flags, such as '--disable_pass=highlevelopt1.arithmetic_simplify'")
]
Target = Annotated[str, typer.Option(help="cpu, gpu or ascend")]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Inputs = Annotated[Path | None, typer.Option("--input", help="an .npz with an array per input; none: random ones")]
Dims = Annotated[list[str] | None, typer.Option("--dim", help="the extent of a symbol for random inputs, N=8")]
Seed = Annotated[int, typer.Option(help="of the random inputs")]


def say(text: object, err: bool = False) -> None:
    """Prints to stdout or stderr what does nothing to the terminal, whatever names are in it."""
    typer.echo(lines(str(text)), err=err)


def options_of(opt_level: int, target: str, flags: str) -> Options:
    """The options in force, as :func:`graphkernel.optimize` finds them."""
    return Options.resolve(flags or None, base=Options.parse({"opt_level": opt_level, "target": target}))


def arrays_for(graph: Graph, inputs: Path | None, dims: Iterable[str] | None, seed: int) -> list[np.ndarray]:
    """The arrays of the file, else random ones."""
    return read_inputs(graph, inputs) if inputs is not None else random_inputs(graph, _extents(dims or ()), seed)


def first_line(doc: str) -> str:
    """The first line of a docstring."""
    return doc.strip().partition("\n")[0]


def _extents(dims: Iterable[str]) -> dict[str, int]:
    """``N=8`` entries as a mapping."""
    pairs = [(entry, *entry.partition("=")[::2]) for entry in dims]
    for entry, name, extent in pairs:
        if not (name and re.fullmatch("[0-9]{1,18}", extent)):
            raise OptionError(f"--dim {entry}: write NAME=EXTENT, such as N=8")
    return {name: int(extent) for _, name, extent in pairs}
