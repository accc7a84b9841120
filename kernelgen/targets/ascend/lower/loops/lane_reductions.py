"""Many lanes become few: all of a tile one, each row one, or all rows one.

    1024 lanes of float32:   Add(t, t, t[512], 512); Add(t, t, t[256], 256); ...; WholeReduceSum(one, t, 64)
    rows of 100 of float32:  Copy(part, t, 64, rows); Add(part, part, t[64], 36, rows); WholeReduceSum(ones, part, 64, rows)
    100 rows:                Add(t, t, t[50 * pitch], 50 * pitch); Add(t, t, t[25 * pitch], 25 * pitch); ...

Instructions over rows take one repeat for each row, with a mask for its columns, so that pads do not matter. What no
instruction reduces (products, int32) is halved to a block: the scalar unit combines the lanes of one, Gather makes tiles
of the first, second, ... lane of all rows.
"""

from __future__ import annotations

from functools import partial

from kernelgen.ascendc.builder import Tensor
from kernelgen.ascendc.expressions import Binary, Choice, Convert, Expression, GetValue, Number
from kernelgen.ascendc.instructions import GATHER, TensorRef
from kernelgen.ascendc.types import BLOCK, REPEAT
from kernelgen.machines.ascend.description import Machine
from kernelgen.targets.ascend.lower.lanes.lanes import Lanes
from kernelgen.targets.ascend.lower.program.names import Held
from kernelgen.targets.ascend.lower.program.writer import Writer
from kernelgen.tensor.dtypes import INT32, UINT32, DType

PAIRS = {
    "add": "Add", "mul": "Mul", "maximum": "Max", "minimum": "Min", "logical_or": "Max", "logical_and": "Min",
}  # fmt: skip
"""Function -> the instruction that combines two; truth values are 0 and 1."""
SIGNS = {"add": "+", "mul": "*"}
MAX, MIN = "WholeReduceMax", "WholeReduceMin"
WHOLE = {"add": "WholeReduceSum", "maximum": MAX, "minimum": MIN, "logical_or": MAX, "logical_and": MIN}


def fold(single: Lanes, function: str, value: Held, lanes: int) -> Held:
    """One lane with the combination of ``lanes`` lanes, which are overwritten, for a turn of no axes.

    The number of lanes is a multiple of a block; what is left over by an odd number of blocks joins at the end. Where
    the turn computes whole repeats, there is room for one.
    """
    writer, dtype = single.writer, value.dtype
    vector = _is_vector(single.machine, function, dtype)
    left = lanes
    while left > (REPEAT if vector else BLOCK) // dtype.itemsize:
        half = _half(left, BLOCK // dtype.itemsize)
        second = value.tensor[half]
        writer.emit(PAIRS[function], dst=value.ref, first=value.ref, second=second, count=left - half)
        left = half
    one = writer.tile("one", dtype, single.capacity if single.whole else BLOCK // dtype.itemsize)
    if vector:
        _whole(writer, function, one, value.ref, left, Number(1), 8)
    else:
        writer.set_value(one, 0, _scalars(writer, function, value, left, dtype))
    return Held(one, dtype, (), level=len(writer.blocks) - 1)


def fold_rows(lanes: Lanes, function: str, value: Held, offsets: Tensor | None = None) -> Held:
    """For each row the combination of its columns. ``offsets`` are the rows' in bytes, where :func:`gathers` says so."""
    writer, dtype = lanes.writer, value.dtype
    width, rows = columns_of(lanes), lanes.rows
    source, step = value.ref, lanes.row_blocks(dtype)
    if gathers(lanes.machine, function, dtype):
        return _gathered(lanes, function, _narrow(lanes, function, value, BLOCK), offsets)
    if width > REPEAT // dtype.itemsize:
        source, width, step = _narrow(lanes, function, value, REPEAT)[0], REPEAT // dtype.itemsize, REPEAT // BLOCK
    found = lanes.along(lanes.names[:1]).new(dtype, "ones")
    if lanes.whole:
        writer.prime(found.tensor)
    _whole(writer, function, found.tensor, source, width, rows, step)
    return found


def fold_columns(lanes: Lanes, function: str, value: Held) -> Held:
    """For each column the combination of all rows that there may be, which are overwritten."""
    left = lanes.axes[0].capacity
    while left > 1:
        half = -(-left // 2)
        second, count = value.tensor[half * lanes.pitch], (left - half) * lanes.pitch
        lanes.writer.emit(PAIRS[function], dst=value.ref, first=value.ref, second=second, count=count)
        left = half
    return Held(value.tensor, value.dtype, lanes.names[1:], level=lanes.level)


def gathers(machine: Machine, function: str, dtype: DType) -> bool:
    """Whether ``machine`` folds rows of ``dtype`` by ``function`` with Gather, which needs offsets of rows of one
    repeat.
    """
    return not _is_vector(machine, function, dtype)


def columns_of(lanes: Lanes) -> int:
    """The elements of a row. Raises AssertionError for a row of unknown length."""
    count = lanes.axes[1].count
    if not isinstance(count, Number):
        raise AssertionError("rows of unknown length have no tile of their own")
    return int(count.value)


def _is_vector(machine: Machine, function: str, dtype: DType) -> bool:
    return function in WHOLE and dtype in machine.operations[WHOLE[function]]


def _whole(
    writer: Writer, function: str, target: Tensor, source: TensorRef, mask: int, repeats: Expression, step: int
) -> None:
    """One result a repeat, one behind the other."""
    emit = partial(writer.emit, WHOLE[function], dst=target, src=source, mask=mask, repeats=repeats)
    if function == "add":
        emit(dst_repeat=1, src_block=1, src_repeat=step)
    else:
        emit(dst_repeat=1, src_block=1, src_repeat=step, order="ORDER_ONLY_VALUE")


def _narrow(lanes: Lanes, function: str, value: Held, size: int) -> Tensor:
    """A copy whose rows have one repeat, combined until what counts lies in the first ``size`` bytes."""
    writer, dtype = lanes.writer, value.dtype
    step, each = lanes.row_blocks(dtype), REPEAT // BLOCK
    part = writer.tile("part", dtype, lanes.axes[0].capacity * REPEAT // dtype.itemsize)
    strips = tuple(lanes.strips(dtype, columns_of(lanes)))
    left = strips[0][1]
    source, own = value.ref, step
    if len(strips) == 1 or strips[1][1] < left:
        writer.emit("Copy", dst=part, src=value.ref, mask=left, repeats=lanes.rows, strides=(1, 1, each, step))
        source, own = part[0], each
    for first, width in strips[1:]:
        second = TensorRef(value.tensor.name, value.offset + first)
        writer.emit(
            PAIRS[function], dst=part, first=source, second=second, mask=width, repeats=lanes.rows,
            strides=(1, 1, 1, each, own, step),
        )  # fmt: skip
        source, own = part[0], each
    while left > size // dtype.itemsize:
        half = _half(left, BLOCK // dtype.itemsize)
        writer.emit(
            PAIRS[function], dst=part, first=part, second=part[half], mask=left - half, repeats=lanes.rows,
            strides=(1, 1, 1, each, each, each),
        )  # fmt: skip
        left = half
    return part


def _gathered(lanes: Lanes, function: str, part: Tensor, offsets: Tensor | None) -> Held:
    """The lanes of each row's block, one tile for each, combined. Gather may read all of its source."""
    if offsets is None:
        raise AssertionError("rows are gathered by their offsets")
    writer, single = lanes.writer, lanes.along(lanes.names[:1])
    dtype = part.dtype
    writer.prime(part)
    found = single.new(dtype, "ones")
    if lanes.whole:
        writer.prime(found.tensor)
    for lane in range(min(columns_of(lanes), BLOCK // dtype.itemsize)):
        target = found if lane == 0 else single.new(dtype, "lane")
        base = lane * dtype.itemsize
        writer.emit(GATHER, dst=target.ref, src=part, offsets=offsets, base=base, count=single.count)
        if lane:
            writer.emit(PAIRS[function], dst=found.ref, first=found.ref, second=target.ref, count=single.count)
    return found


def _half(left: int, block: int) -> int:
    """The greater half in whole blocks."""
    return -(-left // (2 * block)) * block


def _scalars(writer: Writer, function: str, value: Held, left: int, dtype: DType) -> Expression:
    """The scalar unit combines the last block."""
    total: Expression = writer.let("lane", dtype, GetValue(value.tensor.name, Number(0)))
    for lane in range(1, left):
        other = writer.let("lane", dtype, GetValue(value.tensor.name, Number(lane)))
        total = writer.let("lane", dtype, _combined(function, total, other, dtype))
    return total


def _combined(function: str, left: Expression, right: Expression, dtype: DType) -> Expression:
    """Sums and products of int32 wrap around on every target: unsigned numbers do in C++, signed ones may not overflow."""
    match function:
        case "add" | "mul" if dtype is INT32:
            return Convert(INT32, Binary(SIGNS[function], Convert(UINT32, left), Convert(UINT32, right)))
        case "add" | "mul":
            return Binary(SIGNS[function], left, right)
        case "maximum":
            return Choice(left < right, right, left)
        case _:
            return Choice(left < right, left, right)
