"""The command line: ``graphkernel optimize|explain|report|run|check|bisect MODEL``, the catalogues, and ``doctor``.

Models are .onnx, .gk or .json files. Progress and errors go to stderr. Exit codes: 0 fine, 1 results differ, 2 wrong use.

One file for each family of commands: ``base`` (the app, the arguments that commands share), ``compiling`` (optimize, explain,
report, run), ``checking`` (check, bisect), ``catalogues`` (passes, ops, patterns, expanders, flags), ``doctor``.
"""

from __future__ import annotations

import logging
import sys

import typer

from graphkernel.cli import catalogues, checking, compiling, doctor
from graphkernel.cli.base import CHECK_FAILED, WRONG_USE, app
from graphkernel.errors import GraphKernelError
from graphkernel.logs import FORMAT, follow
from graphkernel.options import Environment

__all__ = ["CHECK_FAILED", "WRONG_USE", "app", "catalogues", "checking", "compiling", "doctor", "main"]


def main() -> None:
    """The entry point: errors of use become one line on stderr."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format=FORMAT)
    follow(Environment.read().log_level)
    try:
        app()
    except GraphKernelError as error:
        typer.echo(f"error: {error}", err=True)
        raise SystemExit(WRONG_USE) from error
