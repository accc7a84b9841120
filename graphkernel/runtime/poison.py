"""Memory in which nothing old can be mistaken for a result: every buffer is filled with a pattern before and after its life.

Slower than the host's memory, and for finding mistakes of ours: what a step reads before it is written, or after its time,
is NaN (floats) or a number that stands out (others), and so are elements that a kernel forgets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphkernel.runtime.memory import HostMemory
from graphkernel.runtime.plan.buffers import Array
from graphkernel.runtime.plan.verify_plan import verify_places
from graphkernel.runtime.steps.program import Program, Segment
from graphkernel.runtime.steps.steps import Action, Slots

NAN_BYTE = 0xFF  # all bits set are NaN in every float type
ODD_BYTE = 0xA5


class PoisonedMemory(HostMemory):
    """The host's memory, poisoned, with the places of each frame checked. Kernels write into poisoned arrays too."""

    def __init__(self) -> None:
        super().__init__(is_made_by_kernels=False, joins_steps=False)

    def bytes(self, size: int) -> Any:
        """Poisoned as floats."""
        return _poisoned(super().bytes(size), NAN_BYTE)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """Poisoned for its type."""
        return poison(super().empty(shape, dtype))

    def actions(self, program: Program, part: Segment, slots: Slots, actions: tuple[Action, ...]) -> tuple[Action, ...]:
        """The actions, between poison for the buffers that each is the first to write and the last to read."""
        verify_places(program.buffers, slots)
        born, dying = _lists(part), _lists(part)
        for buffer in program.buffers:
            if not buffer.escapes and part.first <= buffer.first < part.last:
                born[buffer.first - part.first].append(slots[buffer.slot])
                dying[buffer.last - part.first].append(slots[buffer.slot])
        born, dying = born[: len(actions)], dying[: len(actions)]  # what is stored behind the last step lives on
        return tuple(map(_between, actions, born, dying))


POISONED = PoisonedMemory()


def poison(array: Array) -> Array:
    """The array, filled: NaN for floats and complex numbers, else a pattern."""
    return _poisoned(array, ODD_BYTE if array.dtype.kind in "biu" else NAN_BYTE)


def _poisoned(array: Array, byte: int) -> Array:
    array.reshape(-1).view(np.uint8)[...] = byte
    return array


def _lists(part: Segment) -> list[list[Array]]:
    return [[] for _ in range(part.first, part.last + 1)]


def _between(action: Action, born: Sequence[Array], dying: Sequence[Array]) -> Action:
    def call(slots: Slots) -> None:
        for array in born:
            poison(array)
        action(slots)
        for array in dying:
            poison(array)

    return call
