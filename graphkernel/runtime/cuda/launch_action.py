"""A kernel's step in a frame on a device: bound to the frame's shapes by its first run, launched by the later ones.

A kernel called by itself looks at every array: whose it is, on which device, whether it overlaps another. In a frame the plan
has settled that: shapes are the frame's, buffers lie apart, arrays of ``out=`` were checked, and inputs that a step writes
over were told apart. What may differ from call to call is how the arrays lie that the caller gives and a library makes.
"""

from __future__ import annotations

from graphkernel.runtime.steps.steps import Action, KernelStep, Slots
from kernelgen.kernel import Kernel
from kernelgen.targets.entries import BoundCall


class LaunchAction:
    """``action`` runs the step with all checks; it is what is left where an array does not lie as a launch needs it."""

    def __init__(self, step: KernelStep, kernel: Kernel, action: Action) -> None:
        self.step, self.kernel, self.action = step, kernel, action
        self._places = (*step.inputs, *step.made)
        self._bound: BoundCall | None = None

    def __call__(self, slots: Slots) -> None:
        """Runs the step."""
        arrays = [slots[place] for place in self._places]
        if self._bound is None:
            self._bound = self.kernel.bound(arrays[: len(self.step.inputs)])
        if self._bound is None or not self._bound(arrays):
            return self.action(slots)
        for slot, position in self.step.stored:
            slots[slot] = arrays[position]
        return None


def launched(step: object, action: Action) -> Action:
    """The action that launches a kernel's step without further checks; the given one where the step needs more than that."""
    if not isinstance(step, KernelStep) or not isinstance(step.kernel, Kernel):
        return action
    needs_more = step.private or step.untold or step.ahead is not None or step.awaited is not None
    return action if needs_more else LaunchAction(step, step.kernel, action)
