"""The AscendC texts of composite JSON files, each at its own size, and of random kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import kernelgen
from kernelgen.composite.read import load_desc
from kernelgen.errors import UnsupportedError
from tests.ascendc_compile.compiler import errors_of
from tests.random_kernels.pool import Job, sample_of

TARGET = "ascend"


@dataclass(frozen=True)
class Checked:
    """One kernel: what clang says, or why there is no kernel."""

    name: str
    errors: tuple[str, ...] = ()
    refusal: str = ""


def check(origins: Sequence[Path | int]) -> list[Checked]:
    """The kernels of files and of seeds."""
    made = [_printed(origin) for origin in origins]
    found = iter(errors_of([one for one in made if isinstance(one, str)]))
    return [
        Checked(_name(origin), tuple(next(found))) if isinstance(one, str) else one
        for origin, one in zip(origins, made, strict=True)
    ]


def _printed(origin: Path | int) -> str | Checked:
    """The text, or what became of the kernel instead: any error but a refusal is a failure of its own."""
    desc = load_desc(origin) if isinstance(origin, Path) else sample_of(origin, Job(TARGET)).desc
    try:
        return kernelgen.compile(desc, target=TARGET).source
    except UnsupportedError as refusal:
        return Checked(_name(origin), refusal=f"{refusal.code}: {refusal}")
    except Exception as error:  # the report names it
        return Checked(_name(origin), (f"no text: {type(error).__name__}: {error}",))


def _name(origin: Path | int) -> str:
    return origin.name if isinstance(origin, Path) else f"seed {origin}"
