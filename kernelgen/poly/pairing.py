"""Which dims of a kernel's tensors run together, operator by operator.

Elementwise operators pair dims from the right, transposes by their permutation, reductions leave some out; reshapes are
kept for last and refine dims until they are the identity on leaf axes (:mod:`kernelgen.poly.axes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kernelgen import vocabulary
from kernelgen.desc import OpDesc, TensorDesc
from kernelgen.dims import product
from kernelgen.errors import UnsupportedError
from kernelgen.poly.axes import Axis, join, match

DimAxes = tuple[Axis | None, ...]
COPIES = frozenset({"Reshape", "ExpandDims", "Squeeze", "Flatten", "EquivFormat"})
BROADCASTS = frozenset({"BroadcastTo", "Tile"})


@dataclass
class TensorAxes:
    """The axis of every dim of every named tensor; None for an extent of 1."""

    by_name: dict[str, DimAxes] = field(default_factory=dict)
    reshapes: list[tuple[TensorDesc, TensorDesc]] = field(default_factory=list)
    opaque: set[tuple[str, str]] = field(default_factory=set)

    @staticmethod
    def of_ops(ops: Iterable[OpDesc]) -> TensorAxes:
        """The axes of all tensors of a kernel, related by all its operators, reshapes last."""
        axes = TensorAxes()
        for op in ops:
            _relate(axes, op)
        axes.regroup_reshapes()
        return axes

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
        """Joins the dims position by position; an absent axis pairs with anything (it is broadcast)."""
        for a, b in zip(left, right, strict=True):
            if a is not None and b is not None and not (a.extent == b.extent and join(a, b)):
                raise UnsupportedError(
                    "unsupported-layout", f"{op.name}: extents {a.extent} and {b.extent} do not pair up"
                )

    def regroup_reshapes(self) -> None:
        """Refines dims so that reshapes are the identity on leaves; those that cannot be stay div/mod copies."""
        for source, result in self.reshapes:
            if product(source.shape) == 0:
                continue  # there is no element to find, and an extent of 0 splits without end
            left = [axis for axis in self.of(source) if axis is not None]
            right = [axis for axis in self.of(result) if axis is not None]
            if not match(left, right):
                self.opaque.add((source.name, result.name))


def _relate(axes: TensorAxes, op: OpDesc) -> None:
    """What one operator says about the dims of its operands and its result."""
    result = axes.of(op.outputs[0])
    if op.name == "InplaceAssign":  # the result stands for operand 2, which need not fit the destination
        _broadcast(axes, op, op.inputs[1:2], axes.of(op.inputs[0]))
        _broadcast(axes, op, op.inputs[2:], result)
    elif op.name in vocabulary.ELEMENTWISE or op.name in BROADCASTS or op.name == "Assign":
        _broadcast(axes, op, op.inputs, result)
    elif op.name in COPIES:
        axes.reshapes.append((op.inputs[0], op.output))
    elif op.name == "Transpose":
        source = axes.of(op.inputs[0])
        axes.pair([source[d] for d in permutation(op)], result, op)
    elif op.name in vocabulary.REDUCTIONS:
        reduced = reduced_dims(op)
        kept = [a for d, a in enumerate(axes.of(op.inputs[0])) if d not in reduced and a is not None]
        axes.pair(kept, _sized(op, [a for a in result if a is not None], len(kept)), op)
    else:
        raise UnsupportedError("unsupported-op", f"operator {op.name!r} has no polyhedral form yet")


def _broadcast(axes: TensorAxes, op: OpDesc, operands: Sequence[TensorDesc], result: DimAxes) -> None:
    """Operands pair with the result from the right."""
    for operand in operands:
        shorter = axes.of(operand)
        if op.name == "Tile":
            _require_broadcast(shorter, result)
        length = min(len(shorter), len(result))
        _require_ones(op, shorter[: len(shorter) - length])
        if operand.value is None and length:
            axes.pair(shorter[-length:], result[-length:], op)


def _require_broadcast(source: DimAxes, result: DimAxes) -> None:
    """A Tile that repeats a dim of extent above 1 is no broadcast."""
    for a, b in zip(reversed(source), reversed(result), strict=False):
        if a is not None and (b is None or a.extent != b.extent):
            raise UnsupportedError("unsupported-attr", "Tile that repeats a dim of extent above 1")


def _require_ones(op: OpDesc, leading: Sequence[Axis | None]) -> None:
    if any(axis is not None for axis in leading):
        raise UnsupportedError("unsupported-layout", f"{op.name}: an operand has more dims than the result")


def _sized(op: OpDesc, found: list[Axis], expected: int) -> list[Axis]:
    if len(found) != expected:
        raise UnsupportedError("defective-input", f"{op.name}: the result's shape does not fit the reduced dims")
    return found


def permutation(op: OpDesc) -> tuple[int, ...]:
    """The operand's dim for each dim of a transposed result; reversed when not given."""
    rank = len(op.inputs[0].shape)
    return tuple(p % rank for p in op.attrs.ints("perm", tuple(reversed(range(rank)))))


def reduced_dims(op: OpDesc) -> frozenset[int]:
    """The dims that a reduction removes, as non-negative numbers; an empty or absent ``axis`` means all."""
    rank = len(op.inputs[0].shape)
    axis = op.attrs.ints("axis", ())
    return frozenset(d % rank for d in axis) if axis and rank else frozenset(range(rank))
