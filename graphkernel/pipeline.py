"""The pipeline: which pass runs where, from which level on, and why; and the catalogue of all that is declared.

The order of this table is the order of the passes. Numbers are those of MindSpore 2.10 where it has the pass and start
at 20 where it has not, so that ``--disable_pass=2.3`` means the same there and here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

from graphkernel.catalogue import collect
from graphkernel.cluster.area import FusionPattern
from graphkernel.decisions import DecisionLog
from graphkernel.errors import CatalogueError, nearest
from graphkernel.expanders.base import Expander
from graphkernel.ir.opdef import OpDef
from graphkernel.options import Options
from graphkernel.passes.axis_normalizer import axis_normalizer
from graphkernel.passes.base import Context, Pass, Step
from graphkernel.passes.cluster import graph_kernel_cluster
from graphkernel.passes.cse import graph_kernel_cse
from graphkernel.passes.expand import graph_kernel_expander
from graphkernel.passes.fold import constant_folding
from graphkernel.passes.redundant_output import eliminate_redundant_output
from graphkernel.passes.seal import graph_kernel_seal
from graphkernel.passes.simplify import arithmetic_simplify
from graphkernel.passes.split import graph_kernel_splitter
from graphkernel.patterns.language import Rule

Entry = TypeVar("Entry", OpDef, Rule, Expander, FusionPattern, Pass)

STAGES = ("preprocess", "cluster", "highlevelopt1", "split", "highlevelopt2", "combine", "build", "postprocess")

PIPELINE = (
    Step(graph_kernel_cse, "preprocess", 7, level=2, why="what the model says twice is expanded and fused once"),
    Step(graph_kernel_expander, "cluster", 3, level=1, why="basic operators are all that the later steps know"),
    Step(constant_folding, "cluster", 20, level=2, why="what is known at compile time needs no kernel"),
    Step(graph_kernel_cluster, "cluster", 4, level=1, why="clusters as large as can be leave the splitter all choices"),
    Step(eliminate_redundant_output, "cluster", 6, level=1, why="later steps must not keep alive what nobody uses"),
    Step(axis_normalizer, "highlevelopt1", 1, level=1, why="one spelling of axes halves the rules and the patterns"),
    Step(arithmetic_simplify, "highlevelopt1", 3, level=2, why="whole clusters show what cancels, before they are cut"),
    Step(graph_kernel_cse, "highlevelopt1", 6, level=2, why="expansion and simplification make equal sub-expressions"),
    Step(graph_kernel_splitter, "split", 4, level=1, why="kernels are decided here and nowhere else"),
    Step(graph_kernel_cse, "split", 7, level=2, why="two equal kernels on equal operands are one"),
    Step(eliminate_redundant_output, "split", 9, level=1, why="kernels store only what is read"),
    Step(
        graph_kernel_seal,
        "build",
        20,
        level=1,
        why="the kernel generator sees operands it can take and names that are true",
    ),
)


@dataclass(frozen=True)
class Catalogue:
    """All that is declared: operators, rules, expanders, fusion patterns and passes, in a fixed order."""

    ops: tuple[OpDef, ...] = ()
    rules: tuple[Rule, ...] = ()
    expanders: tuple[Expander, ...] = ()
    fusion_patterns: tuple[FusionPattern, ...] = ()
    passes: tuple[Pass, ...] = ()

    def with_package(self, *names: str) -> Catalogue:
        """The catalogue with what the modules of further packages declare; ``CatalogueError`` when a name is taken."""
        return replace(
            self,
            ops=_joined(self.ops, OpDef, names),
            rules=_joined(self.rules, Rule, names),
            expanders=_joined(self.expanders, Expander, names),
            fusion_patterns=_joined(self.fusion_patterns, FusionPattern, names),
            passes=_joined(self.passes, Pass, names),
        )

    def context(self, options: Options, log: DecisionLog | None = None) -> Context:
        """What passes are given: options, declarations and a log."""
        expanders = {entry.name: entry for entry in self.expanders}
        return Context(options, self.rules, expanders, self.fusion_patterns, DecisionLog() if log is None else log)


@cache
def builtin_catalogue() -> Catalogue:
    """What this project declares."""
    return Catalogue().with_package(
        "graphkernel.ops", "graphkernel.patterns", "graphkernel.expanders", "graphkernel.passes"
    )


def steps_for(options: Options, catalogue: Catalogue | None = None) -> tuple[Step, ...]:
    """Every step in order, each enabled or not; at level 0 none is.

    A step is on when its level and target fit, unless ``disable_pass`` names it; ``enable_pass`` forces it on. Entries
    that name no step are told to the user at once. Passes of the catalogue that say their own place are put there.
    """
    steps = _numbered(_placed(PIPELINE, (catalogue or builtin_catalogue()).passes))
    _check_names(options, steps)
    return tuple(replace(step, enabled=_is_enabled(step, options)) for step in steps)


def _is_enabled(step: Step, options: Options) -> bool:
    if options.opt_level == 0 or set(step.spellings) & set(options.disable_pass):
        return False
    fits = step.level <= options.opt_level and step.when(options)
    return fits or bool(set(step.spellings) & set(options.enable_pass))


def _check_names(options: Options, steps: Iterable[Step]) -> None:
    known = {spelling for step in steps for spelling in step.spellings}
    for flag in ("enable", "disable"):
        for name in getattr(options, f"{flag}_pass"):
            if name not in known:
                options.complain(f'graph kernel pass {flag} flag "{name}" is not valid!{nearest(name, known)}')


def _numbered(steps: Iterable[Step]) -> tuple[Step, ...]:
    return tuple(replace(step, stage_number=STAGES.index(step.stage)) for step in steps)


def _placed(steps: tuple[Step, ...], passes: Iterable[Pass]) -> tuple[Step, ...]:
    """The table with the passes that say their own place behind the steps that they name."""
    for entry in passes:
        if entry.place is not None:
            steps = _insert(steps, entry)
    return steps


def _insert(steps: tuple[Step, ...], entry: Pass) -> tuple[Step, ...]:
    place = entry.place
    assert place is not None, "only passes with a place are inserted"
    positions = {f"{step.stage}.{step.pass_.name}": index for index, step in enumerate(steps)}
    if place.after not in positions:
        raise CatalogueError(
            f"pass {entry.name!r} wants to run after {place.after!r}, which is no step{nearest(place.after, positions)}; "
            f"steps: {', '.join(positions)}"
        )
    index = positions[place.after]
    stage = steps[index].stage
    number = 1 + max(max(step.number for step in steps if step.stage == stage), 99)
    return (*steps[: index + 1], Step(entry, stage, number, place.level, place.why), *steps[index + 1 :])


def _joined(present: tuple[Entry, ...], kind: type[Entry], packages: Iterable[str]) -> tuple[Entry, ...]:
    """The entries present and those of further packages; a value that is imported from elsewhere counts once."""
    found = {entry.name: entry for entry in present}
    for package in packages:
        for entry in collect(package, kind):
            if found.setdefault(entry.name, entry) is not entry:
                raise CatalogueError(
                    f"{package} declares the {kind.__name__} {entry.name!r}, which exists already; rename it"
                )
    return tuple(found.values())
