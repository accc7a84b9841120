"""The application object, the arguments that several commands take, and how they print. Light: a page of help needs it."""

from __future__ import annotations

import logging
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

import graphkernel
from graphkernel.cli.ondemand import OnDemand
from graphkernel.options import Environment, Options, requested
from graphkernel.report.table import print_table, rows_as_json
from graphkernel.system.logs import FORMAT, follow
from kernelgen.system.escape import lines
from kernelgen.system.exit_codes import DIFFERS, EXIT_CODES, WRONG_USE

__all__ = ["CHECK_FAILED", "WRONG_USE"]

CHECK_FAILED = DIFFERS

HELP = f"""Fuses tensor graphs into proven kernels. Models are .onnx, .gk or .json files.

Results go to stdout, progress and errors to stderr. {EXIT_CODES}"""

app = typer.Typer(
    cls=OnDemand,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain text: a page of help needs no rich
)

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


def tell_version(wanted: bool) -> None:
    """Prints name and version, and ends. Raises typer.Exit, which ends the command."""
    if wanted:
        say(f"graphkernel {graphkernel.__version__}")
        raise typer.Exit


@app.callback(help=HELP)
def program(
    version: Annotated[bool, typer.Option("--version", callback=tell_version, is_eager=True, help="say which")] = False,
) -> None:
    """What stands before a command, and what holds for each: where the log goes."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format=FORMAT)
    follow(Environment.read().log_level)


def say(text: object, err: bool = False) -> None:
    """Prints to stdout or stderr what does nothing to the terminal, whatever names are in it; there, broken at words."""
    stream = sys.stderr if err else sys.stdout  # as they are now: a progress bar puts itself below what is printed
    said = lines(str(text))
    print(fitted(said, shutil.get_terminal_size().columns) if stream.isatty() else said, file=stream)


def fitted(text: str, width: int) -> str:
    """The lines of a text, those that are too long broken at words and indented."""
    return "\n".join(
        each if len(each) <= width else _broken(each, width, each[: len(each) - len(each.lstrip())])
        for each in text.split("\n")
    )


def _broken(text: str, width: int, indent: str) -> str:
    return textwrap.fill(text, width, subsequent_indent=f"{indent}  ", break_long_words=False, break_on_hyphens=False)


def show(columns: Sequence[str], rows: Iterable[Sequence[object]], as_json: bool = False) -> None:
    """Prints a table with these ``columns`` and ``rows``, for people, or as a list of objects where ``as_json`` says
    so.
    """
    if as_json:
        print(rows_as_json(columns, rows))
    else:
        print_table(columns, rows)


def options_of(opt_level: int, target: str, flags: str) -> Options:
    """The options in force for ``opt_level``, ``target`` and ``flags``, as :func:`graphkernel.optimize` finds them."""
    return Options.resolve(flags or None, base=requested(opt_level, target))


def first_line(doc: str) -> str:
    """The first line of a docstring."""
    return doc.strip().partition("\n")[0]
