"""The command line: ``graphkernel optimize|explain|report|run|bench|profile|check|bisect MODEL``, the catalogues, and more.

Models are .onnx, .gk or .json files. Progress and errors go to stderr. Exit codes: 0 fine, 1 results differ, 2 wrong use.

One file for each family of commands: ``base`` (the app, the arguments that commands share), ``compiling`` (optimize, explain,
report, run), ``converting`` (convert, as MindSpore Lite's converter), ``measuring`` (bench, profile), ``checking`` (check,
bisect), ``catalogues`` (passes, ops, patterns, expanders, flags), ``caching`` (cache ls, verify, prune, path), ``doctor``.
"""

from __future__ import annotations

import logging
import sys

from graphkernel.cli import caching, catalogues, checking, compiling, converting, doctor, measuring
from graphkernel.cli.base import CHECK_FAILED, WRONG_USE, app, say
from graphkernel.errors import GraphKernelError
from graphkernel.logs import FORMAT, follow
from graphkernel.options import Environment

COMMANDS = (compiling, converting, measuring, checking, catalogues, caching, doctor)
"""The files whose commands the app has; importing them declares these."""

__all__ = ["CHECK_FAILED", "COMMANDS", "WRONG_USE", "app", "main"]


def main() -> None:
    """The entry point: errors of use become one line on stderr."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format=FORMAT)
    follow(Environment.read().log_level)
    try:
        app()
    except GraphKernelError as error:
        say(f"error: {error}", err=True)
        raise SystemExit(WRONG_USE) from error
