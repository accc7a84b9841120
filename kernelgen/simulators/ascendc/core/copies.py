"""Copies between GM, the unified buffer and L1: DataCopy in blocks, DataCopyPad in bytes, DataCopy into fractals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kernelgen.ascendc.pipes import ROUTES
from kernelgen.ascendc.types import BLOCK, GM, L1, UB
from kernelgen.simulators.ascendc.state.byte_regions import Region, region, typed
from kernelgen.simulators.ascendc.state.instruction import Instruction, Operand, Work, blocks_of
from kernelgen.simulators.ascendc.state.memory import Buffer
from kernelgen.simulators.ascendc.time.instruction_cost import copy_cycles

MOST_BLOCKS = 4095
MOST_LENGTH = 65535
MOST_BYTES = 2097151


def plan_copy_blocks(instruction: Instruction) -> Work:
    """DataCopy of whole blocks: ``count`` elements in a row, or bursts with gaps, all in units of 32 bytes."""
    dst, src = _ends(instruction)
    for operand in (dst, src):
        instruction.aligned(operand, 1 if operand.place == GM else 0)
    if instruction.form.variant == "count":
        size = instruction.integer("count") * dst.itemsize
        whole = size > 0 and size % BLOCK == 0
        instruction.demand(whole, "odd-length", f"{size} bytes; DataCopy moves whole blocks of 32")
        bursts, length, src_gap, dst_gap = 1, size, 0, 0
    else:
        bursts, length, src_gap, dst_gap = instruction.fields("params", "count", "length", "src_gap", "dst_gap")
        instruction.within("the number of bursts", bursts, 1, MOST_BLOCKS)
        for name, value, low in (("burst length", length, 1), ("source gap", src_gap, 0), ("target gap", dst_gap, 0)):
            instruction.within(f"the {name}", value, low, MOST_LENGTH)
        length, src_gap, dst_gap = length * BLOCK, src_gap * BLOCK, dst_gap * BLOCK
    read = region(src.start, ((bursts, length + src_gap),), length)
    written = region(dst.start, ((bursts, length + dst_gap),), length)
    return _copy(instruction, dst, src, written, read, bursts * length)


def plan_pad_in(instruction: Instruction) -> Work:
    """DataCopyPad from GM: blocks of bytes, each padded left and right to whole blocks of the unified buffer.

    Where the padding is off, the manual says that a block's rest repeats its first element.
    """
    dst, src = _pad_ends(instruction)
    instruction.demand(dst.place == UB, "wrong-memory", f"padding goes to the unified buffer, not to {dst.place}")
    instruction.aligned(dst)
    bursts, length, src_gap, dst_gap = _pad_fields(instruction)
    padded, left, right = instruction.fields("padding", "padded", "left", "right")
    for name, value in (("left", left), ("right", right)):
        instruction.within(f"the padding {name}", value, 0, BLOCK // dst.itemsize)
    instruction.demand(bool(padded) or left == right == 0, "bad-parameter", "padding that is switched off has a size")
    lead, trail = left * dst.itemsize, right * dst.itemsize
    step = blocks_of(lead + length + trail) * BLOCK
    instruction.demand(
        not padded or lead + length + trail == step,
        "bad-parameter",
        f"{lead} + {length} + {trail} bytes are no whole blocks",
    )
    read = region(src.start, ((bursts, length + src_gap),), length)
    written = region(dst.start, ((bursts, step + dst_gap * BLOCK),), step)
    fill = np.asarray(instruction.struct("padding")["value"]).astype(dst.dtype.numpy).tobytes()

    def run() -> None:
        rows = _rows(src.memory.data, src.start, bursts, length + src_gap, length)
        target = _rows(dst.memory.data, dst.start, bursts, step + dst_gap * BLOCK, step)
        target[:, lead : lead + length] = rows
        if padded:
            target[:, :lead] = np.frombuffer(fill * left, np.uint8)
            target[:, lead + length :] = np.frombuffer(fill * right, np.uint8)
        else:
            rest = step - length
            first = np.tile(rows[:, : dst.itemsize], (1, -(-rest // dst.itemsize)))
            target[:, length:] = first[:, :rest]

    touches = (instruction.touch(src, read), instruction.touch(dst, written, write=True))
    size = bursts * blocks_of(length) * BLOCK
    return Work(touches, run, copy_cycles(instruction.machine, size, instruction.bandwidth), bursts * length)


def plan_pad_out(instruction: Instruction) -> Work:
    """DataCopyPad to GM: the bytes of each block; the rest of the unified buffer's last block is left out."""
    dst, src = _pad_ends(instruction)
    instruction.demand(src.place == UB and dst.place == GM, "wrong-memory", "without padding it copies from UB to GM")
    instruction.aligned(src)
    bursts, length, src_gap, dst_gap = _pad_fields(instruction)
    read = region(src.start, ((bursts, blocks_of(length) * BLOCK + src_gap * BLOCK),), length)
    written = region(dst.start, ((bursts, length + dst_gap),), length)
    return _copy(instruction, dst, src, written, read, bursts * blocks_of(length) * BLOCK)


def plan_nd_to_nz(instruction: Instruction) -> Work:
    """A row-major matrix in GM becomes fractals in L1: columns in groups of one block (C0), each group all its rows.

    Several cores read the same parts of a matrix: the copy takes L2's time, and memory's share counts each byte once.
    Element (r, c) goes to ``(c / C0) * dst_column_stride * C0 + r * dst_row_stride * C0 + c % C0``; the last group is
    filled up with zeros.
    """
    dst, src = _ends(instruction)
    instruction.demand(src.place == GM and dst.place == L1, "wrong-memory", "fractals are made from GM to L1")
    instruction.aligned(dst)
    names = ("matrices", "rows", "columns", "src_row_stride", "dst_column_stride", "dst_row_stride")
    matrices, rows, columns, src_row, dst_column, dst_row = instruction.fields("params", *names)
    instruction.demand(matrices == 1, "not-modelled", f"{matrices} matrices in one copy; one is")
    instruction.within("the rows", rows, 1, 16384)
    instruction.within("the columns", columns, 1, 65535)
    instruction.within("the row stride of the source", src_row, columns, 65535)
    instruction.within("the row stride of the target", dst_row, 1, 16384)
    instruction.within("the column stride of the target", dst_column, rows * dst_row, 16384)
    itemsize = dst.itemsize
    lane = BLOCK // itemsize
    groups = -(-columns // lane)
    read = region(src.start, ((rows, src_row * itemsize),), columns * itemsize)
    steps = ((groups, dst_column * BLOCK), (rows, dst_row * BLOCK))

    def run() -> None:
        matrix = np.zeros((rows, groups * lane), dst.dtype.numpy)
        matrix[:, :columns] = typed(src.memory.data, src.dtype.numpy, src.start, ((rows, src_row * itemsize),), columns)
        target = typed(dst.memory.data, dst.dtype.numpy, dst.start, steps, lane)
        target[...] = matrix.reshape(rows, groups, lane).transpose(1, 0, 2)
        if isinstance(src.memory, Buffer):
            read.view(src.memory.fetched)[...] = True

    touches = (instruction.touch(src, read), instruction.touch(dst, region(dst.start, steps, BLOCK), write=True))
    rate = instruction.machine.rates.matrix_copy
    return Work(touches, run, copy_cycles(instruction.machine, rows * columns * itemsize, rate))


def _ends(instruction: Instruction) -> tuple[Operand, Operand]:
    """Target and source, of one type, between which a pipe copies."""
    dst, src = instruction.operand("dst"), instruction.operand("src")
    same = dst.dtype is src.dtype
    instruction.demand(same, "bad-dtype", f"{src.name} is {src.dtype.name}, {dst.name} is {dst.dtype.name}")
    instruction.takes(instruction.call.operation, dst.dtype)
    routed = (src.place, dst.place) in ROUTES
    instruction.demand(routed, "wrong-memory", f"no pipe copies from {src.place} to {dst.place}")
    return dst, src


def _pad_ends(instruction: Instruction) -> tuple[Operand, Operand]:
    machine = instruction.machine
    instruction.demand(machine.has_copy_pad, "not-modelled", f"{machine.name} has no DataCopyPad")
    return _ends(instruction)


def _pad_fields(instruction: Instruction) -> Sequence[int]:
    fields = instruction.fields("params", "count", "length", "src_gap", "dst_gap")
    instruction.within("the number of blocks", fields[0], 1, MOST_BLOCKS)
    instruction.within("the block length", fields[1], 1, MOST_BYTES)
    for gap in fields[2:]:
        instruction.within("the gap", gap, 0, (1 << 32) - 1)
    return fields


def _copy(instruction: Instruction, dst: Operand, src: Operand, written: Region, read: Region, size: int) -> Work:
    """Bytes from one region to another of the same shape."""
    touches = (instruction.touch(src, read), instruction.touch(dst, written, write=True))

    def run() -> None:
        written.view(dst.memory.data)[...] = read.view(src.memory.data).reshape(written.view(dst.memory.data).shape)
        if dst.place == L1 and isinstance(src.memory, Buffer):
            read.view(src.memory.fetched)[...] = True

    outside = GM in (dst.place, src.place)
    bandwidth = instruction.bandwidth if outside else instruction.machine.rates.local_copy
    if not outside:
        apart = dst.memory is not src.memory or written.stop <= read.start or read.stop <= written.start
        instruction.demand(apart, "overlap", f"{src.name} and {dst.name} overlap")
        return Work(touches, run, instruction.machine.rates.vector_start + size / bandwidth)
    if dst.place == L1 and src.place == GM:
        return Work(touches, run, copy_cycles(instruction.machine, size, instruction.machine.rates.matrix_copy))
    return Work(touches, run, copy_cycles(instruction.machine, size, bandwidth), size)


def _rows(data: np.ndarray, start: int, count: int, step: int, length: int) -> np.ndarray:
    return typed(data, np.dtype(np.uint8), start, ((count, step),), length)


PLANS: Mapping[str, Callable[[Instruction], Work]] = {
    "copy_blocks": plan_copy_blocks,
    "pad_in": plan_pad_in,
    "pad_out": plan_pad_out,
    "nd_to_nz": plan_nd_to_nz,
}
"""Group of a form -> how its calls are planned."""
