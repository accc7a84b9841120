"""Tensors whose elements are affine functions of their places: ``v[i, j] = 3 * i + j + 2``, with dims as factors.

Masks of exported models compute the places that they look up from positions along axes and extents. What they mean is known
before any element is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest

from graphkernel.passes.shape.shape_values import shape_value
from kernelgen.tensor.graph import Value
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.elemwise import ADD, MUL
from kernelgen.tensor.operators.scan import CUM_SUM
from kernelgen.tensor.operators.shape import BROADCAST_TO, RESHAPE
from kernelgen.tensor.types import Dim, Shape, dtype, product

WIDE = dtype("int64")
MOST_OPERATORS = 32


@dataclass(frozen=True)
class Affine:
    """``offset`` and for each axis what a step along it adds; 0 along an axis of one element."""

    steps: tuple[Dim, ...]
    offset: Dim

    @property
    def is_uniform(self) -> bool:
        """Whether all elements are one number."""
        return all(step == 0 for step in self.steps)


def affine(value: Value) -> Affine | None:
    """The function that a ``value`` of int64 is; None where none is seen."""
    known: dict[Value, Affine | None] = {}
    waiting = [value]
    while waiting and len(known) <= MOST_OPERATORS:
        one = waiting[-1]
        missing = [arg for arg in one.node.args if arg not in known] if one.type.dtype == WIDE else []
        waiting += missing
        if not missing:
            known[waiting.pop()] = _numbers(one) or _computed(one, known)
    return known.get(value)


def counts_rows(value: Value, extent: Dim) -> bool:
    """Whether the elements of ``value`` are the numbers from 0 to an ``extent``, in the order in which memory has them."""
    shape, found = value.type.shape, affine(value)
    if found is None or found.offset != 0 or product(shape) != extent:
        return False
    behind = [product(shape[axis + 1 :]) for axis in range(len(shape))]
    return all(length == 1 or step == wanted for length, step, wanted in zip(shape, found.steps, behind, strict=True))


def _numbers(value: Value) -> Affine | None:
    """Of one number that follows from shapes."""
    if value.type.size != 1 or (found := shape_value(value)) is None:
        return None
    return Affine((0,) * value.type.rank, found.reshape(-1).tolist()[0])


def _computed(value: Value, known: Mapping[Value, Affine | None]) -> Affine | None:
    operands = [known.get(arg) for arg in value.node.args] if value.type.dtype == WIDE else []
    given = [operand for operand in operands if operand is not None]
    if value.op is CUM_SUM and given and given[0].is_uniform:
        return _running(value, given[0])
    if len(given) < len(operands) or not given:
        return None
    shapes = [arg.type.shape for arg in value.node.args]
    if value.op is ADD:
        one, other = (_spread(each, shape, value.type.shape) for each, shape in zip(given, shapes, strict=True))
        return Affine(tuple(a + b for a, b in zip(one.steps, other.steps, strict=True)), one.offset + other.offset)
    if value.op is MUL:
        one, other = (_spread(each, shape, value.type.shape) for each, shape in zip(given, shapes, strict=True))
        one, other = (other, one) if one.is_uniform else (one, other)
        scaled = Affine(tuple(step * other.offset for step in one.steps), one.offset * other.offset)
        return scaled if other.is_uniform else None
    if value.op is RESHAPE:
        return _between_units(given[0], shapes[0], value.type.shape)
    if value.op is BROADCAST_TO:
        return _spread(given[0], shapes[0], value.type.shape)
    return given[0] if value.op is CAST else None


def _running(value: Value, each: Affine) -> Affine | None:
    attrs = value.node.attrs
    if attrs.bool("reverse", False):
        return None
    axis = attrs.int("axis", 0) % value.type.rank
    steps = tuple(each.offset if k == axis else 0 for k in range(value.type.rank))
    return Affine(steps, 0 if attrs.bool("exclusive", False) else each.offset)


def _spread(found: Affine, own: Shape, shape: Shape) -> Affine:
    """The same, broadcast to a shape."""
    pairs = zip_longest(reversed(found.steps), reversed(own), shape, fillvalue=1)
    steps = [0 if length == 1 else step for step, length, _ in pairs]
    return Affine(tuple(reversed(steps)), found.offset)


def _between_units(found: Affine, own: Shape, shape: Shape) -> Affine | None:
    """The same with other axes of one element; None where others change."""
    longer = [(length, step) for length, step in zip(own, found.steps, strict=True) if length != 1]
    if [length for length, _ in longer] != [length for length in shape if length != 1]:
        return None
    steps = iter(step for _, step in longer)
    return Affine(tuple(0 if length == 1 else next(steps) for length in shape), found.offset)
