"""What running needs of a plan: steps over numbered slots, and what goes in and comes out. There is no graph in it.

A package holds it as it is, so whoever loads one runs without the graph, the planner, and what writes models of regions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from graphkernel.runtime.steps.steps import Step
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.bind import concrete_shape
from kernelgen.tensor.derived import Derived
from kernelgen.tensor.types import Shape, Sym, TensorType, evaluate

if TYPE_CHECKING:
    from graphkernel.communication.groups import Communicators
    from kernelgen.tensor.graph import Node

Read = tuple[str, int, int]
"""A symbol, and the slot and the axis at which its value is read."""


class Named(NamedTuple):
    """An input or a result: its name, its type and its slot."""

    name: str
    type: TensorType
    slot: int


class Held(NamedTuple):
    """A constant; ``array`` is None when its content is unknown."""

    name: str
    slot: int
    array: np.ndarray | None


class Extents(NamedTuple):
    """An array whose elements, in row-major order, are these dims: they follow from shapes by no more than polynomials."""

    slot: int
    type: TensorType
    dims: Shape

    def array(self, symbols: Mapping[str, int]) -> np.ndarray:
        """The array, when the symbols have these values."""
        found = np.array([evaluate(dim, symbols) for dim in self.dims], np.int64)
        return found.astype(self.type.dtype.numpy).reshape(concrete_shape(self.type.shape, symbols))


class Number(NamedTuple):
    """An operator that computes a few numbers from shapes. Operands are slots and types; often only the shape counts."""

    node: Node
    operands: tuple[tuple[int, TensorType], ...]
    outputs: tuple[int, ...]


class Segment(NamedTuple):
    """The steps from ``first`` to before ``last``, which are bound together; before that ``reads`` are made."""

    first: int
    last: int
    reads: tuple[Read, ...] = ()


class Buffer(NamedTuple):
    """Slot ``slot`` needs memory from step ``first`` to step ``last``; ``name`` is the label of what makes its content.

    ``escapes`` when it is no part of a segment's arena: an output lies in it, or a later segment reads it.
    ``made_by_kernel``: all that its kernel writes escapes, so the kernel may make the arrays itself.
    """

    slot: int
    name: str
    type: TensorType
    first: int
    last: int
    escapes: bool
    made_by_kernel: bool


class Output(NamedTuple):
    """An output is the content of a slot; ``copy`` when that memory is an input's, a constant's or another output's."""

    slot: int
    copy: bool


class Program(NamedTuple):
    """Steps in order over ``size`` slots, and what is in slots before them.

    ``outputs`` say where results are, ``results`` what they are called. ``aliases`` are positions of an input that is
    assigned to and of the output with its new content. ``derived`` are extents that follow from the inputs' by more than a
    polynomial, ``differences`` extents that some sizes would make negative, each with the name of a node.
    """

    size: int
    steps: tuple[Step, ...]
    inputs: tuple[Named, ...]
    outputs: tuple[Output, ...]
    results: tuple[Named, ...]
    aliases: tuple[tuple[int, int], ...]
    derived: tuple[Derived, ...]
    constants: tuple[Held, ...]
    extents: tuple[Extents, ...]
    numbers: tuple[Number, ...]
    buffers: tuple[Buffer, ...]
    differences: Mapping[Sym, str]
    segments: tuple[Segment, ...]

    def over(self, communicators: Communicators) -> Program:
        """The program whose collectives go over these communicators."""
        from graphkernel.runtime.steps.collective import spoken_over  # few programs speak to other processes

        return self._replace(steps=spoken_over(self.steps, communicators))

    @property
    def kinds(self) -> list[tuple[str, TensorType]]:
        """Name and type of each input."""
        return [(name, of) for name, of, _ in self.inputs]
