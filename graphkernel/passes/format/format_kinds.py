"""What the pass transform_op_optimizer must know of Transpose, LayoutTransform and Reshape: their formats.

A *format* says how the elements of one logical tensor lie in a value. For Transpose it is an order of axes, for Reshape a
shape, for LayoutTransform a layout with its shape. A transform changes the format and nothing else; an element-wise
operator computes the same in every format, as long as its operands share it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from kernelgen.tensor.graph import Builder, Node, Value
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.layout import LAYOUT_TRANSFORM
from kernelgen.tensor.operators.shape import RESHAPE, TRANSPOSE
from kernelgen.tensor.types import DEFAULT_LAYOUT, Shape, TensorType

Format = Hashable
AXIS_FREE = frozenset({"dst_type"})  # attributes that do not speak of axes


class FormatKind(Protocol):
    """One kind of transform."""

    @property
    def name(self) -> str:
        """The operator."""
        ...

    def is_transform(self, node: Node) -> bool:
        """True for a node of this kind whose operand and result can be told apart by their formats."""
        ...

    def own_format(self, value: Value) -> Format:
        """The format of a value about which nothing else is known."""
        ...

    def result_format(self, node: Node, operand: Format) -> Format:
        """The format of a transform's result, given that of its operand."""
        ...

    def operand_format(self, node: Node, result: Format) -> Format:
        """The format of a transform's operand, given that of its result."""
        ...

    def takes_part(self, operand: TensorType, result: TensorType) -> bool | None:
        """True when an operand has the format of the element-wise result, None when it fits every format, else False."""
        ...

    def is_free(self, shape: Shape, present: Format, have: Format, want: Format) -> bool:
        """True when a conversion moves nothing, of a value that has the shape ``shape`` in the format ``present``."""
        ...

    def convert(self, value: Value, have: Format, want: Format, builder: Builder) -> Value:
        """The value in another format."""
        ...


class TransposeKind:
    """Formats are orders of axes: axis i of the value is axis ``format[i]`` of the logical tensor."""

    name = TRANSPOSE.name

    def is_transform(self, node: Node) -> bool:
        """Every Transpose of the default layout."""
        return node.op is TRANSPOSE and node.args[0].type.layout == DEFAULT_LAYOUT

    def own_format(self, value: Value) -> Format:
        """The value's axes are the logical ones."""
        return tuple(range(value.type.rank))

    def result_format(self, node: Node, operand: Format) -> Format:
        """The operand's axes in the order of perm."""
        axes = _axes(operand)
        return tuple(axes[axis % len(axes)] for axis in node.attrs.ints("perm"))

    def operand_format(self, node: Node, result: Format) -> Format:
        """The result's axes put back where perm took them from."""
        axes = _axes(result)
        back = {axis % len(axes): place for place, axis in enumerate(node.attrs.ints("perm"))}
        return tuple(axes[back[axis]] for axis in range(len(axes)))

    def takes_part(self, operand: TensorType, result: TensorType) -> bool | None:
        """Operands of the result's rank are transposed with it, axes of extent 1 included; single elements need not be."""
        if operand.size == 1:
            return None
        return operand.rank == result.rank and result.layout == DEFAULT_LAYOUT

    def is_free(self, shape: Shape, present: Format, have: Format, want: Format) -> bool:
        """Moving axes of extent 1 moves no element."""
        long = {axis for axis, extent in zip(_axes(present), shape, strict=True) if extent != 1}
        return [axis for axis in _axes(have) if axis in long] == [axis for axis in _axes(want) if axis in long]

    def convert(self, value: Value, have: Format, want: Format, builder: Builder) -> Value:
        """A Transpose, or a Reshape when that is enough."""
        perm = _perm(have, want)
        if perm == tuple(range(len(perm))):
            return value
        if self.is_free(value.type.shape, have, have, want):
            return builder.emit(RESHAPE, value, shape=tuple(value.type.shape[axis] for axis in perm))
        return builder.emit(TRANSPOSE, value, perm=perm)


class ReshapeKind:
    """Formats are shapes; the order of the elements never changes."""

    name = RESHAPE.name

    def is_transform(self, node: Node) -> bool:
        """Every Reshape of the default layout."""
        return node.op is RESHAPE and node.args[0].type.layout == DEFAULT_LAYOUT

    def own_format(self, value: Value) -> Format:
        """The value's shape."""
        return value.type.shape

    def result_format(self, node: Node, operand: Format) -> Format:
        """The new shape."""
        return node.out.type.shape

    def operand_format(self, node: Node, result: Format) -> Format:
        """The old shape."""
        return node.args[0].type.shape

    def takes_part(self, operand: TensorType, result: TensorType) -> bool | None:
        """Operands of the result's shape do; a scalar fits every shape, whatever else is broadcast does not."""
        if operand.rank == 0:
            return None
        return operand.shape == result.shape and result.layout == DEFAULT_LAYOUT

    def is_free(self, shape: Shape, present: Format, have: Format, want: Format) -> bool:
        """Every change of shape is one Reshape."""
        return have == want

    def convert(self, value: Value, have: Format, want: Format, builder: Builder) -> Value:
        """A Reshape."""
        return value if have == want else builder.emit(RESHAPE, value, shape=want)


class LayoutKind:
    """Formats are layouts. LayoutTransform keeps every element, so any layout of the logical axes can be made of any."""

    name = LAYOUT_TRANSFORM.name

    def is_transform(self, node: Node) -> bool:
        """Every LayoutTransform."""
        return node.op is LAYOUT_TRANSFORM

    def own_format(self, value: Value) -> Format:
        """The value's layout."""
        return value.type.layout

    def result_format(self, node: Node, operand: Format) -> Format:
        """The new layout."""
        return node.out.type.layout

    def operand_format(self, node: Node, result: Format) -> Format:
        """The old layout."""
        return node.args[0].type.layout

    def takes_part(self, operand: TensorType, result: TensorType) -> bool | None:
        """Operands of the result's shape and layout do; a scalar fits every layout."""
        if operand.rank == 0:
            return None
        return operand.shape == result.shape and operand.layout == result.layout

    def is_free(self, shape: Shape, present: Format, have: Format, want: Format) -> bool:
        """Every change of layout is one LayoutTransform."""
        return have == want

    def convert(self, value: Value, have: Format, want: Format, builder: Builder) -> Value:
        """A LayoutTransform."""
        return value if have == want else builder.emit(LAYOUT_TRANSFORM, value, src_format=have, dst_format=want)


def is_flexible(kind: FormatKind, node: Node) -> bool:
    """True for an element-wise operator whose result may have another format if its operands have."""
    if node.op.kind is not Kind.ELEMWISE or node.op.composite or len(node.types) != 1:
        return False
    if (node.attrs.items_ and set(node.attrs) - AXIS_FREE) or node.types[0].size == 1:
        return False
    parts = [kind.takes_part(arg.type, node.types[0]) for arg in node.args]
    return False not in parts and True in parts


def is_part(kind: FormatKind, node: Node, operand: Value) -> bool:
    """True when a flexible operator, ``node``, needs the ``operand`` (by its place) in its own format, of this
    ``kind``.
    """
    return kind.takes_part(operand.type, node.types[0]) is True


def _axes(order: Format) -> tuple[int, ...]:
    assert isinstance(order, tuple)
    return order


def _perm(have: Format, want: Format) -> tuple[int, ...]:
    axes = _axes(have)
    return tuple(axes.index(axis) for axis in _axes(want))


KINDS: tuple[FormatKind, ...] = (TransposeKind(), LayoutKind(), ReshapeKind())
"""Dearest first: what removes a Transpose may leave a Reshape, never the other way round."""
