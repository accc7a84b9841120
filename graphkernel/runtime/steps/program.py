"""What running needs of a plan: steps over numbered slots, and what goes in and comes out. There is no graph in it.

A package holds it as it is, so whoever loads one runs without the graph, the planner, and what writes models of regions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphkernel.runtime.steps.steps import KernelStep, Step, ViewStep
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

    What is stored into an input behind all steps is needed by one more than there are.

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


def memory_roots(steps: Sequence[Step]) -> dict[int, int]:
    """For each slot that a step fills, the slot whose memory it is: views and updates lie in the memory of their operand."""
    roots: dict[int, int] = {}
    for step in steps:
        roots.update(memory_behind(step, roots))
    return roots


def written_over(program: Program) -> tuple[int, ...]:
    """The positions of the inputs that steps write over, while others may still be read."""
    roots = memory_roots(program.steps)
    over = {
        roots[slot]
        for step in program.steps
        if isinstance(step, KernelStep)
        for slot, position in step.stored
        if position not in step.private
    }
    return tuple(position for position, given in enumerate(program.inputs) if given.slot in over)


def memory_behind(step: Step, roots: Mapping[int, int]) -> dict[int, int]:
    """For each slot that a step fills the slot whose memory it is: of an operand, or its own."""
    if isinstance(step, ViewStep):
        return {slot: roots.get(step.inputs[0], step.inputs[0]) for slot in step.outputs}
    memory = {slot: slot for slot in step.outputs}
    if isinstance(step, KernelStep):
        shared = {slot: step.inputs[position] for slot, position in step.stored if position not in step.private}
        memory.update((slot, roots.get(operand, operand)) for slot, operand in shared.items())
    return memory
