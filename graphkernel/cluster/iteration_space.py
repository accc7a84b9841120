"""The shape of an iteration with some of its dims marked: those that a reduction removes, or that a broadcast adds.

Neighbouring dims that are marked alike fold into one run, so a space does not see reshapes within a run: summing
``[B, S, H]`` over its last dim and ``[B*S, H]`` over its last dim are the same space, ``B*S | *H``. A reduction whose
result is spread over the same space again (softmax, normalisation) is recognised by comparing two spaces.
"""

from __future__ import annotations

from collections.abc import Collection

from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.types import Dim, Shape, TensorType, product


class Run(NamedTuple):
    """Neighbouring dims that are all marked or all not."""

    extent: Dim
    marked: bool


class Space(NamedTuple):
    """Runs from outermost to innermost; dims of extent 1 are left out. Prints as ``B*S | *H``, a star for marked."""

    runs: tuple[Run, ...]

    def __str__(self) -> str:
        return " | ".join(f"{'*' if run.marked else ''}{run.extent}" for run in self.runs) or "1"

    @property
    def total(self) -> Dim:
        """The number of points."""
        return product(run.extent for run in self.runs)

    @property
    def kept(self) -> Dim:
        """The number of points when the marked dims are gone."""
        return product(run.extent for run in self.runs if not run.marked)

    def crosses(self, other: Space) -> bool:
        """True when both are the same points: equally many, and one of them is divided into runs where the other is."""
        if self.total != other.total:
            return False
        mine, others = self._starts(), other._starts()
        return mine <= others or others <= mine

    def _starts(self) -> frozenset[Dim]:
        """Where the runs begin: for each the number of points in it and in those inside of it."""
        return frozenset(product(run.extent for run in self.runs[index:]) for index in range(len(self.runs)))

    @property
    def is_rowwise(self) -> bool:
        """True when the marked dims are the innermost ones: each row of memory is one group."""
        return not any(run.marked for run in self.runs[:-1])


def space_of(shape: Shape, marked: Collection[int]) -> Space:
    """Folds a shape with marked dims (non-negative positions)."""
    runs: list[Run] = []
    for position, extent in enumerate(shape):
        is_marked = position in marked
        if extent == 1:
            continue
        if runs and runs[-1].marked == is_marked:
            runs[-1] = Run(product((runs[-1].extent, extent)), is_marked)
        else:
            runs.append(Run(extent, is_marked))
    return Space(tuple(runs))


def spread(operand: TensorType, result: TensorType) -> Space | None:
    """The space over which an operand is broadcast (numpy's rule), its new dims marked; None when it is read as it is."""
    if operand.shape == result.shape:
        return None
    missing = result.rank - operand.rank
    marked = [
        position
        for position, extent in enumerate(result.shape)
        if extent != 1 and (position < missing or operand.shape[position - missing] != extent)
    ]
    return space_of(result.shape, marked) if marked else None


SPREADING = (Kind.ELEMWISE, Kind.BROADCAST)
"""The kinds of operators that spread their operands."""


def spread_of_operand(node: Node, index: int) -> Space | None:
    """How a node reads one operand."""
    if node.op.kind not in SPREADING:
        return None
    return spread(node.args[index].type, node.types[0])


def reduction_space(node: Node) -> Space:
    """The operand's shape with the reduced dims marked; an empty or absent ``axis`` means all dims."""
    shape = node.args[0].type.shape
    axes = node.attrs.ints("axis", ())
    return space_of(shape, {axis % len(shape) for axis in axes} if axes and shape else set(range(len(shape))))
