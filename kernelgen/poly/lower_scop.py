"""Scop -> proved loop nest: the polyhedral story in one function.

relations -> schedule -> plan -> mapped -> proof -> loops
"""

from __future__ import annotations

from collections.abc import Callable

import islpy as isl

from kernelgen.errors import UnsupportedError
from kernelgen.nest.nodes import Block, Nest
from kernelgen.nest.text import show
from kernelgen.plan import BandPlan, Plan, text_of
from kernelgen.poly.model.contexts import limited_context
from kernelgen.poly.model.relations import Relations, relations
from kernelgen.poly.model.scop import Scop
from kernelgen.poly.proof.schedule_proof import Proof, prove
from kernelgen.poly.schedule.apply_plan import apply
from kernelgen.poly.schedule.compute_schedule import schedule
from kernelgen.poly.schedule.generate_loops import to_nest
from kernelgen.stage_log import Trail

OPERATION_LIMIT = 100_000_000  # of isl's elementary operations for one kernel: some seconds


Choice = Callable[[isl.Schedule, Scop, Relations, Plan], tuple[BandPlan, ...]]
"""A machine's mapping: the plan of every band of a schedule, innermost first."""


def to_loops(scop: Scop, plan: Plan, choose: Choice, trail: Trail) -> tuple[Nest, Proof, tuple[BandPlan, ...]]:
    """The loops of a grouped scop, the proof of their schedule, and the plan of its bands: the given one or what
    ``choose`` says.

    Raises ArgumentError when the plan does not fit the schedule, ProofError when a proof fails, UnsupportedError("budget")
    when isl does not finish within its budget.
    """
    if not scop.statements:
        return Nest(scop.name, scop.symbols, scop.buffers, Block(), scop.argument_shapes), Proof(()), ()
    try:
        with limited_context(OPERATION_LIMIT) as context:
            whole = trail.run("relations", lambda: relations(scop, context=context), lambda r: str(r.flow))
            found = trail.run("schedule", lambda: schedule(scop, whole), _tree)
            given = plan.bands
            bands = trail.run("plan", lambda: choose(found, scop, whole, plan) if given is None else given, text_of)
            mapped = trail.run("mapped", lambda: apply(found, bands), _tree)
            proof = trail.run("proof", lambda: prove(scop, whole, mapped))
            return trail.run("loops", lambda: to_nest(scop, whole, mapped), show), proof, bands
    except isl.Error as error:
        message = f"the polyhedral analysis of {scop.name} did not finish within {OPERATION_LIMIT} operations"
        raise UnsupportedError("budget", message) from error


def _tree(schedule_: isl.Schedule) -> str:
    return schedule_.get_root().to_str().removeprefix("# YOU ARE HERE\n")
