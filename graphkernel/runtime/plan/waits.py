"""Where a plan waits for what it started: as late as it can, before the first step that needs it.

What was started runs while the steps between run. A kernel that takes rows as they come stands before the wait. A step that is
told the token only, as the next collective is, needs no result. A kernel that computes rows when their sum is started reads its
operands then, so that they stay as they are until that was waited for.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphkernel.runtime.steps.collective import CollectiveStep, WaitStep
from graphkernel.runtime.steps.steps import KernelStep, Step


def with_waits(steps: Sequence[Step]) -> list[Step]:
    """The steps, with a wait for each that was started: before a step reads its result, or at the end."""
    found: list[Step] = []
    started: dict[int, WaitStep] = {}
    read_ahead = {step.ahead: step.inputs for step in steps if isinstance(step, KernelStep) and step.ahead is not None}
    for step in steps:
        read = step.data if isinstance(step, CollectiveStep) else step.inputs
        is_by_rows = isinstance(step, KernelStep) and bool(step.rows) and step.ahead is None
        behind = next((slot for slot in read if slot in started), None) if is_by_rows else None
        found.extend(started.pop(slot) for slot in dict.fromkeys(read) if slot in started and slot != behind)
        found.append(step)
        if isinstance(step, KernelStep) and behind is not None:
            wait = started.pop(behind)
            found[-1:] = [step._replace(awaited=wait.inputs[0]), wait]
        if isinstance(step, CollectiveStep):
            result, token = step.outputs[0], step.outputs[-1]
            kept = dict.fromkeys((token, result, *step.data, *read_ahead.get(token, ())))
            started[result] = WaitStep(f"waiting for {step.node.op.name} {step.name}", tuple(kept))
    return [*found, *started.values()]
