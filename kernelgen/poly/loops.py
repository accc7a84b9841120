"""Scop -> proved loop nest: the polyhedral story in one function.

relations -> schedule -> mapped -> proof -> loops
"""

from __future__ import annotations

import islpy as isl

from kernelgen.errors import UnsupportedError
from kernelgen.nest.nodes import Block, Nest
from kernelgen.nest.text import show
from kernelgen.poly.astgen import to_nest
from kernelgen.poly.map_cpu import CpuPlan, map_cpu
from kernelgen.poly.proof import Proof, prove
from kernelgen.poly.relations import relations
from kernelgen.poly.schedule import schedule
from kernelgen.poly.scop import Scop
from kernelgen.trail import Trail

OPERATION_LIMIT = 100_000_000  # of isl's elementary operations for one kernel: some seconds


def to_loops(scop: Scop, plan: CpuPlan, trail: Trail) -> tuple[Nest, Proof]:
    """The loops of a grouped scop and the proof of their schedule.

    Raises ProofError when a proof fails, UnsupportedError("budget") when isl does not finish within its budget.
    """
    if not scop.statements:
        return Nest(scop.name, scop.symbols, scop.buffers, Block(), scop.argument_shapes), Proof(())
    context = isl.Context()
    context.set_max_operations(OPERATION_LIMIT)
    try:
        whole = trail.run("relations", lambda: relations(scop, context=context), lambda r: str(r.flow))
        found = trail.run("schedule", lambda: schedule(scop, whole), _tree)
        mapped = trail.run("mapped", lambda: map_cpu(found, scop, whole, plan), _tree)
        proof = trail.run("proof", lambda: prove(scop, whole, mapped))
        return trail.run("loops", lambda: to_nest(scop, whole, mapped), show), proof
    except isl.Error as error:
        message = f"the polyhedral analysis of {scop.name} did not finish within {OPERATION_LIMIT} operations"
        raise UnsupportedError("budget", message) from error
    finally:
        context.set_max_operations(0)


def _tree(schedule_: isl.Schedule) -> str:
    return schedule_.get_root().to_str().removeprefix("# YOU ARE HERE\n")
