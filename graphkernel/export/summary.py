"""What is known of the kernels of a network: data first, then JSON and a page for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

from graphkernel.escape import markup
from graphkernel.ir.types import Dim
from graphkernel.report import html
from graphkernel.report.counted import counted, size_text

SCHEMA = 1  # of to_json; grows when a field changes its meaning
NOTE = "Times are estimates of a model, never measured by us. No kernel of this project has run on an Ascend chip."

PASSED, FAILED, VENDOR = "passed", "failed", "vendor"
"""Simulated and right; simulated and wrong, or not simulated to the end; no kernel: the vendor's operators run."""

STYLE = """body { font-family: sans-serif; margin: 2em; } table { border-collapse: collapse; margin: 1em 0; }
td, th { border: 1px solid #ccc; padding: 2px 8px; text-align: left; } img { max-width: 100%; }"""


@dataclass(frozen=True)
class Run:
    """One run in the simulator. ``shapes`` are those of inputs and outputs; ``scaled`` where they are not the kernel's own.

    ``pipes`` holds the busy cycles of each pipe of the slowest core, ``bound_by`` what the time is made of.
    """

    shapes: tuple[tuple[int, ...], ...]
    scaled: bool
    cycles: float
    microseconds: float
    bound_by: str
    pipes: Mapping[str, float]
    gm_bytes: int
    largest_error: float
    timeline: str


@dataclass(frozen=True)
class KernelLine:
    """One kernel; ``calls`` names the nodes that run it. ``reason`` is a code where there is no kernel or no right result."""

    name: str
    status: str
    operators: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    calls: tuple[str, ...]
    bytes_moved: Dim
    bytes_unfused: Dim
    reason: str = ""
    message: str = ""
    blocks: int = 0
    unified_buffer: int = 0
    run: Run | None = None

    def __str__(self) -> str:
        if self.run is None:
            return f"{self.name}: {self.status}: {self.message}"
        size = "smaller shapes" if self.run.scaled else "own shapes"
        return f"{self.name}: {self.status}, {self.run.microseconds:.2f} us at {size}, bound by {self.run.bound_by}"


@dataclass(frozen=True)
class NetworkSummary:
    """A network's kernels for one machine, and what stays with the vendor's operators beside them.

    ``outside`` counts the operators that the vendor runs, by name: those that no kernel was made of, and those of kernels
    that were refused. ``views`` counts Reshape and its like, for which nothing runs.
    """

    graph: str
    machine: str
    operators_before: int
    operators_after: int
    kernels: tuple[KernelLine, ...]
    outside: Mapping[str, int]
    views: int
    seconds: float
    note: str = field(default=NOTE)

    def count(self, status: str) -> int:
        """How many kernels ended so."""
        return sum(kernel.status == status for kernel in self.kernels)

    @property
    def headline(self) -> str:
        """One line."""
        calls = sum(len(kernel.calls) for kernel in self.kernels)
        return (
            f"{self.graph} on {self.machine}: {counted(calls, 'kernel call')}, {len(self.kernels)} distinct: "
            f"{self.count(PASSED)} passed in the simulator, {self.count(FAILED)} failed, "
            f"{self.count(VENDOR)} refused; {self.left}; {self.seconds:.0f} s"
        )

    @property
    def left(self) -> str:
        """What the vendor's operators run, in words."""
        names = ", ".join(f"{count} {name}" for name, count in self.outside.items())
        number = counted(sum(self.outside.values()), "operator")
        return f"{number} left to the vendor" + (f" ({names})" if names else "")

    @property
    def microseconds(self) -> float:
        """The estimates of all calls together, at the shapes that were simulated."""
        return sum(len(kernel.calls) * kernel.run.microseconds for kernel in self.kernels if kernel.run is not None)

    def to_json(self) -> str:
        """All of it as JSON text; symbolic sizes are texts."""
        document = {"schema": SCHEMA, "headline": self.headline, "estimated_microseconds": self.microseconds}
        return json.dumps(document | asdict(self), default=str, indent=1) + "\n"

    def to_html(self) -> str:
        """All of it as a page; pictures of the timelines are files beside it."""
        title = markup(f"{self.graph} on {self.machine}")
        parts = [
            html.table(
                "kernels",
                ("kernel", "calls", "status", "estimate us", "bound by", "shapes", "UB", "blocks"),
                self._rows(),
            ),
            html.table("refused: the vendor's operators run", ("kernel", "calls", "code", "why"), self._left(VENDOR)),
            html.table("failed", ("kernel", "calls", "code", "what"), self._left(FAILED)),
            html.table("operators left to the vendor", ("operator", "how many"), self.outside.items()),
            "".join(_details(kernel) for kernel in self.kernels),
        ]
        body = html.section(self.headline, parts)
        return (
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head>'
            f"<body><h1>{title}</h1><p>{markup(self.note)}</p>{body}</body></html>\n"
        )

    def _rows(self) -> Iterable[tuple[object, ...]]:
        for kernel in self.kernels:
            if kernel.run is not None:
                shapes = f"{'smaller: ' if kernel.run.scaled else ''}{_shapes(kernel.run)}"
                time, bound = f"{kernel.run.microseconds:.2f}", kernel.run.bound_by
                size = size_text(kernel.unified_buffer)
                yield kernel.name, len(kernel.calls), kernel.status, time, bound, shapes, size, kernel.blocks

    def _left(self, status: str) -> Iterable[tuple[object, ...]]:
        for kernel in self.kernels:
            if kernel.status == status:
                yield kernel.name, len(kernel.calls), kernel.reason, kernel.message


def _shapes(run: Run) -> str:
    return ", ".join("x".join(map(str, shape)) or "1" for shape in run.shapes)


def _details(kernel: KernelLine) -> str:
    """What a kernel holds, and its pipes over time."""
    if kernel.run is None:
        return ""
    run = kernel.run
    pipes = ", ".join(f"{pipe} {cycles:.0f}" for pipe, cycles in run.pipes.items() if cycles)
    lines = (
        ("operators", ", ".join(kernel.operators)),
        ("inputs", ", ".join(kernel.inputs)),
        ("outputs", ", ".join(kernel.outputs)),
        ("calls", ", ".join(kernel.calls)),
        ("bytes", f"{size_text(kernel.bytes_moved)} moved, {size_text(kernel.bytes_unfused)} unfused"),
        ("estimate", f"{run.cycles:.0f} cycles, {run.microseconds:.2f} us, bound by {run.bound_by}"),
        ("busy cycles of the slowest core", pipes),
        ("largest error", f"{run.largest_error:.2g}"),
    )
    facts = "".join(f"<tr><th>{markup(name)}</th><td>{markup(text)}</td></tr>" for name, text in lines)
    picture = f'<img loading="lazy" alt="pipes over time" src="{markup(run.timeline)}">'
    return f"<details><summary>{markup(kernel.name)}</summary><table>{facts}</table>{picture}</details>"
