"""A kernel of other types: with sizes in the place of symbols, or with other extents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.rewriting import Rewriting
from kernelgen.tensor.attrs import Attrs, AttrValue
from kernelgen.tensor.dims import Dim, Sym, substitute
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.types import TensorType


def with_types(
    desc: KernelDesc,
    change: Callable[[Value], TensorType],
    attributes: Callable[[Node], Attrs] = lambda node: node.attrs,
) -> KernelDesc:
    """``desc`` in which ``change`` says what types inputs and results have, and ``attributes`` those of operators."""
    walk = Rewriting(desc)
    for value in desc.graph.inputs:
        walk.becomes(value, _retyped(value, change(value)))
    for node in desc.operators:
        walk.keep(node, attrs=attributes(node), types=tuple(map(change, node.outs)))
    return walk.done(tuple(map(walk.now, desc.graph.inputs)))


def _retyped(value: Value, type_: TensorType) -> Value:
    return value if type_ == value.type else replace(value.node, types=(type_,)).out


def specialize(desc: KernelDesc, sizes: Mapping[str, Dim]) -> KernelDesc:
    """The kernel with symbols replaced by sizes, which may be other symbols, in shapes and attributes."""
    if not desc.symbols:
        return desc

    def sized(value: Value) -> TensorType:
        return value.type.of_shape(tuple(substitute(dim, sizes) for dim in value.shape))

    return with_types(desc, sized, lambda node: _sized_attrs(node.attrs, sizes))


def _sized_attrs(attrs: Attrs, sizes: Mapping[str, Dim]) -> Attrs:
    def value_with(value: AttrValue) -> AttrValue:
        if isinstance(value, tuple):
            return tuple(map(value_with, value))
        return substitute(value, sizes) if isinstance(value, Sym) else value

    return Attrs.of({name: value_with(value) for name, value in attrs.items()})
