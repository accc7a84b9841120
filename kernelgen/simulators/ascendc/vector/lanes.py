"""Where a vector instruction's lanes lie: repeats of up to 256 bytes, blocks of 32 with strides, a mask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelgen.ascendc.types import BLOCK, REPEAT, UB
from kernelgen.simulators.ascendc.state.byte_regions import Region, masked_regions, region, typed
from kernelgen.simulators.ascendc.state.instruction import Instruction, Operand, Touch


@dataclass(frozen=True)
class Strides:
    """An operand's steps in blocks of 32 bytes, from block to block and from repeat to repeat."""

    block: int = 1
    repeat: int = 8


@dataclass(frozen=True)
class Lanes:
    """``repeats`` times ``len(mask)`` lanes; in the count form one repeat with all lanes in a row."""

    repeats: int
    mask: np.ndarray
    in_row: bool

    @property
    def full(self) -> bool:
        """Whether the mask switches every lane on."""
        return self.in_row or bool(self.mask.all())

    def machine_repeats(self, itemsize: int) -> int:
        """Repeats that the vector unit makes of it."""
        return -(-len(self.mask) * itemsize // REPEAT) if self.in_row else self.repeats

    def regions(self, operand: Operand, strides: Strides) -> Iterator[Region]:
        """The bytes of an operand that take part."""
        if self.in_row:
            yield region(operand.start, (), len(self.mask) * operand.itemsize)
        elif self.full:
            steps = ((self.repeats, strides.repeat * BLOCK), (self._blocks(operand), strides.block * BLOCK))
            yield region(operand.start, steps, BLOCK)
        else:
            repeats = (self.repeats, strides.repeat * BLOCK)
            yield from masked_regions(operand.start, repeats, strides.block * BLOCK, operand.itemsize, self.mask)

    def view(self, operand: Operand, strides: Strides) -> np.ndarray:
        """All lanes, those that the mask switches off too: (lanes) in a row, else (repeats, blocks, lanes of a block)."""
        if self.in_row:
            return typed(operand.memory.data, operand.dtype.numpy, operand.start, (), len(self.mask))
        steps = ((self.repeats, strides.repeat * BLOCK), (self._blocks(operand), strides.block * BLOCK))
        return typed(operand.memory.data, operand.dtype.numpy, operand.start, steps, BLOCK // operand.itemsize)

    def read(self, operand: Operand, strides: Strides) -> np.ndarray:
        """(repeats, lanes), or (lanes) in a row; what the mask switches off is there but means nothing."""
        return self.values(self.view(operand, strides))

    def values(self, view: np.ndarray) -> np.ndarray:
        """(repeats, lanes), or (lanes) in a row, of what :meth:`view` gave."""
        return view if self.in_row else view.reshape(self.repeats, len(self.mask))

    def write(self, operand: Operand, strides: Strides, values: np.ndarray) -> None:
        """Writes the lanes that the mask switches on."""
        self.put(self.view(operand, strides), values)

    def put(self, view: np.ndarray, values: np.ndarray) -> None:
        """The same into what :meth:`view` gave."""
        if self.in_row:
            view[...] = values
        elif self.full:
            view[...] = values.reshape(view.shape)
        else:
            chosen = self.mask.reshape(view.shape[1:])
            view[:, chosen] = values.reshape(view.shape)[:, chosen]

    def block_starts(self, operand: Operand, strides: Strides) -> np.ndarray:
        """(repeats, blocks): the blocks that take part, by number."""
        first = operand.start // BLOCK
        if self.in_row:
            return first + np.arange(-(-len(self.mask) * operand.itemsize // BLOCK))[None, :]
        used = np.flatnonzero(self.mask.reshape(self._blocks(operand), -1).any(axis=1))
        return first + np.arange(self.repeats)[:, None] * strides.repeat + used[None, :] * strides.block

    def read_blocks(self, operand: Operand, strides: Strides) -> np.ndarray:
        """(repeats, blocks) as the vector unit reads them, eight blocks a repeat where all lanes are in a row."""
        blocks = self.block_starts(operand, strides)
        whole = blocks.shape[1] // 8 * 8
        return blocks[:, :whole].reshape(-1, 8) if self.in_row and whole else blocks

    def _blocks(self, operand: Operand) -> int:
        return max(1, len(self.mask) * operand.itemsize // BLOCK)


def lanes_of(instruction: Instruction, operands: Sequence[Operand]) -> Lanes:
    """The lanes of a call in its count or repeat form; the widest operand says how many a repeat has."""
    if instruction.form.variant == "count":
        count = instruction.integer("count")
        instruction.demand(count > 0, "bad-parameter", f"count is {count}")
        return Lanes(1, np.ones(count, np.bool_), in_row=True)
    repeats = instruction.within("the number of repeats", instruction.integer("repeats"), 1, 255)
    return Lanes(repeats, mask_of(instruction, REPEAT // max(one.itemsize for one in operands)), in_row=False)


def mask_of(instruction: Instruction, lanes: int) -> np.ndarray:
    """The mask as one boolean a lane: the first n, or bits."""
    given = instruction.given["mask"]
    if isinstance(given, np.ndarray):
        instruction.demand(
            bool(given[:lanes].any()) and not given[lanes:].any(), "bad-mask", f"bits for {lanes} lanes are needed"
        )
        return given[:lanes]
    count = instruction.integer("mask")
    instruction.demand(1 <= count <= lanes, "bad-mask", f"mask is {count}, allowed 1 to {lanes}")
    return np.arange(lanes) < count


def strides_of(instruction: Instruction, names: Sequence[str]) -> Mapping[str, Strides]:
    """The strides of each operand of a struct; the count form has none."""
    if instruction.form.variant == "count":
        return {name: Strides() for name in names}
    found = dict[str, Strides]()
    for name in names:
        block, repeat = instruction.fields("strides", f"{name}_block", f"{name}_repeat")
        instruction.within(f"the block stride of {name}", block, int(name == "dst"), 255)
        instruction.within(f"the repeat stride of {name}", repeat, 0, 255)
        found[name] = Strides(block, repeat)
    return found


@dataclass(frozen=True)
class Lane:
    """An operand with its strides."""

    operand: Operand
    strides: Strides


def touches(instruction: Instruction, lanes: Lanes, dst: Lane, sources: Sequence[Lane]) -> tuple[Touch, ...]:
    """What the instruction reads and writes; checks memories, alignment, bounds and overlap on the way."""
    for lane in (dst, *sources):
        instruction.lies_in(lane.operand, UB)
        instruction.aligned(lane.operand)
    found = [
        instruction.touch(lane.operand, where, lane is dst)
        for lane in (*sources, dst)
        for where in lanes.regions(lane.operand, lane.strides)
    ]
    written = lanes.block_starts(dst.operand, dst.strides)
    if lanes.repeats > 1:
        alone = len(np.unique(written)) == written.size
        instruction.demand(alone, "overlap", f"repeats of {dst.operand.name} overlap each other")
    for source in sources:
        _check_overlap(instruction, lanes, written, dst.operand, source)
    return tuple(found)


def _check_overlap(instruction: Instruction, lanes: Lanes, written: np.ndarray, dst: Operand, source: Lane) -> None:
    """Source and destination must coincide lane by lane, or have no block in common."""
    read = lanes.block_starts(source.operand, source.strides)
    if read.max() < written.min() or written.max() < read.min():
        return
    same = read.shape == written.shape and bool((read == written).all()) and source.operand.start == dst.start
    apart = same or not np.isin(read, written).any()
    instruction.demand(apart, "overlap", f"{source.operand.name} and {dst.name} overlap and are not the same")
