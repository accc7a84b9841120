"""The way from a description to a nest, as tables of stages that each say why they stand where they do.

desc -> build -> fold -> group -> relations -> schedule -> mapped -> proof -> loops -> initialize -> ... -> hoist
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kernelgen.desc import KernelDesc
from kernelgen.nest.contract import contract, contract_large
from kernelgen.nest.hoist import hoist
from kernelgen.nest.initialize import initialize
from kernelgen.nest.merge import merge_accumulations
from kernelgen.nest.nodes import Nest
from kernelgen.nest.scalarize import scalarize
from kernelgen.nest.share import share
from kernelgen.nest.text import show
from kernelgen.poly.build import to_scop
from kernelgen.poly.fold import fold
from kernelgen.poly.group import group
from kernelgen.poly.loops import to_loops
from kernelgen.poly.map_cpu import CpuPlan
from kernelgen.poly.proof import Proof
from kernelgen.poly.scop import Scop
from kernelgen.poly.text import show_scop
from kernelgen.trail import Trail

T = TypeVar("T")


@dataclass(frozen=True)
class Stage(Generic[T]):
    """A pass of a scop or a nest onto itself."""

    run: Callable[[T], T]
    why: str

    @property
    def name(self) -> str:
        """The function's name."""
        return self.run.__name__


SCOP_STAGES: tuple[Stage[Scop], ...] = (
    Stage(fold, "fewer and longer loops before anything depends on their number"),
    Stage(group, "one statement per phase keeps isl fast and values in registers"),
)
NEST_STAGES: tuple[Stage[Nest], ...] = (
    Stage(initialize, "accumulators start from their neutral element where their loop starts"),
    Stage(contract, "storage is decided when the loops are known"),
    Stage(share, "a temporary too large for the stack may still need no memory of its own"),
    Stage(contract_large, "what must have memory of its own has at least no more than is alive"),
    Stage(merge_accumulations, "unrolled rows meet in registers before they touch the partial result"),
    Stage(scalarize, "a local of one element is a register"),
    Stage(hoist, "what does not change in a loop is computed before it"),
)


@dataclass(frozen=True)
class Lowered:
    """A description lowered to a nest, with the proof of its schedule and the trail of its stages."""

    nest: Nest
    proof: Proof
    trail: Trail


def lower(desc: KernelDesc, plan: CpuPlan) -> Lowered:
    """Runs all stages. Raises UnsupportedError or ProofError."""
    trail = Trail()
    scop = trail.run("build", lambda: to_scop(desc), show_scop)
    for stage in SCOP_STAGES:
        scop = trail.run(stage.name, lambda stage=stage, scop=scop: stage.run(scop), show_scop)
    nest, proof = to_loops(scop, plan, trail)
    for step in NEST_STAGES:
        nest = trail.run(step.name, lambda step=step, nest=nest: step.run(nest), show)
    return Lowered(nest, proof, trail)
