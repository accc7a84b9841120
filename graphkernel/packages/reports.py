"""Reports as texts that are the same in each build, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, cast

from graphkernel.errors import PackageError
from graphkernel.report.report import Fallback, HostEntry, KernelEntry, Report
from kernelgen.system.bounded_io import json_value
from kernelgen.tensor.types import Dim, parse_dim

if TYPE_CHECKING:
    from graphkernel.report.page.story import Story

Fields = Mapping[str, Any]  # what JSON holds


def report_text(report: Report) -> str:
    """As JSON, without the times of this build."""
    kernels = tuple(replace(kernel, compile_ms=0.0, cached=True) for kernel in report.kernels)
    return replace(report, kernels=kernels, optimize_ms=0.0, compile_ms=0.0).to_json()


def report_of(text: str, load_ms: float | None, story: Callable[[], Story] | None = None) -> Report:
    """The report of a ``text``, of an executable that was loaded in ``load_ms`` milliseconds, or None where the times in the
    text are to stand; ``story`` is told where somebody knows it.

    Raises PackageError for a text that is no report.
    """
    try:
        return replace(_report(cast("Fields", json_value(text, PackageError)), load_ms), story=story)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PackageError(f"a report that is none: {error}") from error


def _report(given: Fields, load_ms: float | None) -> Report:
    parts: dict[str, Any] = {
        "kernels": tuple(_kernel(entry) for entry in given["kernels"]),
        "host": tuple(HostEntry(**_known(HostEntry, entry)) for entry in given["host"]),
        "fallbacks": tuple(Fallback(**_known(Fallback, entry)) for entry in given["fallbacks"]),
        "compile_ms": given["compile_ms"] if load_ms is None else load_ms,
    }
    return Report(**{**_known(Report, given), **parts})


def _kernel(given: Fields) -> KernelEntry:
    found = _known(KernelEntry, given)
    sizes: dict[str, Any] = {name: _size(found[name]) for name in ("bytes_moved", "bytes_unfused")}
    return KernelEntry(**{**found, **sizes})


def _size(given: int | str) -> Dim:
    return given if isinstance(given, int) else parse_dim(given)


def _known(kind: type, given: Fields) -> dict[str, Any]:
    """What the class has fields for; lists are tuples."""
    names = {field.name for field in fields(kind)}
    return {
        name: tuple(cast("list[Any]", value)) if isinstance(value, list) else value
        for name, value in given.items()
        if name in names
    }
