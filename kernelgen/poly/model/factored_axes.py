"""Which dims of a kernel's tensors run together.

Each operator's lowering says how the dims of its operands and results pair up; reshapes are kept for last and refine
dims until they are the identity on leaf axes (:mod:`kernelgen.poly.model.axes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelgen.composite.description import OpDesc, TensorDesc
from kernelgen.errors import UnsupportedError
from kernelgen.poly.model.axes import Axis, join, match
from kernelgen.tensor.dims import product

DimAxes = tuple[Axis | None, ...]


@dataclass
class TensorAxes:
    """The axis of every dim of every named tensor; None for an extent of 1."""

    by_name: dict[str, DimAxes] = field(default_factory=dict)
    reshapes: list[tuple[TensorDesc, TensorDesc]] = field(default_factory=list)
    opaque: set[tuple[str, str]] = field(default_factory=set)

    def of(self, tensor: TensorDesc) -> DimAxes:
        """The axis of each dim."""
        known = self.by_name.get(tensor.name)
        if known is None or len(known) != len(tensor.shape):
            known = tuple(None if dim == 1 else Axis(dim) for dim in tensor.shape)
            self.by_name.setdefault(tensor.name, known)
        return known

    def groups(self, tensor: TensorDesc) -> tuple[tuple[Axis, ...], ...]:
        """The leaf axes of each dim."""
        return tuple(() if axis is None else axis.leaves for axis in self.of(tensor))

    def pair(self, left: Sequence[Axis | None], right: Sequence[Axis | None], op: OpDesc) -> None:
        """Joins the dims ``left`` and ``right`` of ``op``'s tensors position by position; an absent axis pairs with
        anything (it is broadcast).

        Raises UnsupportedError for other counts or extents.
        """
        if len(left) != len(right):
            raise UnsupportedError("defective-input", f"{op.name}: {len(left)} dims do not pair up with {len(right)}")
        for a, b in zip(left, right, strict=True):
            if a is not None and b is not None and not (a.extent == b.extent and join(a, b)):
                raise UnsupportedError(
                    "unsupported-layout", f"{op.name}: extents {a.extent} and {b.extent} do not pair up"
                )

    def broadcast(self, op: OpDesc, operands: Sequence[TensorDesc], result: DimAxes) -> None:
        """The ``operands`` of ``op`` pair with the dims of its ``result`` from the right.

        Raises UnsupportedError for operands with more dims.
        """
        for operand in operands:
            shorter = self.of(operand)
            length = min(len(shorter), len(result))
            if any(axis is not None for axis in shorter[: len(shorter) - length]):
                raise UnsupportedError("unsupported-layout", f"{op.name}: an operand has more dims than the result")
            if operand.value is None and length:
                self.pair(shorter[-length:], result[-length:], op)

    def hold(self, *axes: Axis | None) -> None:
        """Dims that an operator addresses by number: reshapes do not split them."""
        for axis in axes:
            for leaf in axis.leaves if axis is not None else ():
                leaf.rigid = True

    def regroup_reshapes(self) -> None:
        """Refines dims so that reshapes are the identity on leaves; those that cannot be stay div/mod copies."""
        for source, result in self.reshapes:
            if product(source.shape) == 0:
                continue  # there is no element to find, and an extent of 0 splits without end
            left = [axis for axis in self.of(source) if axis is not None]
            right = [axis for axis in self.of(result) if axis is not None]
            if not match(left, right):
                self.opaque.add((source.name, result.name))


def sized(op: OpDesc, found: list[Axis], expected: int) -> list[Axis]:
    """The axes ``found`` of a result, of which ``op`` makes as many as ``expected``. Raises UnsupportedError where
    they are others.
    """
    if len(found) != expected:
        raise UnsupportedError("defective-input", f"{op.name}: the result's shape does not fit the reduced dims")
    return found
