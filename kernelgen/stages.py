"""The way from a description to a nest, as one table of stages. Each product prints as text.

desc -> scop -> folded -> grouped -> schedule -> mapped -> (proved) -> nest -> initialized -> contracted -> ...
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kernelgen.desc import KernelDesc
from kernelgen.nest.contract import contract
from kernelgen.nest.hoist import hoist
from kernelgen.nest.initialize import initialize
from kernelgen.nest.merge import merge_accumulations
from kernelgen.nest.nodes import Block, Nest
from kernelgen.nest.scalarize import scalarize
from kernelgen.nest.share import share
from kernelgen.poly.astgen import to_nest
from kernelgen.poly.build import to_scop
from kernelgen.poly.fold import fold
from kernelgen.poly.group import group
from kernelgen.poly.map_cpu import CpuPlan, map_cpu
from kernelgen.poly.proof import Proof, prove
from kernelgen.poly.relations import relations
from kernelgen.poly.schedule import schedule
from kernelgen.poly.scop import Scop

T = TypeVar("T")


@dataclass(frozen=True)
class NestPass:
    """A pass on nests and why it stands where it does."""

    run: Callable[[Nest], Nest]
    why: str


SCOP_PASSES: tuple[tuple[Callable[[Scop], Scop], str], ...] = (
    (fold, "fewer and longer loops before anything depends on their number"),
    (group, "one statement per phase keeps isl fast and values in registers"),
)
NEST_PASSES: tuple[NestPass, ...] = (
    NestPass(initialize, "accumulators start from their neutral element where their loop starts"),
    NestPass(contract, "storage is decided when the loops are known"),
    NestPass(share, "a temporary too large for the stack may still need no memory of its own"),
    NestPass(merge_accumulations, "unrolled rows meet in registers before they touch the partial result"),
    NestPass(scalarize, "a local of one element is a register"),
    NestPass(hoist, "what does not change in a loop is computed before it"),
)


@dataclass(frozen=True)
class Lowered:
    """A description lowered to a nest: the nest, the proof of its schedule, the text of every stage, milliseconds."""

    nest: Nest
    proof: Proof
    stages: dict[str, Callable[[], str]]
    milliseconds: dict[str, float]


def lower(desc: KernelDesc, plan: CpuPlan) -> Lowered:
    """Runs all stages. Raises UnsupportedError, ScheduleError or ProofError."""
    clock = _Clock()
    texts: dict[str, Callable[[], str]] = {}
    scop = clock.timed("build", lambda: to_scop(desc))
    texts["scop"] = scop.__str__
    for run, _ in SCOP_PASSES:
        scop = clock.timed(run.__name__, lambda run=run, scop=scop: run(scop))
        texts[run.__name__] = scop.__str__
    if not scop.statements:
        return Lowered(
            Nest(scop.name, scop.symbols, scop.buffers, Block(), scop.argument_shapes), Proof(()), texts, clock.ms
        )
    whole = clock.timed("relations", lambda: relations(scop))
    found = clock.timed("schedule", lambda: schedule(scop, whole))
    mapped = clock.timed("map", lambda: map_cpu(found, scop, whole, plan))
    texts["schedule"] = lambda: str(found.get_root())
    texts["mapped"] = lambda: str(mapped.get_root())
    proof = clock.timed("prove", lambda: prove(scop, whole, mapped))
    texts["proof"] = lambda: str(proof)
    nest = clock.timed("ast", lambda: to_nest(scop, whole, mapped))
    for step in NEST_PASSES:
        nest = clock.timed(step.run.__name__, lambda step=step, nest=nest: step.run(nest))
        texts[step.run.__name__] = lambda nest=nest: _show(nest)
    return Lowered(nest, proof, texts, clock.ms)


def _show(nest: Nest) -> str:
    from kernelgen.nest.text import show

    return show(nest)


class _Clock:
    def __init__(self) -> None:
        self.ms: dict[str, float] = {}

    def timed(self, name: str, work: Callable[[], T]) -> T:
        start = time.perf_counter()
        result = work()
        self.ms[name] = (time.perf_counter() - start) * 1e3
        return result
