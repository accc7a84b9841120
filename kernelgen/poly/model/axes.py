"""How tensor dims split so that reshapes become regroupings.

A reshape ``[6, 4] -> [24]`` is the identity once the dim of 24 is seen as two *leaf* axes of 6 and 4.
Dims that operators pair up position by position must split alike, so splitting is decided on classes of dims:
``join`` says that two dims split alike, ``match`` that two lists of dims hold the same elements in the same row-major
order. Both only ever refine, so whatever was joined stays consistent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelgen.tensor.dims import Dim, divide_exactly


@dataclass(eq=False)
class Axis:
    """A dim of some tensor, or a part of one. ``rigid`` axes must not be split (a slice or pad addresses them)."""

    extent: Dim
    rigid: bool = False
    forward: Axis | None = field(default=None, repr=False)
    parts: tuple[Axis, ...] = field(default=(), repr=False)

    @property
    def representative(self) -> Axis:
        """The axis that stands for the class."""
        root = self
        while root.forward is not None:
            root = root.forward
        axis = self
        while axis.forward is not None:  # the next walk from any axis on the way is one step
            above, axis.forward = axis.forward, root
            axis = above
        return root

    @property
    def leaves(self) -> tuple[Axis, ...]:
        """The representatives of the parts that are not split further, outermost first."""
        axis = self.representative
        return tuple(leaf for part in axis.parts for leaf in part.leaves) if axis.parts else (axis,)


def join(left: Axis, right: Axis) -> bool:
    """Makes two axes of equal extent split alike. False when their splits contradict each other."""
    return match(left.leaves, right.leaves)


def match(left: Sequence[Axis], right: Sequence[Axis]) -> bool:
    """Refines two lists of axes to the same leaves, pairing from the innermost. False when no refinement exists.

    Example: ``[24, 5]`` against ``[6, 20]`` gives ``[6, 4, 5]`` on both sides; ``[6, 4]`` against ``[4, 6]`` fails.
    """
    a, b = _expanded(left), _expanded(right)
    while a and b:
        x, y = a.pop().representative, b.pop().representative  # a merge may have met an axis further out as well
        if x is y:
            continue
        if x.extent == y.extent:
            _merge(x, y)
            continue
        if (outer := divide_exactly(x.extent, y.extent)) is not None and _split(x, outer, y.extent):
            b.append(y)
            a.extend(x.leaves)
        elif (outer := divide_exactly(y.extent, x.extent)) is not None and _split(y, outer, x.extent):
            a.append(x)
            b.extend(y.leaves)
        else:
            return False
        # a split may have touched an axis that occurs again further out
        a, b = _expanded(a), _expanded(b)
    return not a and not b


def _expanded(axes: Sequence[Axis]) -> list[Axis]:
    return [leaf for axis in axes for leaf in axis.leaves]


def _merge(left: Axis, right: Axis) -> None:
    left.rigid = left.rigid or right.rigid
    right.forward = left


def _split(axis: Axis, outer: Dim, inner: Dim) -> bool:
    if axis.rigid or outer == 1:
        return False
    axis.parts = (Axis(outer), Axis(inner))
    return True
