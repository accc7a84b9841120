"""Runs AscendC text in numpy, by the documented rules: what it computes, whether its order is proved, how long it may take.

Reading order: findings, regions (bytes with strides), memory (poison and accesses), order (vector clocks), flags, meeting
(flags between cores), sharing (GM), clockwork (time), cost (cycles of an instruction), work (an instruction on its way),
ledger (what the pipes did); scalars, decode (statements made ready), bench (what a block leaves to the next), surroundings;
rounding, arithmetic (what computes); lanes (masks, repeats, strides), vector_checks, vector_lanes,
vector_choice (compare, select), vector_reduce, vector_moves (brcb, gather, transpose), copies, cube; engine (the pipes of a
core), core (the scalar unit), report, launch, outline (a launch without data).

Stricter than a chip may be: a flag is set again only when its last wait is known to be over; matrix and vector instructions
of one pipe count as unordered without a barrier, copies too; source and destination of a vector instruction are the same or
disjoint in all repeats; padding of a matrix's k must be zeros that somebody wrote.
"""

from kernelgen.targets.ascend.simulate.clockwork import Span
from kernelgen.targets.ascend.simulate.findings import KINDS, Finding
from kernelgen.targets.ascend.simulate.launch import simulate
from kernelgen.targets.ascend.simulate.report import Report

__all__ = ["KINDS", "Finding", "Report", "Span", "simulate"]
