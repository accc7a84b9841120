"""Kernels that are called for some rows at a time: of a sum whose rows come, or for one whose rows are sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from graphkernel.communication.chunks import axis_of_rows
from graphkernel.runtime.steps.steps import Action, Array, Kernel, Slots


class Rows(NamedTuple):
    """A kernel on whole arrays that computes some rows when it is called with them, along ``axes`` of the operands."""

    kernel: Kernel
    axes: Sequence[int | None]
    operands: Sequence[Array]
    results: Sequence[Array]

    def __call__(self, rows: slice) -> None:
        """Computes those rows."""
        parts = [x if axis is None else x[_along(axis, rows)] for x, axis in zip(self.operands, self.axes, strict=True)]
        place = _along(axis_of_rows(self.results[0].shape), rows)
        self.kernel(*parts, out=[result[place] for result in self.results])


def rows_action(
    kernel: Kernel,
    axes: Sequence[int | None],
    inputs: Sequence[int],
    outputs: Sequence[int],
    awaited: int | None,
    ahead: int | None,
) -> Action:
    """What a step of such a kernel does: it takes rows as they come from what is ``awaited``, or leaves itself to whoever
    starts the sum whose token's slot is ``ahead``.

    ``inputs`` and ``outputs`` are slots of whole arrays, ``axes`` those of rows of the inputs.
    """

    def whole(slots: Slots) -> Rows:
        return Rows(kernel, axes, [slots[slot] for slot in inputs], [slots[slot] for slot in outputs])

    def call(slots: Slots) -> None:
        compute = whole(slots)
        if ahead is not None:
            slots[ahead] = compute
        elif awaited is not None:
            for rows in slots[awaited].rows():
                compute(rows)

    return call


def _along(axis: int, rows: slice) -> tuple[slice, ...]:
    return (*[slice(None)] * axis, rows)
