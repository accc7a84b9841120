"""The AscendC texts of composite JSON files, each at its own size, and of random kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import kernelgen
from kernelgen.desc_json import load_desc
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
    printed = [_printed(origin) for origin in origins]
    found = iter(errors_of([text for text, refusal in printed if not refusal]))
    return [
        Checked(_name(origin), refusal=refusal) if refusal else Checked(_name(origin), tuple(next(found)))
        for origin, (_, refusal) in zip(origins, printed, strict=True)
    ]


def _printed(origin: Path | int) -> tuple[str, str]:
    """The text, and why there is none."""
    desc = load_desc(origin) if isinstance(origin, Path) else sample_of(origin, Job(TARGET)).desc
    try:
        return kernelgen.compile(desc, target=TARGET).source, ""
    except UnsupportedError as refusal:
        return "", f"{refusal.code}: {refusal}"


def _name(origin: Path | int) -> str:
    return origin.name if isinstance(origin, Path) else f"seed {origin}"
