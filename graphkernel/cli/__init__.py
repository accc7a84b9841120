"""The command line: ``graphkernel optimize|explain|report|run|bench|profile|check|bisect MODEL``, the catalogues, and more.

Models are .onnx, .gk or .json files. Progress and errors go to stderr; an error is one line. The exit codes stand in
:mod:`kernelgen.command_line`.

One file for each family of commands: ``base`` (the app, the arguments that commands share), ``compiling`` (optimize, explain,
report, run), ``converting`` (convert, as MindSpore Lite's converter), ``measuring`` (bench, profile), ``checking`` (check,
bisect), ``catalogues`` (passes, ops, patterns, expanders, flags), ``caching`` (cache ls, verify, prune, path), ``doctor``.
"""

from __future__ import annotations

from graphkernel.cli import caching, catalogues, checking, compiling, converting, doctor, measuring
from graphkernel.cli.base import CHECK_FAILED, WRONG_USE, app
from graphkernel.errors import GraphKernelError
from kernelgen.command_line import run
from kernelgen.errors import KernelgenError

COMMANDS = (compiling, converting, measuring, checking, catalogues, caching, doctor)
"""The files whose commands the app has; importing them declares these."""

__all__ = ["CHECK_FAILED", "COMMANDS", "WRONG_USE", "app", "main"]


def main() -> None:
    """The entry point: whatever goes wrong becomes one line on stderr."""
    run(app, (GraphKernelError, KernelgenError))
