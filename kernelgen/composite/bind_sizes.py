"""Sizes for symbols: bound from the shapes of arrays, put into a description."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from kernelgen.errors import ArgumentError
from kernelgen.tensor.attrs import Attrs, AttrValue
from kernelgen.tensor.dims import Dim, Shape, Sym, solve, substitute

if TYPE_CHECKING:
    from kernelgen.composite.description import KernelDesc, OpDesc, TensorDesc


def map_tensors(desc: KernelDesc, change: Callable[[TensorDesc], TensorDesc]) -> KernelDesc:
    """The description with every mention of every tensor changed, inputs first, then the operators in order, then outputs."""

    def op_with(op: OpDesc) -> OpDesc:
        return replace(op, inputs=tuple(map(change, op.inputs)), outputs=tuple(map(change, op.outputs)))

    inputs = tuple(map(change, desc.inputs))
    ops = tuple(map(op_with, desc.ops))
    return replace(desc, inputs=inputs, ops=ops, outputs=tuple(map(change, desc.outputs)))


def specialize(desc: KernelDesc, sizes: Mapping[str, int]) -> KernelDesc:
    """The description with symbols replaced by sizes, in shapes and attributes."""
    if not desc.symbols:
        return desc

    def sized(tensor: TensorDesc) -> TensorDesc:
        return replace(tensor, shape=tuple(substitute(dim, sizes) for dim in tensor.shape))

    fixed = map_tensors(desc, sized)
    return replace(fixed, ops=tuple(replace(op, attrs=_sized_attrs(op.attrs, sizes)) for op in fixed.ops))


class Sized(Protocol):
    """What has a name and extents."""

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    @property
    def shape(self) -> Shape:
        """Its extents."""
        ...


class Shaped(Protocol):
    """What has inputs whose shapes tell sizes: a description, or the signature of a kernel."""

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    @property
    def inputs(self) -> tuple[Sized, ...]:
        """The inputs in order."""
        ...

    @property
    def symbols(self) -> tuple[str, ...]:
        """What the inputs must tell."""
        ...


def bind(desc: Shaped, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """The sizes of the symbols, from the shapes of the inputs. Raises ArgumentError when a shape does not fit.

    A sum or product of symbols tells one of them as soon as the others are known, which may be later ones.
    """
    sizes: dict[str, int] = {}
    known = -1
    while known < len(sizes):  # the last round finds nothing new, and compares every extent
        known = len(sizes)
        for tensor, shape in zip(desc.inputs, shapes, strict=True):
            _bind_one(tensor, shape, sizes)
    unknown = [name for name in desc.symbols if name not in sizes]
    if unknown:
        raise ArgumentError(f"{desc.name}: the shapes of the inputs do not tell {', '.join(unknown)}")
    return sizes


def _bind_one(tensor: Sized, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    """Adds what an input's shape tells. Raises ArgumentError when it contradicts its description or what is known."""
    if all(dim == 1 for dim in (*shape, *tensor.shape)):
        return
    if len(shape) != len(tensor.shape):
        raise ArgumentError(f"{tensor.name} has rank {len(shape)}, expected {list(tensor.shape)}")
    for dim, extent in zip(tensor.shape, shape, strict=True):
        found = solve(dim, extent, sizes)
        if found is None:
            known = ", ".join(f"{name}={size}" for name, size in sizes.items())
            raise ArgumentError(
                f"{tensor.name} has shape {list(shape)}, expected {list(tensor.shape)}{known and f' with {known}'}"
            )
        sizes.update(found)


def _sized_attrs(attrs: Attrs, sizes: Mapping[str, Dim]) -> Attrs:
    def value_with(value: AttrValue) -> AttrValue:
        if isinstance(value, tuple):
            return tuple(map(value_with, value))
        return substitute(value, sizes) if isinstance(value, Sym) else value

    return Attrs.of({name: value_with(value) for name, value in attrs.items()})
