"""Lanes of a vector loop's turn, or the one lane of a statement outside of vector loops: where instructions are written.

``count`` lanes take part, at most ``capacity``. Where an instruction of the body takes whole repeats (comparisons), all of
the body computes ``padded`` lanes, and what copies left out is primed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelgen.dtypes import BOOL, FLOAT16, FLOAT32, INT16, INT32, UINT8, UINT16, DType
from kernelgen.errors import UnsupportedError
from kernelgen.targets.ascend.expressions import Expression, Number
from kernelgen.targets.ascend.instructions import TensorRef
from kernelgen.targets.ascend.lower.casting import cast_path
from kernelgen.targets.ascend.lower.values import LANES, ONE, Constant, Held, Value
from kernelgen.targets.ascend.lower.writer import Writer
from kernelgen.targets.ascend.machine import Machine
from kernelgen.targets.ascend.types import REPEAT

QUANTUM = 128
"""Lanes of every tile are a multiple: whole repeats of two-byte types."""


@dataclass(frozen=True)
class Lanes:
    """One turn of a vector loop. ``depth`` is the writer's block of the turn's body; 0 where there is no loop."""

    writer: Writer
    machine: Machine
    count: Expression
    capacity: int
    reach: str = LANES
    whole: bool = False
    depth: int = 0
    spread_before: bool = True

    @property
    def lanes(self) -> Expression:
        """How many lanes compute."""
        if not self.whole:
            return self.count
        if isinstance(self.count, Number):
            return Number(-(-int(self.count.value) // QUANTUM) * QUANTUM)
        return (self.count + (QUANTUM - 1)) // QUANTUM * QUANTUM

    @property
    def exact(self) -> bool:
        """Whether no lane is left over: copies fill all that compute."""
        return isinstance(self.count, Number) and int(self.count.value) % QUANTUM == 0

    def new(self, dtype: DType, prefix: str = "t") -> Held:
        """A fresh tile for a result."""
        return Held(self.writer.tile(prefix, dtype, self.capacity), dtype, self.reach)

    def new_bits(self) -> Held:
        """A fresh tile for a bit a lane."""
        return Held(self.writer.tile("bits", UINT8, self.capacity // 8), BOOL, self.reach, bits=True)

    # operands

    def held(self, value: Value) -> Held:
        """The value as lanes of this turn: constants are written to a tile, single lanes are spread."""
        if isinstance(value, Constant):
            return self.filled(value)
        if self.whole and value.reach == ONE:
            self.writer.prime(value.tensor)
        if value.reach == self.reach or self.reach == ONE:
            return value
        return self.spread(value)

    def ref(self, value: Value) -> TensorRef:
        """The operand of :meth:`held`."""
        return self.held(value).ref

    def filled(self, constant: Constant) -> Held:
        """A constant in every lane."""
        if constant.dtype == BOOL:
            return self.as_bits(self.filled(Constant(float(constant.value), FLOAT16)))
        if constant.dtype in self.machine.operations["Duplicate"]:
            found = self.new(constant.dtype, "c")
            number = written(constant.value, constant.dtype)
            self.writer.emit("Duplicate", dst=found.ref, scalar=number, count=self.lanes)
            return found
        wide = FLOAT32 if constant.dtype.is_float else INT32
        return self.cast(self.filled(Constant(constant.value, wide)), constant.dtype)

    def spread(self, value: Held) -> Held:
        """One lane in all lanes, before the loop: Brcb makes a block of it, a Copy with source stride 0 the others."""
        if value.bits:
            single = Lanes(self.writer, self.machine, Number(1), QUANTUM, ONE, whole=True)
            return self.as_bits(self.spread(single.from_bits(value, FLOAT16)))
        if value.dtype not in self.machine.operations["Brcb"]:
            raise UnsupportedError("unsupported-dtype", f"no broadcast of {value.dtype.name} on {self.machine.name}")
        if self.spread_before and self.depth:
            with self.writer.before(self.depth):
                return self._spread(value)
        return self._spread(value)

    def _spread(self, value: Held) -> Held:
        self.writer.prime(value.tensor)
        block = self.writer.tile("block", value.dtype, REPEAT // value.dtype.itemsize)
        self.writer.emit("Brcb", dst=block, src=value.ref, repeats=1, strides=(1, 8))
        found = self.new(value.dtype, "spread")
        lanes = REPEAT // value.dtype.itemsize
        total = self.capacity // lanes
        for first in range(0, total, 255):
            repeats = min(255, total - first)
            target = found.tensor[first * lanes]
            self.writer.emit("Copy", dst=target, src=block, mask=lanes, repeats=repeats, strides=(1, 0, 8, 0))
        return found

    # instructions

    def binary(self, operation: str, first: Value, second: Value, dtype: DType) -> Held:
        """``operation(first, second)`` lane by lane."""
        a, b = self.ref(first), self.ref(second)
        found = self.new(dtype)
        self.writer.emit(operation, dst=found.ref, first=a, second=b, count=self.lanes)
        return found

    def unary(self, operation: str, operand: Value, dtype: DType) -> Held:
        """``operation(operand)`` lane by lane."""
        source = self.ref(operand)
        found = self.new(dtype)
        self.writer.emit(operation, dst=found.ref, src=source, count=self.lanes)
        return found

    def scalar(self, operation: str, operand: Value, number: float, dtype: DType) -> Held:
        """``operation(operand, number)`` lane by lane."""
        source = self.ref(operand)
        found = self.new(dtype)
        given = written(number, dtype)
        self.writer.emit(operation, dst=found.ref, src=source, scalar=given, count=self.lanes)
        return found

    def move(self, operand: Value, target: Held, count: Expression | None = None) -> None:
        """Copies lanes to another tile: a product with 1, which keeps every value."""
        one = 1.0 if target.dtype.is_float else 1
        count = self.count if count is None else count
        if isinstance(operand, Constant):
            number = written(operand.value, target.dtype)
            self.writer.emit("Duplicate", dst=target.ref, scalar=number, count=count)
            return
        self.writer.emit("Muls", dst=target.ref, src=self.ref(operand), scalar=one, count=count)

    def compare(self, mode: str, first: Value, second: Value) -> Held:
        """A bit for each lane."""
        a = self.held(first)
        found = self.new_bits()
        if isinstance(second, Constant) and a.dtype.is_float:
            number = written(second.value, a.dtype)
            self.writer.emit("CompareScalar", dst=found.ref, first=a.ref, scalar=number, mode=mode, count=self.lanes)
        else:
            other = self.ref(second)
            self.writer.emit("Compare", dst=found.ref, first=a.ref, second=other, mode=mode, count=self.lanes)
        return found

    def words(self, operation: str, *operands: Held) -> Held:
        """And, Or, Not of bits, sixteen lanes a word."""
        found = self.new_bits()
        target = self.writer.alias(found.tensor, UINT16)
        sources = [self.writer.alias(self.held(operand).tensor, UINT16) for operand in operands]
        count = self.lanes // 16
        if len(sources) == 2:
            self.writer.emit(operation, dst=target, first=sources[0], second=sources[1], count=count)
        else:
            self.writer.emit(operation, dst=target, src=sources[0], count=count)
        return found

    def select(self, chosen: Held, first: Value, second: Value, dtype: DType) -> Held:
        """``chosen ? first : second``; 16- and 32-bit integers are moved as floats of their width."""
        bits = self.held(chosen)
        kind = {INT32: FLOAT32, INT16: FLOAT16}.get(dtype, dtype)
        if kind not in self.machine.operations["Select"]:
            raise UnsupportedError("unsupported-dtype", f"no select of {dtype.name} on {self.machine.name}")
        a = self._as(self.held(first), kind)
        found = self.new(dtype)
        target = self._as(found, kind)
        if isinstance(second, Constant) and kind == dtype:
            mode, number = "VSEL_TENSOR_SCALAR_MODE", written(second.value, dtype)
            self.writer.emit("Select", dst=target, chosen=bits.ref, first=a, scalar=number, mode=mode, count=self.lanes)
        else:
            b = self._as(self.held(second), kind)
            mode = "VSEL_TENSOR_TENSOR_MODE"
            self.writer.emit("Select", dst=target, chosen=bits.ref, first=a, second=b, mode=mode, count=self.lanes)
        return found

    def _as(self, value: Held, dtype: DType) -> TensorRef:
        return value.ref if value.dtype == dtype else self.writer.alias(value.tensor, dtype)[value.offset]

    # types

    def as_bits(self, value: Held) -> Held:
        """Numbers that are not 0."""
        return self.compare("NE", value, Constant(0.0, value.dtype))

    def from_bits(self, value: Held, dtype: DType) -> Held:
        """1 where the bit is set, else 0."""
        return self.select(value, Constant(1.0, dtype), Constant(0.0, dtype), dtype)

    def cast(self, value: Value, to: DType) -> Held:
        """The value in another type: floats to integers towards zero, to bool whether it is not 0."""
        found = self.held(value)
        if found.dtype == to:
            return found
        if found.bits:
            return self._converted(self.from_bits(found, FLOAT16 if to == FLOAT16 else FLOAT32), to)
        if to == BOOL:
            wide = found if found.dtype in (FLOAT16, FLOAT32) else self._converted(found, FLOAT32)
            return self.as_bits(wide)
        return self._converted(found, to)

    def _converted(self, value: Held, to: DType) -> Held:
        for step, mode in cast_path(self.machine, value.dtype, to):
            found = self.new(step)
            self.writer.emit("Cast", dst=found.ref, src=value.ref, mode=mode, count=self.lanes)
            value = found
        return value


def written(number: float, dtype: DType) -> int | float:
    """A number as the text has it: floats with the digits of float32."""
    with np.errstate(over="ignore"):
        return float(np.float32(number)) if dtype.is_float else int(number)


def tile_lanes(extent: int) -> int:
    """The lanes of a tile that holds so many."""
    return max(QUANTUM, -(-extent // QUANTUM) * QUANTUM)
