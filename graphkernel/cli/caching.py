"""The commands of the kernel cache: ls, verify, prune, path."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from graphkernel.cli.base import CHECK_FAILED, Json, app, say, show
from graphkernel.report.page.counted import counted, size_text
from graphkernel.runtime.kernel_cache import (
    CachedKernel,
    cache_folder,
    cached_kernels,
    too_many,
    unfinished,
    why_unusable,
)

MEBIBYTE = 1024 * 1024
HOUR = 3600.0

cache = typer.Typer(
    no_args_is_help=True, help="Compiled kernels on disk: what is there, whether it is whole, what goes."
)
app.add_typer(cache, name="cache")


@cache.command()
def path() -> None:
    """The folder: GRAPHKERNEL_CACHE_DIR, or the user's cache folder; fails with the reason where it cannot be used."""
    folder = cache_folder()
    if folder is not None:
        say(folder)
    if reason := why_unusable(folder):
        say(f"compiled kernels are not kept: {reason}", err=True)
        raise typer.Exit(CHECK_FAILED)


@cache.command()
def ls(as_json: Json = False) -> None:
    """Every compiled kernel, the oldest first."""
    kernels = cached_kernels(cache_folder())
    show(
        ("kernel", "target", "bytes", "written"),
        [(entry.path.stem, entry.target, entry.size, _moment(entry.written)) for entry in kernels],
        as_json,
    )
    say(_sum(kernels), err=True)


@cache.command()
def verify() -> None:
    """Reads every file; what does not fit its hash is named. The next compilation replaces it."""
    kernels = cached_kernels(cache_folder())
    broken = [entry for entry in kernels if not entry.is_whole]
    for entry in broken:
        say(f"damaged: {entry.path}")
    say(f"{len(kernels) - len(broken)} whole, {len(broken)} damaged")
    if broken:
        raise typer.Exit(CHECK_FAILED)


@cache.command()
def prune(
    max_size: Annotated[int, typer.Option(min=0, help="MiB that may stay; the oldest files go first")] = 1024,
) -> None:
    """Removes damaged files, then the oldest until the rest is small enough."""
    folder = cache_folder()
    kernels = cached_kernels(folder)
    damaged = [entry for entry in kernels if not entry.is_whole]
    kept = [entry for entry in kernels if entry not in damaged]
    gone = [*damaged, *too_many(kept, max_size * MEBIBYTE)]
    for entry in (*gone, *_abandoned(folder)):
        entry.path.unlink(missing_ok=True)
    say(f"removed {_sum(gone)}; {_sum([entry for entry in kernels if entry not in gone])} stay")


def _abandoned(folder: Path | None) -> list[CachedKernel]:
    """Unfinished files that nobody is writing any more."""
    limit = datetime.datetime.now().timestamp() - HOUR
    return [file for file in unfinished(folder) if file.written < limit]


def _sum(kernels: Sequence[CachedKernel]) -> str:
    return f"{counted(len(kernels), 'kernel')}, {size_text(sum(entry.size for entry in kernels))}"


def _moment(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds).isoformat(" ", "seconds")
