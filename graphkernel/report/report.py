"""What an executable consists of: kernels and what each holds, host regions, fallbacks with reasons, times."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphkernel.report.page import html
from graphkernel.report.page.counted import counted, size_text
from kernelgen.system.escape import line, lines
from kernelgen.tensor.types import Dim

if TYPE_CHECKING:
    from graphkernel.report.page.story import Story
    from graphkernel.runtime.measure import StepTime

SCHEMA = 1  # of to_json; grows when a field changes its meaning


@dataclass(frozen=True)
class KernelEntry:
    """One compiled kernel. Equal kernels are compiled once: ``calls`` names the fused nodes that run it.

    ``bytes_moved`` counts operands read and results written, ``bytes_unfused`` the same for its operators one by one;
    both are a number, or a polynomial over the symbols of the shapes. A call is ``launches`` of a device one after another.
    """

    name: str
    operators: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    calls: tuple[str, ...]
    bytes_moved: Dim
    bytes_unfused: Dim
    compile_ms: float
    cached: bool = False
    proof: str = ""
    launches: int = 1

    def __str__(self) -> str:
        origin = "cached" if self.cached else f"{self.compile_ms:.1f} ms"
        times = f" x{len(self.calls)}" if len(self.calls) > 1 else ""
        held = f"{self.name}{times}: {_counted(self.operators)}"
        held += f"; {self.launches} launches" if self.launches > 1 else ""
        return line(f"{held}; {size_text(self.bytes_moved)} moved, {size_text(self.bytes_unfused)} unfused; {origin}")


@dataclass(frozen=True)
class HostEntry:
    """A step that a host library runs."""

    name: str
    library: str
    operators: tuple[str, ...]

    def __str__(self) -> str:
        return line(f"{self.name} on {self.library}: {_counted(self.operators)}")


@dataclass(frozen=True)
class Fallback:
    """A node that runs elsewhere than it should: what, the code of the reason, the reason, and what to do about it.

    ``trace`` is the traceback where the code is ``internal``: a fault of this program, which the operators got round.
    """

    node: str
    operator: str
    code: str
    reason: str
    advice: str
    trace: str = ""

    def __str__(self) -> str:
        said = line(f"{self.operator} {self.node}: {self.code}: {self.reason}; {self.advice}")
        return "\n    ".join([said, *lines(self.trace).splitlines()])


@dataclass(frozen=True)
class Report:
    """Prints as text; ``to_json()`` for machines, ``to_html()`` for people, tables in notebooks.

    ``operators`` is how many the model has, see :func:`kernelgen.tensor.origin.model_operators`; kernels hold what they became.
    ``story`` gives the graphs and decisions that a page shows, where they are known.
    """

    graph: str
    target: str
    opt_level: int | None
    library: str
    kernels: tuple[KernelEntry, ...]
    host: tuple[HostEntry, ...]
    fallbacks: tuple[Fallback, ...]
    optimize_ms: float
    compile_ms: float
    operators: int
    story: Callable[[], Story] | None = field(default=None, compare=False, repr=False)

    @property
    def kernel_calls(self) -> int:
        """How many kernels one run of the graph calls."""
        return sum(len(kernel.calls) for kernel in self.kernels)

    @property
    def launches(self) -> int:
        """How many launches these calls are on a device."""
        return sum(len(kernel.calls) * kernel.launches for kernel in self.kernels)

    @property
    def summary(self) -> str:
        """One line."""
        launches = f"{counted(self.launches, 'launch', 'launches')}, " if self.target.startswith("gpu") else ""
        return line(
            f"{self.graph}: {counted(self.operators, 'operator')} became {counted(self.kernel_calls, 'kernel call')} "
            f"({launches}{len(self.kernels)} distinct, {sum(kernel.cached for kernel in self.kernels)} cached) "
            f"and {counted(len(self.host), 'host step')}, "
            f"{counted(len(self.fallbacks), 'fallback')}; optimized in {self.optimize_ms:.0f} ms, "
            f"compiled in {self.compile_ms:.0f} ms"
        )

    def __str__(self) -> str:
        parts: list[tuple[str, Iterable[object]]] = [
            ("kernels", self.kernels), ("host steps", self.host), ("fallbacks", self.fallbacks)
        ]  # fmt: skip
        told = [f"{title}:\n" + "\n".join(f"  {entry}" for entry in entries) for title, entries in parts if entries]
        return "\n".join([self.summary, *told])

    def to_json(self) -> str:
        """All of it as JSON text; symbolic sizes are texts."""
        return json.dumps({"schema": SCHEMA, "summary": self.summary, **self._entries()}, default=_plain, indent=2)

    def _entries(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "story"}

    def to_html(self, times: Iterable[StepTime] = (), extents: Mapping[str, int] | None = None) -> str:
        """A page: the graph before and after, tables, sources and proofs; it needs no other file and no network.

        ``times`` are what :func:`graphkernel.runtime.measure.profile` found, which the boxes are coloured by; ``extents``
        the values of the symbols that it ran with.
        """
        from graphkernel.report.page.report_page import Telling, report_page  # with the template of the page

        story = self.story() if self.story is not None else None
        seconds = {step.name: step.seconds.median for step in times}
        return report_page(Telling(self, story, seconds, extents or {}))

    def _tables(self) -> str:
        """The same as tables, for a cell of a notebook."""
        kernels = [
            (
                k.name,
                len(k.calls),
                _counted(k.operators),
                size_text(k.bytes_moved),
                size_text(k.bytes_unfused),
                f"{k.compile_ms:.1f}",
            )
            for k in self.kernels
        ]
        fallbacks = [(entry.node, entry.operator, entry.code, entry.reason, entry.advice) for entry in self.fallbacks]
        host = [(entry.name, entry.library, _counted(entry.operators)) for entry in self.host]
        return html.section(self.summary, (
            html.table("kernels", ("kernel", "calls", "operators", "moved", "unfused", "compile ms"), kernels),
            html.table("host steps", ("step", "library", "operators"), host),
            html.table("fallbacks", ("node", "operator", "code", "reason", "what to do"), fallbacks),
        ))  # fmt: skip

    def _repr_html_(self) -> str:
        return self._tables()

    def __getstate__(self) -> dict[str, object]:
        """Without the story, which holds kernels."""
        return {**vars(self), "story": None}


def _plain(value: object) -> object:
    """What JSON has no form for: entries become mappings, symbolic sizes texts."""
    return vars(value) if isinstance(value, KernelEntry | HostEntry | Fallback) else str(value)


def _counted(operators: Iterable[str]) -> str:
    """``Mul x2, Add``: each operator once, in order of appearance."""
    return ", ".join(name if count == 1 else f"{name} x{count}" for name, count in Counter(operators).items())
