"""What is known of the kernels of a network: data first, then JSON and a page for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

from graphkernel.report.page import html
from graphkernel.report.page.counted import counted, size_text
from graphkernel.report.page.shell import page
from kernelgen.system.escape import markup
from kernelgen.tensor.types import Dim

SCHEMA = 1  # of to_json; grows when a field changes its meaning
NOTE = "Times are estimates of a model, never measured by us. No kernel of this project has run on an Ascend chip."

PASSED, FAILED, VENDOR = "passed", "failed", "vendor"
"""Simulated and right; simulated and wrong, or not simulated to the end; no kernel: the vendor's operators run."""

KERNEL_COLUMNS = ("kernel", "status", "calls", "estimate us", "share", "bound by", "shapes", "UB", "blocks")
LEFT_COLUMNS = ("kernel", "calls", "code", "what")


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
        tables = (
            ("Kernels", html.sortable(KERNEL_COLUMNS, list(self._rows()))),
            ("Refused: the vendor's operators run", html.sortable(LEFT_COLUMNS, list(self._left(VENDOR)))),
            ("Failed", html.sortable(LEFT_COLUMNS, list(self._left(FAILED)))),
            ("Operators left to the vendor", html.sortable(("operator", "how many"), self._outside())),
        )
        parts = [f"<h2>{markup(name)}</h2>{table}" for name, table in tables if table]
        details = "".join(_details(kernel) for kernel in self.kernels)
        parts += [f"<h2>Each kernel</h2>{details}"] if details else []
        words = f"<h1>{title}</h1><p>{markup(self.headline)}</p><p>{markup(self.note)}</p>"
        header = f"<header>{words}{html.facts(self._facts())}</header>"
        return page(f"{self.graph} on {self.machine}", f"{header}<main>{''.join(parts)}</main><footer></footer>")

    def _facts(self) -> Iterable[tuple[str, str]]:
        yield "kernel calls", f"{sum(len(kernel.calls) for kernel in self.kernels):,}"
        yield "passed in the simulator", f"{self.count(PASSED):,}"
        yield "failed", f"{self.count(FAILED):,}"
        yield "refused", f"{self.count(VENDOR):,}"
        yield "estimated us of all kernels", f"{self.microseconds:.3g}"

    def _outside(self) -> list[tuple[object, ...]]:
        return [(name, html.Figure(str(count), count)) for name, count in self.outside.items()]

    def _rows(self) -> Iterable[tuple[object, ...]]:
        """The dearest first."""
        timed = [(kernel, kernel.run) for kernel in self.kernels if kernel.run is not None]
        total = self.microseconds or 1.0
        for kernel, run in sorted(timed, key=lambda pair: -pair[1].microseconds * len(pair[0].calls)):
            spent = run.microseconds * len(kernel.calls)
            shapes = f"{'smaller: ' if run.scaled else ''}{_shapes(run)}"
            figures = (
                html.Figure(str(len(kernel.calls)), len(kernel.calls)),
                html.Figure(f"{run.microseconds:.2f}", run.microseconds),
                html.Figure(f"{spent / total:.1%}", spent, spent / total),
            )
            memory = html.Figure(size_text(kernel.unified_buffer), kernel.unified_buffer)
            yield (
                kernel.name,
                kernel.status,
                *figures,
                run.bound_by,
                shapes,
                memory,
                html.Figure(str(kernel.blocks), kernel.blocks),
            )

    def _left(self, status: str) -> Iterable[tuple[object, ...]]:
        for kernel in self.kernels:
            if kernel.status == status:
                yield kernel.name, html.Figure(str(len(kernel.calls)), len(kernel.calls)), kernel.reason, kernel.message


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
    return f'<details class="kernel"><summary>{markup(kernel.name)}</summary><table>{facts}</table>{picture}</details>'
