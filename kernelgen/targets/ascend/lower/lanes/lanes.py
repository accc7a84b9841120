"""Lanes of a turn: elements of tiles that one vector instruction after the other works on.

A value that varies along fewer axes of a :class:`Turn` has a smaller tile, and is spread when an
operand must be as large as the others:

    one for all lanes    Brcb makes a block of it, Copy with source stride 0 the others
    one for each row     Brcb makes a block of each, Copy with source stride 0 the rest of the row
    one for each column  Copy with source repeat stride 0 makes all rows of one

Where rows are long, instructions of two operands read such a block or row with stride 0 themselves (:meth:`Lanes.binary`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kernelgen.ascendc.expressions import Expression, Number, ceil_div
from kernelgen.ascendc.instructions import GATHER, SELECT, TensorRef
from kernelgen.ascendc.types import BLOCK, REPEAT
from kernelgen.errors import UnsupportedError
from kernelgen.targets.ascend.lower.lanes.casting import cast_path
from kernelgen.targets.ascend.lower.lanes.turn import Turn, stored_as
from kernelgen.targets.ascend.lower.lanes.written_numbers import words_of, written
from kernelgen.targets.ascend.lower.program.names import Constant, Held, Value
from kernelgen.tensor.dtypes import BOOL, FLOAT16, FLOAT32, INT8, INT16, INT32, UINT8, UINT16, UINT32, DType

MOST_REPEATS = 255
SIGNED: Mapping[DType, DType] = {UINT8: INT8, UINT16: INT16, UINT32: INT32}
MOST_STRIDE = 255
"""Blocks from row to row in an instruction of two operands."""


@dataclass(frozen=True)
class Strides:
    """A source's steps in blocks, from block to block and from repeat to repeat."""

    block: int
    repeat: int


@dataclass(frozen=True)
class Lanes(Turn):
    """The values of one turn: those that are spread already, and numbers of 64 bits by their words."""

    spreads: dict[tuple[Held, tuple[str, ...]], Held] = field(default_factory=dict[tuple[Held, tuple[str, ...]], Held])
    parts: dict[Held, tuple[Value, Value]] = field(default_factory=dict[Held, tuple[Value, Value]])

    @property
    def complete(self) -> Lanes:
        """A turn of all that there may be: before the loop nothing is known of how much a turn has."""
        first, *others = self.axes
        return replace(self, axes=(replace(first, count=Number(first.capacity)), *others))

    def along(self, names: tuple[str, ...]) -> Lanes:
        """The turn of some of the axes only."""
        if names == self.names:
            return self
        return replace(self, axes=tuple(axis for axis in self.axes if axis.variable in names), spreads={}, parts={})

    def new(self, dtype: DType, prefix: str = "t") -> Held:
        """A fresh tile for a result."""
        return Held(self.writer.tile(prefix, stored_as(dtype), self.capacity), dtype, self.names, level=self.level)

    def new_bits(self) -> Held:
        """A fresh tile for a bit a lane."""
        tile = self.writer.tile("bits", UINT8, self.capacity // 8)
        return Held(tile, BOOL, self.names, bits=True, level=self.level)

    # operands

    def held(self, value: Value) -> Held:
        """The value as lanes of this turn: constants are written to a tile, what has fewer axes is spread."""
        if isinstance(value, Constant):
            return self.filled(value)
        if self.whole and not value.axes:
            self.writer.prime(value.tensor)
        return value if value.axes == self.names else self.spread(value)

    def ref(self, value: Value) -> TensorRef:
        """The operand of :meth:`held`."""
        return self.held(value).ref

    def filled(self, constant: Constant) -> Held:
        """A constant in every lane."""
        if constant.dtype == BOOL:
            return self.as_bits(self.filled(Constant(float(constant.value), FLOAT16)))
        if constant.dtype.bits == 64:
            low, high = (Constant(part, INT32) for part in words_of(constant))
            return self.joined(low, high, constant.dtype)
        if constant.dtype in self.machine.operations["Duplicate"]:
            found = self.new(constant.dtype, "c")
            number = written(constant.value, constant.dtype)
            self.writer.emit("Duplicate", dst=found.ref, scalar=number, count=self.lanes)
            return found
        wide = FLOAT32 if constant.dtype.is_float else INT32
        return self.cast(self.filled(Constant(constant.value, wide)), constant.dtype)

    def full(self, constant: Constant) -> Held:
        """A constant in every lane that there may be."""
        found = self.new(constant.dtype, "c")
        number = written(constant.value, constant.dtype)
        self.writer.emit("Duplicate", dst=found.ref, scalar=number, count=self.capacity)
        return found

    # spreading

    def spread(self, value: Held) -> Held:
        """A value of fewer axes in all lanes; before the loop of turns where it is there already."""
        key = (value, self.names)
        if key not in self.spreads:
            if self.depth and value.level < self.depth:
                with self.writer.before(self.depth):
                    self.spreads[key] = self.complete._spread(value)
            else:
                self.spreads[key] = self._spread(value)
        return self.spreads[key]

    def _spread(self, value: Held) -> Held:
        if value.bits:
            own = replace(self.along(value.axes), whole=True)
            return self.as_bits(self._spread(own.from_bits(value, FLOAT16)))
        if value.dtype not in self.machine.operations["Brcb"]:
            return self._spread_otherwise(value)
        self.writer.prime(value.tensor)
        if not value.axes:
            return self._from_one(value)
        return self._from_rows(value) if value.axes == self.names[:1] else self._from_columns(value)

    def _spread_otherwise(self, value: Held) -> Held:
        """64 bits word by word, 8 bits as float16, which holds them all."""
        own = self.along(value.axes)
        if value.dtype.itemsize == 8:
            low, high = (part if isinstance(part, Constant) else self._spread(part) for part in own.parted(value))
            return self.joined(low, high, value.dtype)
        return self.cast(self._spread(own.cast(value, FLOAT16)), value.dtype)

    def _from_one(self, value: Held) -> Held:
        """All lanes of the tile, those that take no part in this turn too: a later turn may have more."""
        lanes = REPEAT // value.dtype.itemsize
        block = self.writer.tile("block", value.dtype, lanes)
        self.writer.emit("Brcb", dst=block, src=value.ref, repeats=1, strides=(1, 8))
        found = self.new(value.dtype, "spread")
        total = self.capacity // lanes
        for first in range(0, total, MOST_REPEATS):
            repeats = min(MOST_REPEATS, total - first)
            target = found.tensor[first * lanes]
            self.writer.emit("Copy", dst=target, src=block, mask=lanes, repeats=repeats, strides=(1, 0, 8, 0))
        return found

    def _from_rows(self, value: Held) -> Held:
        """Rows of one value each."""
        return self._copied(value.dtype, self._block_of_each(value), Strides(0, 1))

    def _block_of_each(self, value: Held) -> TensorRef:
        """A block for each row, full of its value."""
        key = (value, value.axes)
        if key not in self.spreads:
            rows = self.axes[0]
            size = -(-rows.capacity // 8) * 8 * BLOCK // value.dtype.itemsize
            block = self.writer.tile("blocks", value.dtype, size)
            self.writer.emit("Brcb", dst=block, src=value.ref, repeats=ceil_div(rows.count, 8), strides=(1, 8))
            self.spreads[key] = replace(value, tensor=block, offset=Number(0))
        return self.spreads[key].ref

    def _from_columns(self, value: Held) -> Held:
        """All rows alike, those that take no part in this turn too."""
        return self._copied(value.dtype, value.ref, Strides(1, 0))

    def _copied(self, dtype: DType, source: TensorRef, strides: Strides) -> Held:
        """Copies row by row, as many columns at once as a repeat has."""
        found = self.new(dtype, "spread")
        if not self.exact:
            self.writer.prime(found.tensor)
        rows = self.axes[0]
        count = Number(rows.capacity) if strides.repeat == 0 else rows.count
        for first, width in self.strips(dtype):
            moved = TensorRef(source.tensor, source.offset + first * strides.block)
            steps = (1, strides.block, self.row_blocks(dtype), strides.repeat)
            self.writer.emit("Copy", dst=found.tensor[first], src=moved, mask=width, repeats=count, strides=steps)
        return found

    # instructions

    def binary(self, operation: str, first: Value, second: Value, dtype: DType) -> Held:
        """``operation(first, second)`` lane by lane; an operand that is alike along long rows or columns is not spread."""
        if any(map(self._repeats, (first, second))) and any(map(self._is_whole, (first, second))):
            return self._by_rows(operation, first, second, dtype)
        a, b = self.ref(first), self.ref(second)
        found = self.new(dtype)
        self.writer.emit(operation, dst=found.ref, first=a, second=b, count=self.lanes)
        return found

    def _is_whole(self, value: Value) -> bool:
        return isinstance(value, Held) and value.axes == self.names

    def _repeats(self, value: Value) -> bool:
        """Whether an instruction over rows can read an operand with stride 0, with no more work than over lanes.

        What is spread already, or before the loop of turns, is read as it is.
        """
        if len(self.axes) < 2 or self.whole or not isinstance(value, Held) or value.bits:
            return False
        long = self.pitch * value.dtype.itemsize >= REPEAT and self.row_blocks(value.dtype) <= MOST_STRIDE
        along = len(value.axes) == 1 and value.dtype in self.machine.operations["Brcb"]
        return long and along and value.level >= self.depth and (value, self.names) not in self.spreads

    def _by_rows(self, operation: str, first: Value, second: Value, dtype: DType) -> Held:
        """An instruction for as many columns as a repeat has, over all rows."""
        (a, left), (b, right) = self._along_rows(first), self._along_rows(second)
        found, blocks = self.new(dtype), self.row_blocks(dtype)
        for column, width in self.strips(dtype):
            self.writer.emit(
                operation,
                dst=found.tensor[column],
                first=TensorRef(a.tensor, a.offset + column * left.block),
                second=TensorRef(b.tensor, b.offset + column * right.block),
                mask=width,
                repeats=self.rows,
                strides=(1, left.block, right.block, blocks, left.repeat, right.repeat),
            )
        return found

    def _along_rows(self, value: Value) -> tuple[TensorRef, Strides]:
        """Where an operand begins, and its steps from block to block of a row and from row to row."""
        held = self.held(value) if isinstance(value, Constant) or value.axes == self.names else value
        if held.axes == self.names:
            return held.ref, Strides(1, self.row_blocks(held.dtype))
        self.writer.prime(held.tensor)
        return (self._block_of_each(held), Strides(0, 1)) if held.axes == self.names[:1] else (held.ref, Strides(1, 0))

    def unary(self, operation: str, operand: Value, dtype: DType) -> Held:
        """``operation(operand)`` lane by lane, as elements of ``dtype``."""
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
        """Copies ``count`` lanes of ``operand`` to the tile ``target``: a product with 1, which keeps every value."""
        one = 1.0 if target.dtype.is_float else 1
        count = self.count if count is None else count
        if isinstance(operand, Constant):
            number = written(operand.value, target.dtype)
            self.writer.emit("Duplicate", dst=target.ref, scalar=number, count=count)
            return
        self.writer.emit("Muls", dst=target.ref, src=self.ref(operand), scalar=one, count=count)

    def compare(self, mode: str, first: Value, second: Value) -> Held:
        """A bit for each lane: ``first`` compared with ``second`` by the comparison ``mode``.

        Raises UnsupportedError for a data type that the machine does not compare.
        """
        a = self.held(first)
        if a.dtype not in self.machine.operations["Compare"]:
            raise UnsupportedError("unsupported-dtype", f"no comparison of {a.dtype.name} on {self.machine.name}")
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
        """``chosen ? first : second``; what has 16 or 32 bits is moved as floats of that width.

        Raises UnsupportedError for a data type of another width.
        """
        bits = self.held(chosen)
        kind = {4: FLOAT32, 2: FLOAT16}.get(dtype.itemsize, dtype)
        if kind not in self.machine.operations[SELECT]:
            raise UnsupportedError("unsupported-dtype", f"no select of {dtype.name} on {self.machine.name}")
        a = self._as(self.held(first), kind)
        found = self.new(dtype)
        target = self._as(found, kind)
        if isinstance(second, Constant) and kind == dtype:
            mode, number = "VSEL_TENSOR_SCALAR_MODE", written(second.value, dtype)
            self.writer.emit(SELECT, dst=target, chosen=bits.ref, first=a, scalar=number, mode=mode, count=self.lanes)
        else:
            b = self._as(self.held(second), kind)
            mode = "VSEL_TENSOR_TENSOR_MODE"
            self.writer.emit(SELECT, dst=target, chosen=bits.ref, first=a, second=b, mode=mode, count=self.lanes)
        return found

    def _as(self, value: Held, dtype: DType) -> TensorRef:
        return value.ref if value.dtype == dtype else self.writer.alias(value.tensor, dtype)[value.offset]

    # words of 64 bits

    def parted(self, value: Held) -> tuple[Value, Value]:
        """The low and the high words of numbers of 64 bits, as int32."""
        if value not in self.parts:
            self.writer.prime(value.tensor)
            source, size = self.writer.alias(value.tensor, INT32), min(self.counting.lanes, self.capacity)
            low, high = self.new(INT32, "low"), self.new(INT32, "high")
            offsets = self.counting.offsets(2 * INT32.itemsize)
            for first in range(0, self.capacity, size):
                for word, target in enumerate((low, high)):
                    base, count = 4 * (2 * first + word), min(size, self.capacity - first)
                    place = target.tensor[first]
                    self.writer.emit(GATHER, dst=place, src=source, offsets=offsets, base=base, count=count)
            self.parts[value] = low, high
        return self.parts[value]

    def joined(self, low: Value, high: Value, dtype: DType) -> Held:
        """Numbers of 64 bits (``dtype``) of their words ``low`` and ``high``."""
        both = self.writer.tile("both", INT32, 2 * self.capacity, primed=True)
        for first, part in ((0, low), (self.capacity, high)):
            self.writer.emit("Adds", dst=both[first], src=self.ref(part), scalar=0, count=self.lanes)
        found = self.new(dtype, "wide")
        target, size = self.writer.alias(found.tensor, INT32), min(self.counting.lanes, 2 * self.capacity)
        offsets = self.counting.pairs(self.capacity)
        for first in range(0, 2 * self.capacity, size):
            base, count = 2 * first, min(size, 2 * self.capacity - first)
            self.writer.emit(GATHER, dst=target[first], src=both, offsets=offsets, base=base, count=count)
        self.parts[found] = low, high
        return found

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

    def seen_as(self, value: Held, dtype: DType) -> Held:
        """The same bits as another type of the same size."""
        return replace(value, tensor=self.writer.alias(value.tensor, dtype), dtype=dtype, narrow=None)

    def _converted(self, value: Held, to: DType) -> Held:
        """Casts, which saturate; integers of up to 32 bits are brought into the range before, so that they wrap around."""
        if value.dtype == UINT16 and to.itemsize > value.dtype.itemsize:
            value = self._without_sign(value)
        if value.dtype.is_integer and to.is_integer:
            value = self._wrapped(value, to)
            if value.dtype.itemsize == to.itemsize:
                return self.seen_as(value, to)
            if to in SIGNED:
                return self.seen_as(self._converted(value, SIGNED[to]), to)
        for step, mode in cast_path(self.machine, value.dtype, to):
            found = self.new(step)
            self.writer.emit("Cast", dst=found.ref, src=value.ref, mode=mode, count=self.lanes)
            value = found
        return value

    def _wrapped(self, value: Held, to: DType) -> Held:
        """The low bits with their sign: ``(x << n) >> n``."""
        excess = value.dtype.bits - to.bits
        if excess >= 0 and value.dtype in (UINT16, UINT32):
            value = self.seen_as(value, SIGNED[value.dtype])
        if excess <= 0 or value.dtype not in self.machine.operations["ShiftLeft"]:
            return value
        return self.scalar("ShiftRight", self.scalar("ShiftLeft", value, excess, value.dtype), excess, value.dtype)

    def _without_sign(self, value: Held) -> Held:
        """16 bits as int32: the copies of the sign are shifted out."""
        wide = self.seen_as(self._converted(self.seen_as(value, INT16), INT32), UINT32)
        return self.seen_as(self.scalar("ShiftRight", self.scalar("ShiftLeft", wide, 16, UINT32), 16, UINT32), INT32)
