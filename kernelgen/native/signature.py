"""How a kernel is called: what its callers give, and what its machine code takes."""

from __future__ import annotations

from typing import Protocol

from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.dims import Shape, symbols_of
from kernelgen.tensor.dtypes import DType


class Described(Protocol):
    """An array that a kernel is given, or gives: :class:`kernelgen.composite.description.Tensor` has more."""

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    @property
    def shape(self) -> Shape:
        """Its extents."""
        ...

    @property
    def dtype(self) -> DType:
        """Its data type."""
        ...


class Argument(NamedTuple):
    """What machine code expects of one array."""

    name: str
    dtype: DType
    shape: Shape
    is_written: bool

    def __str__(self) -> str:
        access, shape = "a writeable" if self.is_written else "a", ", ".join(map(str, self.shape))
        return f"{self.name}: expected {access} C-contiguous {self.dtype.name} array of shape [{shape}]"


class Signature(NamedTuple):
    """``inputs`` and ``outputs`` in order, the positions of the inputs that are written in place, and the code's own view.

    ``arguments`` are the arrays that the code takes: inputs, outputs, workspaces; complex ones as their two parts. ``sizes``
    are the symbols whose values it is given, in order.
    """

    name: str
    inputs: tuple[Described, ...]
    outputs: tuple[Described, ...]
    updated_inputs: tuple[int, ...]
    arguments: tuple[Argument, ...]
    sizes: tuple[str, ...]

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols of all input and output shapes, sorted; empty for a static kernel."""
        return symbols_of(dim for tensor in (*self.inputs, *self.outputs) for dim in tensor.shape)

    @property
    def workspaces(self) -> tuple[Argument, ...]:
        """The arrays of temporaries that fit no stack."""
        return self.arguments[len(self.inputs) + len(self.outputs) :]
