"""Hooks: callables ``(step, before, after)`` that :func:`~graphkernel.passes.base.run_steps` calls after every step."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from graphkernel.errors import OptionError, PassError, VerifyError
from graphkernel.mindspore.flag_text import Complain, warn
from graphkernel.options import Options, refuse
from graphkernel.passes.base import Step
from kernelgen.system.bounded_io import write_whole
from kernelgen.system.escape import line
from kernelgen.tensor.boxes import is_text, pairs
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.evaluation.widened import evaluate_wide
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.order import sequence
from kernelgen.tensor.verify import Checked, verify

Array = np.ndarray[Any, np.dtype[Any]]
NARROW_STEPS = 4
Progress = Callable[[str, int, int], None]
"""``progress("compiling kernels", 3, 52)``: what is being done, how much of it, and of how much."""


@dataclass
class Verify:
    """Checks the invariants of every new graph; ``PassError`` names the step that broke one."""

    _checked: Checked = field(default_factory=Checked)

    def __call__(self, step: Step, before: Graph, after: Graph) -> None:
        """Checks a new graph."""
        if after is before:
            return
        try:
            self._checked = verify(after, self._checked)
            _check_order(before, after)
        except VerifyError as error:
            raise PassError(f"pass {step.name} left an invalid graph {after.name!r}: {error}") from error


def _check_order(before: Graph, after: Graph) -> None:
    """Raises VerifyError where a pass changed what is done to other processes, or when: they count on it."""
    had, has = sequence(before), sequence(after)
    if had != has:
        raise VerifyError("order", f"it did {', '.join(had) or 'nothing'}, and now does {', '.join(has) or 'nothing'}")


@dataclass
class Dump:
    """Writes each new graph as ``0003_stage1_cluster_4_graph_kernel_cluster.gk``, readable by ``parse``.

    What the disk refuses goes to ``complain``, once: no further graph is written.
    """

    folder: Path
    complain: Complain = refuse
    _count: int = 0
    _refused: bool = False

    def __call__(self, step: Step, before: Graph, after: Graph) -> None:
        """Writes a new graph; before the first step also the graph as it came."""
        if self._count == 0:
            self._write("input", before)
        if after is not before:
            self._write(step.name, after)

    def _write(self, name: str, graph: Graph) -> None:
        if self._refused:
            return
        try:
            write_whole(self.folder / f"{self._count:04d}_{name}.gk", str(graph), OptionError, folders=True)
        except OptionError as error:
            self._refused = True
            self.complain(f"dump: {error}")
        self._count += 1


@dataclass
class ClusterText:
    """Appends to ``graph_kernel_cluster_<pid>.txt`` which operators each new kernel holds, as MindSpore's dump_as_text."""

    folder: Path
    complain: Complain = refuse

    def __call__(self, step: Step, before: Graph, after: Graph) -> None:
        """Appends the kernels of a new graph after the passes that make kernels."""
        if after is before or step.pass_.name not in ("graph_kernel_cluster", "graph_kernel_splitter"):
            return
        text = "".join(_source_nodes(node) for node in after.operators if node.body is not None)
        file = self.folder / f"graph_kernel_cluster_{os.getpid()}.txt"
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(text)
        except OSError as error:
            self.complain(f"dump: {file}: cannot be written: {error.strerror}")


def _source_nodes(node: Node) -> str:
    assert node.body is not None
    named = [f"Source nodes of {node.name} = {_call(node, node.body.name)}"]
    named += [f"  {inner.name} = {_call(inner, inner.op.name)}" for inner in node.body.operators]
    return "\n".join([*map(line, named), "=" * 80, ""])


def _call(node: Node, name: str) -> str:
    return f"{name}({', '.join(value.node.name for value in node.args)})"


@dataclass
class Clock:
    """Adds up the seconds from one call to the next, per step. The first among the hooks measures passes best."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    _mark: float = field(default_factory=time.perf_counter)

    def __call__(self, step: Step, before: Graph, after: Graph) -> None:
        """Counts the time since the last call for the step."""
        now = time.perf_counter()
        self.seconds[step.name] = self.seconds.get(step.name, 0.0) + now - self._mark
        self._mark = now


@dataclass
class Advance:
    """Says after each step how many of all are done."""

    tell: Progress
    what: str
    total: int
    done: int = 0

    @staticmethod
    def over(steps: Iterable[Step], tell: Progress | None, what: str = "optimizing") -> tuple[Advance, ...]:
        """For these steps; none where nobody wants to know."""
        work = sum(step.enabled and not step.pass_.absorbed for step in steps) if tell else 0
        return (Advance(tell, what, work),) if tell else ()

    def __call__(self, step: Step, before: Graph, after: Graph) -> None:
        """Counts one step."""
        self.done += 1
        self.tell(self.what, self.done, self.total)


@dataclass
class Trail:
    """Counts the steps that ran and those that changed the graph."""

    steps: int = 0
    changed: int = 0

    def __call__(self, step: Step, before: Graph, after: Graph) -> None:
        """Counts one step."""
        self.steps += 1
        self.changed += after is not before


@dataclass
class SameNumbers:
    """Evaluates the graph before and after each step on the same arrays; ``PassError`` names the step that differs.

    Results in 16 bits may be some of their own steps apart, relative to the largest value of the output. Where results
    differ in their own types and agree in float64, the step only rounds otherwise.
    """

    arrays: Sequence[Array]
    relative: float = 1e-5
    absolute: float = 1e-6
    _last: tuple[Graph, tuple[Array, ...]] | None = field(default=None, repr=False)

    def __call__(self, step: Step, before: Graph, after: Graph) -> None:
        """Compares the outputs of a new graph with those of the graph before."""
        if after is before:
            return
        expected, found = self.results(before), self.results(after)
        worst = self._worst(expected, found)
        if (
            worst is not None
            and self._worst(*(evaluate_wide(each, self.arrays) for each in (before, after))) is not None
        ):
            index, apart = worst
            raise PassError(f"pass {step.name} changed output {index} of graph {after.name!r} by up to {apart:g}")

    def results(self, graph: Graph) -> tuple[Array, ...]:
        """The outputs of a graph; what came out of a step goes into the next."""
        if self._last is None or self._last[0] is not graph:
            self._last = (graph, evaluate(graph, self.arrays))
        return self._last[1]

    def _worst(self, expected: Sequence[Array], found: Sequence[Array]) -> tuple[int, float] | None:
        """The first output that differs, and by how much."""
        for index, (ours, given) in enumerate(zip(expected, found, strict=True)):
            matches = pairs(ours, given)
            apart = [np.inf] if matches is None else [each for pair in matches if (each := self._apart(*pair))]
            if apart:
                return index, max(apart)
        return None

    def _apart(self, ours: Array, given: Array) -> float:
        """How far two arrays are apart; 0.0 where that is not more than is allowed."""
        if is_text(ours) or is_text(given) or ours.shape != given.shape:
            return 0.0 if np.array_equal(ours, given) else np.inf
        wide, got = _wide(ours), _wide(given)
        if np.allclose(got, wide, self.relative, self.absolute + _steps(ours), equal_nan=True):
            return 0.0
        return float(np.nanmax(np.abs(got - wide)))


def _steps(array: Array) -> float:
    """For 16-bit floats: some distances between neighbours at the largest finite value; else nothing."""
    flat = array.reshape(-1)
    finite = flat[np.isfinite(flat)] if array.dtype.itemsize == 2 and array.dtype.kind not in "iu" else flat[:0]
    if finite.size == 0:
        return 0.0
    precision = float(ml_dtypes.finfo(array.dtype).eps)
    return NARROW_STEPS * precision * float(np.abs(finite).max())


def _wide(array: Array) -> Array:
    return array if array.dtype.kind == "c" else array.astype(np.float64)


def dumps_for(options: Options, by_variable: bool = False) -> tuple[Dump | ClusterText, ...]:
    """The dumps that the options ask for; ``dump_as_text`` means ``graph_kernel_dump/`` in the working folder.

    A dump that cannot be written raises ``OptionError``; ``by_variable``, where the environment asks, it warns.
    """
    folder = Path(options.dump_dir or "graph_kernel_dump")
    complain = warn if by_variable or options.mistakes == "warn" else refuse
    if options.dump_as_text:
        return (Dump(folder, complain), ClusterText(folder, complain))
    return (Dump(folder, complain),) if options.dump_dir else ()
