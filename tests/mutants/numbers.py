"""Constants, axes and bounds changed; reductions that lack their last term."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kernelgen.composite.description import Tensor
from kernelgen.composite.document import Document, Operation
from kernelgen.composite.scalar_rules import REDUCTIONS
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.operators.type_rules import reduced_axes
from tests.mutants.mutant import Mutant, changed

AXES = ("axis", "perm", "begin", "head", "transpose_a", "transpose_b", "exclusive", "reverse")
"""Attributes that say where an operator works."""


def constants(desc: Document) -> Iterator[Mutant]:
    """An eighth more, 0 becomes 1, a truth value its opposite."""
    for place, op in enumerate(desc.ops):
        for number, operand in enumerate(op.args):
            if operand.value is not None:
                other = _other(operand)
                operands = (*op.args[:number], replace(operand, value=other), *op.args[number + 1 :])
                yield from changed(desc, place, "constant", f"{operand.value} is {other}", replace(op, args=operands))


def _other(operand: Tensor) -> float:
    value = operand.value
    if isinstance(value, bool):
        return not value
    if operand.dtype.is_integer:
        return int(value or 0) + 1
    return 1.125 * value if value else 1.0


def axes(desc: Document) -> Iterator[Mutant]:
    """An axis, an order of axes, a beginning or a transposition that is another one, where the shapes still fit."""
    for place, op in enumerate(desc.ops):
        for name in AXES:
            if name in op.attrs:
                for value in _others(op, name):
                    other = replace(op, attrs=op.attrs.with_(**{name: value}))
                    yield from changed(desc, place, "axis", f"{name} {op.attrs[name]} is {value}", other)


def _others(op: Operation, name: str) -> Iterator[object]:
    value = op.attrs[name]
    if isinstance(value, bool):
        yield not value
    elif name == "perm" and isinstance(value, tuple):
        yield from ((*value[:d], value[d + 1], value[d], *value[d + 2 :]) for d in range(len(value) - 1))
    elif isinstance(value, tuple):
        for d, each in enumerate(value):
            if isinstance(each, int):
                yield from ((*value[:d], each + step, *value[d + 1 :]) for step in (1, -1))
    elif isinstance(value, int):
        yield from (value + 1, value - 1)


def cut_short(desc: Document) -> Iterator[Mutant]:
    """Reductions without the last term of each reduced axis, products without the last term."""
    for place, op in enumerate(desc.ops):
        for axis, operands in _terms(op):
            if any(int(op.args[number].shape[d]) < 2 for number, d in operands.items()):  # pyright: ignore[reportArgumentType]
                continue
            slices = {number: _without_last(op.args[number], d, place) for number, d in operands.items()}
            inputs = tuple(slices[n].out if n in slices else t for n, t in enumerate(op.args))
            yield from changed(
                desc, place, "cut short", f"axis {axis}", *slices.values(), replace(op, args=inputs)
            )  # fmt: skip


def _terms(op: Operation) -> Iterator[tuple[int, Mapping[int, int]]]:
    """(number, operand -> its dim) for every range that an operator sums over."""
    if op.op in REDUCTIONS:
        yield from ((axis, {0: axis}) for axis in reduced_axes(op) if op.args[0].shape)
    if op.name in ("MatMul", "BatchMatMul") and all(t.layout == "DefaultFormat" for t in op.args):
        left, right = (len(t.shape) for t in op.args[:2])
        inner = left - 2 if op.attrs.bool("transpose_a", False) else left - 1
        yield inner, {0: inner, 1: right - 1 if op.attrs.bool("transpose_b", False) else right - 2}


def _without_last(tensor: Tensor, axis: int, place: int) -> Operation:
    ends = [dim - (d == axis) for d, dim in enumerate(tensor.shape)]
    shorter = replace(tensor, name=f"{tensor.name}_short_{place}", shape=tuple(ends), value=None)
    attrs = Attrs.of(begin=[0] * len(ends), end=ends, strides=[1] * len(ends))
    return Operation("StridedSlice", (tensor,), (shorter,), attrs)
