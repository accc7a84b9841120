"""One instruction on its way: its arguments with their values, and what it will do when its pipe comes to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from kernelgen.ascendc.instructions import Call
from kernelgen.ascendc.intrinsics import Form
from kernelgen.ascendc.types import BLOCK, GM
from kernelgen.machines.ascend.description import Machine
from kernelgen.simulators.ascendc.state.byte_regions import Region, region
from kernelgen.simulators.ascendc.state.memory import Buffer, Memory
from kernelgen.simulators.common.findings import Stop
from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.dtypes import DType


@dataclass(frozen=True)
class Operand:
    """A tensor from an element on: ``start`` is its byte, ``low`` and ``high`` bound the tensor's bytes."""

    name: str
    dtype: DType
    memory: Memory | Buffer
    place: str
    start: int
    low: int
    high: int

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize


@dataclass(frozen=True)
class Touch:
    """Bytes of a memory that an instruction reads or writes.

    ``whole`` reads ask for bytes that were written, ``whole`` writes leave them so; where it is False, the instruction
    looks after that itself.
    """

    memory: Memory | Buffer
    region: Region
    write: bool
    whole: bool = True

    @cached_property
    def marks(self) -> np.ndarray:
        """Whether each of the bytes was written, as a view."""
        return self.region.view(self.memory.written)


@dataclass(frozen=True)
class Work:
    """What an instruction does: bytes that it touches, its effect, and how long its pipe is busy."""

    touches: tuple[Touch, ...]
    run: Callable[[], None]
    cycles: float
    gm_bytes: int = 0


Given = Operand | int | float | str | np.ndarray | Mapping[str, int | float | str]
"""The value of an argument: a struct of parameters is a mapping, a mask of bits an array of lanes."""


@dataclass(frozen=True)
class Instruction:
    """A call with the values of its arguments. ``fail`` notes a finding and gives the exception to raise."""

    call: Call
    form: Form
    given: Mapping[str, Given]
    machine: Machine
    bandwidth: float
    fail: Callable[[str, str], Stop]

    def operand(self, name: str) -> Operand:
        """A tensor argument. Raises a finding for anything else."""
        value = self.given[name]
        if not isinstance(value, Operand):
            raise self.fail("bad-parameter", f"{name} is no tensor")
        return value

    def integer(self, name: str) -> int:
        """An integer argument. Raises a finding for anything else."""
        value = self.given[name]
        if not isinstance(value, int):
            raise self.fail("bad-parameter", f"{name} is no integer: {value}")
        return value

    def text(self, name: str) -> str:
        """An enumerator without its enumeration."""
        return str(self.given[name]).rpartition("::")[2]

    def struct(self, name: str) -> Mapping[str, int | float | str]:
        """A struct of parameters. Raises a finding for anything else."""
        value = self.given[name]
        if not isinstance(value, Mapping):
            raise self.fail("bad-parameter", f"{name} is no struct")
        return value

    def fields(self, name: str, *fields: str) -> tuple[int, ...]:
        """Integer fields of a struct. Raises a finding for fields that are none."""
        struct = self.struct(name)
        for field in fields:
            if not isinstance(struct[field], int):
                raise self.fail("bad-parameter", f"{field} is no integer: {struct[field]}")
        return tuple(int(struct[field]) for field in fields)

    def demand(self, condition: bool, kind: str, message: str) -> None:
        """Raises with a finding where the condition does not hold."""
        if not condition:
            raise self.fail(kind, message)

    def within(self, name: str, value: int, low: int, high: int) -> int:
        """The value, which must be in a range."""
        self.demand(low <= value <= high, "bad-parameter", f"{name} is {value}, allowed {low} to {high}")
        return value

    def takes(self, operation: str, dtype: DType) -> None:
        """The machine must compute the operation in this type."""
        known = self.machine.operations.get(operation, frozenset())
        names = ", ".join(sorted(one.name for one in known)) or "none"
        self.demand(
            dtype in known, "bad-dtype", f"{operation} of {dtype.name} on {self.machine.name}; it takes {names}"
        )

    def lies_in(self, operand: Operand, *places: str) -> None:
        """The operand must be in one of these memories."""
        ok = operand.place in places
        self.demand(
            ok, "wrong-memory", f"{operand.name} is in {operand.place}, {self.call.operation} takes {', '.join(places)}"
        )

    def aligned(self, operand: Operand, unit: int = 0) -> None:
        """The operand's first byte must be a multiple of the unit, or of what its memory asks for."""
        unit = unit or (1 if operand.place == GM else self.machine.alignments[operand.place])
        ok = operand.start % unit == 0
        self.demand(
            ok,
            "misaligned",
            f"{operand.name} begins at byte {operand.start} of {operand.place}, a multiple of {unit} is needed",
        )

    def touch(self, operand: Operand, where: Region, write: bool = False, whole: bool = True) -> Touch:
        """The bytes of an operand, which must be its tensor's."""
        inside = operand.low <= where.start and where.stop <= operand.high
        self.demand(
            inside,
            "out-of-bounds",
            f"{operand.name}: bytes {where.start - operand.low} to {where.stop - operand.low} of {operand.high - operand.low}",
        )
        return Touch(operand.memory, where, write, whole)

    def row(self, operand: Operand, count: int, write: bool = False, whole: bool = True) -> Touch:
        """``count`` elements in a row."""
        return self.touch(operand, region(operand.start, (), count * operand.itemsize), write, whole)


def blocks_of(size: int) -> int:
    """How many blocks hold that many bytes."""
    return -(-size // BLOCK)
