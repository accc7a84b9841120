"""Ascend: a nest as AscendC, printed, read back, proved and simulated without a chip. docs/ascend.md says what that shows.

Rooms: lower, package, proof.
Reading order: entry, target.

Loop nests become frozen statements of :mod:`kernelgen.ascendc.instructions`, their calls by the names of the arguments
(:mod:`kernelgen.ascendc.builder`). What is simulated is the text, never the statements.
"""

from kernelgen.targets.ascend.target import TARGET

__all__ = ["TARGET"]
