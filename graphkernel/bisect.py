"""Bisect: the first step of the pipeline, and the decision in it, after which a graph computes something else.

Every step is a function of one graph value to the next, so each is checked by the numpy meaning of the graphs before and
after it. In the guilty step, what took part (a rule, a pattern, an expander, an operator) is switched off one by one by its
flag. When the meaning stays the same to the end, the compiled kernels are compared with it, and at last the whole run.

Source: the idea of ``-opt-bisect-limit`` (LLVM); no runs are repeated here, because steps are functions of values.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphkernel.decisions import DecisionLog
from graphkernel.declarations import Catalogue, builtin_catalogue
from graphkernel.driver import Compiler, compile_as_is
from graphkernel.errors import PassError
from graphkernel.options import Options
from graphkernel.passes.base import Context, Step, run_steps
from graphkernel.pipeline import steps_for
from graphkernel.report.verdict import Judge, Verdict, verdicts
from graphkernel.step_hooks import Progress, SameNumbers, Verify
from kernelgen.tensor.boxes import copied
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph

Arrays = Sequence[np.ndarray[Any, Any]]

SWITCHES: Mapping[str, str] = {
    "graph_kernel_expander": "disable_expand_ops",
    "graph_kernel_cluster": "disable_cluster_ops",
    "arithmetic_simplify": "disable_simplify_exprs",
    "graph_kernel_splitter": "disable_fusion_pattern",
}
"""The flag that leaves one declaration out of a pass."""


@dataclass(frozen=True)
class Culprit:
    """What makes the result wrong. ``where`` is a step or a kernel, ``flags`` what leaves the fault out."""

    where: str
    what: str
    flags: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" + (f"; right with {self.flags}" if self.flags else "")


def bisect(
    graph: Graph,
    arrays: Arrays,
    options: Options,
    catalogue: Catalogue | None = None,
    compiler: Compiler | None = None,
    tolerance: float = 1e-4,
    progress: Progress | None = None,
) -> Culprit | None:
    """The first fault on the way from the graph to its results; None when there is none.

    ``arrays`` are the inputs on which graphs are compared, ``tolerance`` is how far results may be apart before float64
    judges them. ``progress`` is told how far it is.
    """
    known = catalogue or builtin_catalogue()
    watchers = (Verify(), SameNumbers(arrays, tolerance, tolerance))
    tell, steps = progress or _unheard, steps_for(options, known)
    for number, step in enumerate(steps):
        tell("step", number, len(steps))
        try:
            after = run_steps(graph, (step,), known.context(options, steps=steps), watchers)
        except PassError as error:
            return Culprit(step.name, str(error), _what_helps(_Trial(step, graph, options, known, watchers)))
        graph = after
    tell("comparing kernels", 0, 0)
    return _wrong_kernel(graph, arrays, compiler, tolerance) or _wrong_run(graph, arrays, compiler, tolerance)


def _unheard(what: str, done: int, total: int) -> None:
    """Where nobody wants to know."""


@dataclass(frozen=True)
class _Trial:
    """A step that fails on a graph."""

    step: Step
    graph: Graph
    options: Options
    catalogue: Catalogue
    watchers: tuple[Verify, SameNumbers]

    def context(self, options: Options, log: DecisionLog | None = None) -> Context:
        """What the step is given within the whole pipeline of these options."""
        return self.catalogue.context(options, log, steps_for(options, self.catalogue))

    def is_right_with(self, options: Options) -> bool:
        """True when the step keeps the numbers under these options."""
        try:
            run_steps(self.graph, (self.step,), self.context(options), self.watchers)
        except PassError:
            return False
        return True

    def suspects(self) -> tuple[str, ...]:
        """The declarations that took part in the step, as its decisions name them; for clusters the operators."""
        if self.step.pass_.name == "graph_kernel_cluster":
            return tuple(dict.fromkeys(node.op.name for node in self.graph.operators))
        log = DecisionLog()
        with contextlib.suppress(PassError):  # what it decided before it failed stands in the log
            run_steps(self.graph, (self.step,), self.context(self.options, log))
        said = {word for decision in log for word in re.findall(r"\w+", decision.message)}
        declared = (*self.catalogue.rules, *self.catalogue.fusion_patterns, *self.catalogue.expanders)
        return tuple(entry.name for entry in declared if entry.name in said)


def _what_helps(trial: _Trial) -> str:
    """The narrowest flag that makes the step right: without one declaration, else without the pass."""
    flag = SWITCHES.get(trial.step.pass_.name, "")
    for name in trial.suspects() if flag else ():
        without = trial.options.model_copy(update={flag: (*getattr(trial.options, flag), name)})
        if trial.is_right_with(without):
            return f"--{flag}={name}"
    return f"--disable_pass={trial.step.spellings[0]}"


def _wrong_kernel(fused: Graph, arrays: Arrays, compiler: Compiler | None, tolerance: float) -> Culprit | None:
    """The first kernel whose compiled code differs from its numpy meaning."""
    kernels = [node for node in fused.operators if node.body is not None]
    probe = replace(fused, outputs=tuple(value for node in kernels for value in node.outs), aliases=(), results=())
    found = _verdicts(probe, arrays, compiler, tolerance) if kernels else []
    for value, verdict in zip(probe.outputs, found, strict=True):
        body = value.node.body
        if not verdict.is_good and body is not None:
            text = f"its code and its numpy meaning are {verdict.apart:.2e} of the largest value apart"
            held = dict.fromkeys(node.op.name for node in body.operators)
            return Culprit(f"kernel {body.name}", text, f"--disable_cluster_ops={','.join(held)}")
    return None


def _wrong_run(fused: Graph, arrays: Arrays, compiler: Compiler | None, tolerance: float) -> Culprit | None:
    """A whole run that differs though every kernel is right: the plan or the host library."""
    bad = [verdict for verdict in _verdicts(fused, arrays, compiler, tolerance) if not verdict.is_good]
    if not bad:
        return None
    worst = max(verdict.apart for verdict in bad)
    return Culprit("the run", f"every kernel is right, and outputs are {worst:.2e} of the largest value apart")


def _verdicts(graph: Graph, arrays: Arrays, compiler: Compiler | None, tolerance: float) -> list[Verdict]:
    """How far compiled results are from the numpy meaning, output by output, and whether that is more than rounding."""
    copies = copied(arrays)  # kernels write into inputs that are aliased
    got = compile_as_is(graph, compiler=compiler, host="numpy")(*copies)
    return verdicts(got, evaluate(graph, arrays), lambda: Judge.of(graph, arrays), tolerance)
