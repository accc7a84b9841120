"""What a pass is, where it stands in the pipeline, and the loop that runs the steps.

A pass is a pure function ``(graph, context) -> graph``; the same object back means that nothing changed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, overload

from graphkernel.conditions import Condition, always
from graphkernel.decisions import DecisionLog
from graphkernel.errors import GraphKernelError, OptionError, PassError
from graphkernel.options import Options
from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.operator import Inferred

if TYPE_CHECKING:
    from graphkernel.cluster.area import FusionPattern
    from graphkernel.expanders.base import Expander
    from graphkernel.patterns.language import Rule

LOGGER = logging.getLogger("graphkernel.passes")


@dataclass(frozen=True)
class Context:
    """All that a pass may know besides the graph: options, the declared data it applies, and the log it writes to.

    ``disabled`` are the names of passes that do not run: what one leaves to another must not wait for nobody.
    What type rules infer is kept for all passes, and for the check of what they made: rules are functions.
    """

    options: Options = field(default_factory=Options)
    rules: tuple[Rule, ...] = ()
    expanders: Mapping[str, Expander] = field(default_factory=dict[str, "Expander"])
    fusion_patterns: tuple[FusionPattern, ...] = ()
    log: DecisionLog = field(default_factory=DecisionLog)
    disabled: frozenset[str] = frozenset()
    inferred: Inferred = field(default_factory=Inferred)

    def builder(self, origin: str = "") -> Builder:
        """One that makes nodes for a pass, in the place of the node labelled ``origin``."""
        return Builder(origin=origin, inferred=self.inferred)


def unchanged(graph: Graph, context: Context) -> Graph:
    """What an absorbed pass does."""
    return graph


Transform = Callable[[Graph, Context], Graph]
Hook = Callable[["Step", Graph, Graph], None]


@dataclass(frozen=True)
class Place:
    """Where a pass of a third-party package runs: behind ``after`` ("stage.pass"), from opt_level ``level`` on."""

    after: str
    level: int = 2
    why: str = ""


@dataclass(frozen=True)
class Pass:
    """A named transformation. ``place`` is None for passes that the pipeline table places.

    An ``absorbed`` pass has nothing to do here, where MindSpore has work for it; its documentation says why.
    """

    name: str
    run: Transform
    doc: str = ""
    place: Place | None = None
    absorbed: bool = False

    def __call__(self, graph: Graph, context: Context | None = None) -> Graph:
        """Runs the pass alone, with default options unless a context is given."""
        return self.run(graph, context or Context())


@overload
def graph_pass(transform: Transform, /) -> Pass: ...
@overload
def graph_pass(*, after: str, level: int = 2, why: str = "") -> Callable[[Transform], Pass]: ...
def graph_pass(
    transform: Transform | None = None, /, *, after: str = "", level: int = 2, why: str = ""
) -> Pass | Callable[[Transform], Pass]:
    """Declares a pass; its name is the function's, its documentation the docstring.

    ``@graph_pass`` alone for passes of the pipeline table; ``@graph_pass(after="highlevelopt1.arithmetic_simplify")``
    for passes of other packages, which say where they run.
    """
    if transform is not None:
        return Pass(transform.__name__, transform, transform.__doc__ or "")

    def declare(function: Transform) -> Pass:
        return Pass(function.__name__, function, function.__doc__ or "", Place(after, level, why))

    return declare


@dataclass(frozen=True)
class Step:
    """One row of the pipeline: a pass, its stage, the number and opt_level there, and why it stands where it stands.

    ``number`` is stable: a step keeps it whatever is switched off or added, so that ``disable_pass=2.3`` stays true.
    """

    pass_: Pass
    stage: str
    number: int
    level: int
    why: str
    when: Condition = always
    stage_number: int | None = None
    enabled: bool = True

    @cached_property
    def name(self) -> str:
        """``stage2_highlevelopt1_3_arithmetic_simplify`` or ``fusion_group_0_FlashAttentionFusionV1``, as in MindSpore."""
        stage = self.stage if self.stage_number is None else f"stage{self.stage_number}_{self.stage}"
        return f"{stage}_{self.number}_{self.pass_.name}"

    @property
    def spellings(self) -> tuple[str, ...]:
        """How enable_pass and disable_pass may call it: by stage and name, by name alone, by numbers if it has them."""
        numbers = () if self.stage_number is None else (f"{self.stage_number}.{self.number}",)
        return (f"{self.stage}.{self.pass_.name}", self.pass_.name, *numbers)


def run_steps(graph: Graph, steps: Iterable[Step], context: Context, hooks: Iterable[Hook] = ()) -> Graph:
    """Runs the enabled steps that have work here, in order; after each, every hook is called with ``(step, before, after)``.

    Of the others the log says why there is none.
    Raises :class:`PassError`, which names pass and graph and chains the cause, when a pass or a hook fails.
    """
    watchers = tuple(hooks)
    for step in steps:
        if not step.enabled:
            LOGGER.info("graph kernel pass %s is disabled.", step.name)
            continue
        if step.pass_.absorbed:
            LOGGER.info("graph kernel pass %s is not needed here: %s.", step.name, step.pass_.doc)
            continue
        LOGGER.info("graph kernel pass %s is enabled.", step.name)
        start = time.perf_counter()
        after = _run(step, graph, context)
        LOGGER.info("Run graph kernel pass %s in %.2f us", step.name, (time.perf_counter() - start) * 1e6)
        if after is not graph:
            LOGGER.info("graph kernel pass %s changed.", step.name)
        for hook in watchers:
            hook(step, graph, after)
        graph = after
    return graph


def _run(step: Step, graph: Graph, context: Context) -> Graph:
    try:
        return step.pass_.run(graph, context)
    except OptionError:
        raise  # a flag names what does not exist: no fault of the pass
    except Exception as error:
        detail = str(error) if isinstance(error, GraphKernelError) else f"{type(error).__name__}: {error}"
        raise PassError(
            f"pass {step.name} failed on graph {graph.name!r}: {detail}; "
            f"disable_pass={step.spellings[0]} goes on without it, a dump_dir keeps the graph before it"
        ) from error


def map_bodies(graph: Graph, transform: Callable[[Graph], Graph]) -> Graph:
    """Applies a transformation to the body of every fused node; the same graph when no body changed."""
    bodies = {node: transform(node.body) for node in graph.operators if node.body is not None}
    changed = {node: body for node, body in bodies.items() if body is not node.body}
    return graph.rebuild(lambda node, args: replace(node, args=args, body=changed[node]).outs, changed)
