"""Runs AscendC text in numpy, by the documented rules: what it computes, whether its order is proved, how long it may take.

Rooms: core, order, state, time, vector.
Reading order: report, launch, outline, timeline.

Stricter than a chip may be: a flag is set again only when its last wait is known to be over; matrix and vector instructions
of one pipe count as unordered without a barrier, copies too; source and destination of a vector instruction are the same or
disjoint in all repeats; padding of a matrix's k must be zeros that somebody wrote.
"""

from kernelgen.simulators.ascendc.launch import simulate
from kernelgen.simulators.ascendc.report import Report
from kernelgen.simulators.ascendc.state.findings import KINDS, Finding
from kernelgen.simulators.ascendc.time.pipe_clock import Span

__all__ = ["KINDS", "Finding", "Report", "Span", "simulate"]
