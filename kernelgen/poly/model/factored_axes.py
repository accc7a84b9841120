"""Which dims of a kernel's tensors run together.

Each operator's lowering says how the dims of its operands and results pair up; reshapes are kept for last and refine
dims until they are the identity on leaf axes (:mod:`kernelgen.poly.model.axes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kernelgen.errors import UnsupportedError
from kernelgen.poly.model.axes import Axis, join, match
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import Shape, product
from kernelgen.tensor.dtypes import DType
from kernelgen.tensor.graph import PARAMETER, Node, Value
from kernelgen.tensor.types import TensorType

DimAxes = tuple[Axis | None, ...]


@dataclass
class TensorAxes:
    """The axis of every dim of every value; None for an extent of 1."""

    names: Mapping[Value, str] = field(default_factory=dict)
    known: dict[Value, DimAxes] = field(default_factory=dict)
    temporaries: dict[str, Value] = field(default_factory=dict)
    reshapes: list[tuple[Value, Value]] = field(default_factory=list)
    opaque: set[tuple[Value, Value]] = field(default_factory=set)

    def of(self, tensor: Value) -> DimAxes:
        """The axis of each dim."""
        known = self.known.get(tensor)
        if known is None:
            known = self.known[tensor] = tuple(None if dim == 1 else Axis(dim) for dim in tensor.shape)
        return known

    def name(self, tensor: Value) -> str:
        """What the buffer of a value is called."""
        return self.names.get(tensor, tensor.name)

    def temporary(self, name: str, shape: Shape, dtype: DType, axes: DimAxes | None = None) -> Value:
        """A value of this ``shape`` and ``dtype`` that no operator gives, with ``axes``: the same one for the same ``name``."""
        if name not in self.temporaries:
            self.temporaries[name] = Node(PARAMETER, (), Attrs(), (TensorType(shape, dtype),), name).out
        if axes is not None:
            self.known[self.temporaries[name]] = axes
        return self.temporaries[name]

    def groups(self, tensor: Value) -> tuple[tuple[Axis, ...], ...]:
        """The leaf axes of each dim."""
        return tuple(() if axis is None else axis.leaves for axis in self.of(tensor))

    def pair(self, left: Sequence[Axis | None], right: Sequence[Axis | None], node: Node) -> None:
        """Joins the dims ``left`` and ``right`` of ``node``'s tensors position by position; an absent axis pairs with
        anything (it is broadcast).

        Raises UnsupportedError for other counts or extents.
        """
        if len(left) != len(right):
            raise UnsupportedError(
                "defective-input", f"{node.op.name}: {len(left)} dims do not pair up with {len(right)}"
            )
        for a, b in zip(left, right, strict=True):
            if a is not None and b is not None and not (a.extent == b.extent and join(a, b)):
                raise UnsupportedError(
                    "unsupported-layout", f"{node.op.name}: extents {a.extent} and {b.extent} do not pair up"
                )

    def broadcast(self, node: Node, operands: Sequence[Value], result: DimAxes) -> None:
        """The ``operands`` of ``node`` pair with the dims of its ``result`` from the right.

        Raises UnsupportedError for operands with more dims.
        """
        for operand in operands:
            shorter = self.of(operand)
            length = min(len(shorter), len(result))
            if any(axis is not None for axis in shorter[: len(shorter) - length]):
                raise UnsupportedError(
                    "unsupported-layout", f"{node.op.name}: an operand has more dims than the result"
                )
            if operand.constant is None and length:
                self.pair(shorter[-length:], result[-length:], node)

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
                self.opaque.add((source, result))


def sized(node: Node, found: list[Axis], expected: int) -> list[Axis]:
    """The axes ``found`` of a result, of which ``node`` makes as many as ``expected``. Raises UnsupportedError where
    they are others.
    """
    if len(found) != expected:
        raise UnsupportedError("defective-input", f"{node.op.name}: the result's shape does not fit the reduced dims")
    return found
