"""Sums over named axes (Einsum): products of matrices, between axes moved into place.

Operands are taken from the left, two at a time. What both name and nobody asks for afterwards is what a product sums over,
what both name and somebody asks for is a batch, and what one of them names alone is its rows or columns::

    Einsum(q, k, "ibnd,jbnd->bnij")  ==>  BatchMatMul(Transpose(q, 1 2 0 3), Transpose(k, 1 2 3 0))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from graphkernel import ops
from graphkernel.frontends.onnx.rules.base import Declined, OnnxCall, Operand, Results, onnx_op, shape_of
from kernelgen.tensor.types import Dim, dtype, product

Label = str | int
"""A letter, or for an axis that an ellipsis stands for its place from the right, which is negative."""
Labels = tuple[Label, ...]
ELLIPSIS = "..."


@dataclass(frozen=True)
class Named:
    """An operand, and what its axes are called: each otherwise."""

    value: Operand
    labels: Labels

    def extent(self, label: Label) -> Dim:
        """Of an axis that it has."""
        return shape_of(self.value)[self.labels.index(label)]

    def without(self, labels: Collection[Label]) -> Named:
        """The sum over the axes that are called so."""
        gone = tuple(axis for axis, label in enumerate(self.labels) if label in labels)
        if not gone:
            return self
        kept = tuple(label for label in self.labels if label not in labels)
        return Named(ops.reduce_sum(self.value, axis=gone, keep_dims=False), kept)

    def broadcast_to(self, other: Named) -> Named:
        """Without the axes of extent 1 that ``other`` has longer."""
        ones = tuple(label for label in self.labels if label in other.labels and other.extent(label) != 1)
        gone = tuple(axis for axis, label in enumerate(self.labels) if label in ones and self.extent(label) == 1)
        kept = tuple(label for axis, label in enumerate(self.labels) if axis not in gone)
        return Named(ops.squeeze(self.value, gone), kept) if gone else self

    def ordered(self, labels: Labels) -> Operand:
        """Its axes in the order of ``labels``, which are all that it has."""
        order = tuple(self.labels.index(label) for label in labels)
        return self.value if order == tuple(range(len(order))) else ops.transpose(self.value, order)

    def beside(self, labels: Labels) -> Operand:
        """Its axes at the places of theirs among ``labels``, and axes of one element at the others."""
        missing = tuple(axis for axis, label in enumerate(labels) if label not in self.labels)
        value = self.ordered(tuple(label for label in labels if label in self.labels))
        return ops.expand_dims(value, missing) if missing else value

    def joined(self, *groups: Labels) -> Operand:
        """Its axes in the order of the groups; those of a group are one axis, of one element where it is empty."""
        value = self.ordered(tuple(label for group in groups for label in group))
        if all(len(group) == 1 for group in groups):
            return value
        return ops.reshape(value, tuple(product(self.extent(label) for label in group) for group in groups))


@onnx_op("Einsum")
def einsum(call: OnnxCall) -> Results:
    """Of floats, where no operand names an axis twice and axes of one name are as long, or one element."""
    if not all(dtype(operand.dtype).is_float for operand in call.operands):
        return Declined("no floats")
    terms, result = _parsed(call.attribute("equation"), [len(shape_of(operand)) for operand in call.operands])
    if any(len(set(labels)) < len(labels) for labels in (*terms, result)):
        return Declined("an axis that is named twice: a diagonal")
    named = [Named(operand, labels) for operand, labels in zip(call.operands, terms, strict=True)]
    longer = {(label, each.extent(label)) for each in named for label in each.labels if each.extent(label) != 1}
    if len(longer) > len({label for label, _ in longer}):
        return Declined("extents of one name that nothing says are equal")
    first, *others = named
    for position, other in enumerate(others, 1):
        wanted = {*result, *(label for labels in terms[position + 1 :] for label in labels)}
        first = _multiplied(first, other, wanted)
    return first.without(set(first.labels) - set(result)).ordered(result)


def _parsed(equation: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """The labels of each operand and of the result; without an arrow these are the ones named once, in their order.

    Raises ValueError where an equation does not fit the operands.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = [_labels(term, rank) for term, rank in zip(left.split(","), ranks, strict=True)]
    times = Counter(label for labels in terms for label in labels)
    behind = tuple(sorted(label for label in times if isinstance(label, int)))
    if arrow:
        result = _labels(right, len(right.replace(ELLIPSIS, "")) + (len(behind) if ELLIPSIS in right else 0))
    else:
        result = (*behind, *sorted(label for label, count in times.items() if isinstance(label, str) and count == 1))
    if not times.keys() >= set(result):
        raise ValueError(f"{equation!r} asks for an axis that no operand has")
    return terms, result


def _labels(term: str, rank: int) -> Labels:
    """The labels of an operand with so many axes."""
    before, dots, after = term.partition(ELLIPSIS)
    hidden = rank - len(before) - len(after)
    if hidden < 0 or (hidden and not dots):
        raise ValueError(f"{term!r} names the axes of another operand than one of rank {rank}")
    return (*before, *range(-hidden, 0), *after)


def _multiplied(left: Named, right: Named, wanted: Collection[Label]) -> Named:
    """The product of two, summed over what is not wanted afterwards."""
    left, right = left.broadcast_to(right), right.broadcast_to(left)
    shared = tuple(label for label in left.labels if label in right.labels)
    left, right = (each.without(_missing(each.labels, (*shared, *wanted))) for each in (left, right))
    summed, batch = _missing(shared, wanted), tuple(label for label in shared if label in wanted)
    rows, columns = _missing(left.labels, shared), _missing(right.labels, shared)
    if not (summed and rows and columns):  # element by element, which reads each operand once as well
        most, least = sorted((left, right), key=lambda each: len(each.labels), reverse=True)
        whole = (*most.labels, *_missing(least.labels, most.labels))
        return Named(ops.mul(left.beside(whole), right.beside(whole)), whole).without(summed)
    over = [rows] if batch else [(label,) for label in rows]  # a matrix without a batch multiplies rows of any rank
    above, below = left.joined(*_alone(batch), *over, summed), right.joined(*_alone(batch), summed, columns)
    found = ops.matmul(above, below)
    extents = (*map(left.extent, (*batch, *rows)), *map(right.extent, columns))
    return Named(found if shape_of(found) == extents else ops.reshape(found, extents), (*batch, *rows, *columns))


def _alone(labels: Labels) -> Iterable[Labels]:
    return ((label,) for label in labels)


def _missing(labels: Labels, others: Collection[Label]) -> Labels:
    return tuple(label for label in labels if label not in others)
