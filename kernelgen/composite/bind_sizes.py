"""Sizes for symbols, bound from the shapes of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kernelgen.errors import ArgumentError
from kernelgen.tensor.dims import Shape, solve

if TYPE_CHECKING:
    from kernelgen.composite.description import KernelDesc  # running a package does without descriptions


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


def bind(desc: KernelDesc | Shaped, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
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
