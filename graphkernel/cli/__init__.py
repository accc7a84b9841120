"""The command line: ``graphkernel run|optimize|explain|report|bench|profile|check|bisect MODEL``, the catalogues, and more.

Models are .onnx, .gk or .json files. Progress and errors go to stderr; an error is one line. The exit codes stand in
:mod:`kernelgen.system.exit_codes`.

``base`` (the app, the arguments that commands share), ``ondemand`` (which command is in which file), ``model`` (from
arguments to graphs and arrays), ``progress`` (how far a command is), then one file for each family of commands:
``compiling`` (optimize, explain, report), ``running`` (run), ``packaging`` (build), ``measuring`` (bench, profile;
``contest``: several ways to run a model, timed in turns), ``tuning`` (tune), ``checking`` (check, bisect),
``converting`` (convert, as MindSpore Lite's converter),
``catalogues`` (passes, ops, patterns, expanders, flags), ``caching`` (cache ls, verify, prune, path), ``doctor``.
"""

from __future__ import annotations

from graphkernel.cli.base import CHECK_FAILED, WRONG_USE, app
from graphkernel.errors import GraphKernelError
from kernelgen.errors import KernelgenError
from kernelgen.system.exit_codes import run

__all__ = ["CHECK_FAILED", "WRONG_USE", "app", "main"]


def main() -> None:
    """The entry point: whatever goes wrong becomes one line on stderr."""
    run(app, (GraphKernelError, KernelgenError))
