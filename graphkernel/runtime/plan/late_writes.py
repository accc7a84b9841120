"""Kernels that write over an input of the graph come behind everybody who reads it, where nobody waits for what they make.

Before and after, for a kernel U that writes over w, and a product that reads w as it was::

    u = U(w, g) -> w;  d = MatMul(g, w)    ==>    d = MatMul(g, w);  u = U(w, g) -> w

An optimizer's update so needs no copy of the weight. The order of reads and writes is no dependence of the graph, where all is
pure: what this order does not allow is copied, as :mod:`graphkernel.runtime.plan.storage` finds out afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from graphkernel.runtime.steps.program import memory_roots
from graphkernel.runtime.steps.steps import KernelStep, Step


def with_late_writes(steps: Sequence[Step], inputs: Collection[int]) -> list[Step]:
    """The steps in an order in which those that write over one of the slots ``inputs`` come late."""
    roots = memory_roots(steps)
    found = list(steps)
    for step in steps:
        over = _written_over(step, roots, inputs)
        if over:
            place = found.index(step)
            behind = _last_reader(found, place, over, roots)
            if not _is_needed(step, found[place + 1 : behind + 1]):
                found.insert(behind, found.pop(place))
    return found


def _written_over(step: Step, roots: Mapping[int, int], inputs: Collection[int]) -> set[int]:
    if not isinstance(step, KernelStep) or step.ahead is not None:
        return set()
    return {roots.get(slot, slot) for slot in (step.inputs[at] for at in step.private)}.intersection(inputs)


def _last_reader(steps: Sequence[Step], place: int, over: set[int], roots: Mapping[int, int]) -> int:
    """The number of the last step that reads this memory; ``place`` if that is the writer itself."""
    readers = (n for n in range(len(steps) - 1, place, -1) if any(roots.get(s, s) in over for s in steps[n].inputs))
    return next(readers, place)


def _is_needed(step: Step, behind: Sequence[Step]) -> bool:
    """Whether one of the steps behind this one reads what it makes."""
    return any(slot in step.outputs for other in behind for slot in other.inputs)
