"""The command build: a model as a package that runs without a compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphkernel.cli.base import Dims, Flags, Level, Model, app, say
from graphkernel.cli.model import graph_of
from graphkernel.cli.progress import progress
from graphkernel.driver import compile
from graphkernel.errors import OptionError
from graphkernel.packages.manifest import PACKAGE
from graphkernel.report.report import size_text


@app.command()
def build(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="a .gkx file")],
    dims: Dims = None,
    opt_level: Level = 2,
    flags: Flags = "",
) -> None:
    """Compile a model into a package for this machine.

    `graphkernel run MODEL.gkx` and `graphkernel.load_compiled` take it; no compiler is needed there.
    """
    if output.suffix != PACKAGE:
        raise OptionError(f"{output}: packages are written as {PACKAGE}, not {output.suffix or 'without an extension'}")
    with progress("build") as tell:
        executable = compile(graph_of(model, dims, tell), opt_level, "cpu", flags or None, progress=tell)
        tell(f"writing {output.name}", 0, 0)
        executable.save(output)
    say(f"{executable.report.summary}; {output} has {size_text(output.stat().st_size)}", err=True)
