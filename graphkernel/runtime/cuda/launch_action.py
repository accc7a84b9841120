"""A kernel's step in a frame on a device: bound to the frame's shapes by its first run, launched by the later ones.

A kernel called by itself looks at every array: whose it is, on which device, whether it overlaps another. In a frame the plan
has settled that: shapes are the frame's, buffers lie apart, arrays of ``out=`` were checked, and inputs that a step writes
over were told apart. What may differ from call to call is how the arrays lie that the caller gives and a library makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from graphkernel.runtime.steps.steps import Action, KernelStep, Slots

BoundCall = Callable[[Sequence[Any]], bool]
"""Launches on inputs and outputs; False, and nothing ran, where one lies as the kernel cannot use it."""


@runtime_checkable
class BindableKernel(Protocol):
    """A kernel that can be bound to shapes; of other compilers' kernels nothing is asked."""

    def bound(self, arrays: Sequence[Any], moving: Sequence[int]) -> BoundCall | None:
        """See :meth:`kernelgen.kernel.Kernel.bound`."""
        ...


class LaunchAction:
    """``action`` runs the step with all checks; it is what is left where an array does not lie as a launch needs it.

    What lies in ``slots`` when the frame is made, constants and intermediates, is there in every call.
    """

    def __init__(self, step: KernelStep, kernel: BindableKernel, action: Action, slots: Slots) -> None:
        self.step, self.kernel, self.action = step, kernel, action
        self._places = (*step.inputs, *step.made)
        self._moving = [position for position, place in enumerate(self._places) if slots[place] is None]
        self._bound: BoundCall | None = None

    def __call__(self, slots: Slots) -> None:
        """Runs the step."""
        arrays = [slots[place] for place in self._places]
        if self._bound is None:
            self._bound = self.kernel.bound(arrays, self._moving)
        if self._bound is None or not self._bound(arrays):
            return self.action(slots)
        for slot, position in self.step.stored:
            slots[slot] = arrays[position]
        return None


def launched(step: object, action: Action, slots: Slots) -> Action:
    """The action that launches a kernel's ``step`` in a frame of ``slots`` without further checks; the given ``action`` where
    the step needs more than that.
    """
    if not isinstance(step, KernelStep) or not isinstance(step.kernel, BindableKernel):
        return action
    needs_more = step.private or step.untold or step.ahead is not None or step.awaited is not None
    return action if needs_more else LaunchAction(step, step.kernel, action, slots)
