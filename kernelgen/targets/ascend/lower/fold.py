"""All lanes of a tile become one: halves are combined until a block is left, which the vector or the scalar unit folds.

    1024 lanes of float32:  Add(t, t, t[512], 512); Add(t, t, t[256], 256); ...; WholeReduceSum(one, t, 64)

The number of lanes is a power of two times the quantum; what is left over by an odd number of quanta joins at the end.
"""

from __future__ import annotations

from kernelgen.dtypes import DType
from kernelgen.targets.ascend.expressions import Binary, Choice, Expression, GetValue, Number
from kernelgen.targets.ascend.lower.values import ONE, Held
from kernelgen.targets.ascend.lower.writer import Writer
from kernelgen.targets.ascend.machine import Machine
from kernelgen.targets.ascend.types import BLOCK, REPEAT

PAIRS = {"add": "Add", "mul": "Mul", "maximum": "Max", "minimum": "Min"}
WHOLE = {"add": "WholeReduceSum", "maximum": "WholeReduceMax", "minimum": "WholeReduceMin"}


def fold(writer: Writer, machine: Machine, function: str, value: Held, lanes: int) -> Held:
    """One lane with the combination of ``lanes`` lanes, which are overwritten."""
    dtype = value.dtype
    per_repeat = REPEAT // dtype.itemsize
    vector = function in WHOLE and dtype in machine.operations[WHOLE[function]]
    left = lanes
    while left > (per_repeat if vector else BLOCK // dtype.itemsize):
        half = _half(left, BLOCK // dtype.itemsize)
        second = value.tensor[half]
        writer.emit(PAIRS[function], dst=value.ref, first=value.ref, second=second, count=left - half)
        left = half
    one = writer.tile("one", dtype, BLOCK // dtype.itemsize)
    if vector:
        if function == "add":
            writer.emit(
                WHOLE[function], dst=one, src=value.ref, mask=left, repeats=1, dst_repeat=1, src_block=1, src_repeat=8
            )
        else:
            writer.emit(
                WHOLE[function],
                dst=one,
                src=value.ref,
                mask=left,
                repeats=1,
                dst_repeat=1,
                src_block=1,
                src_repeat=8,
                order="ORDER_ONLY_VALUE",
            )
    else:
        writer.set_value(one, 0, _scalars(writer, function, value, left, dtype))
    return Held(one, dtype, ONE)


def _half(left: int, block: int) -> int:
    """The greater half in whole blocks."""
    return -(-left // (2 * block)) * block


def _scalars(writer: Writer, function: str, value: Held, left: int, dtype: DType) -> Expression:
    """The scalar unit combines the last block."""
    total: Expression = writer.let("lane", dtype, GetValue(value.tensor.name, Number(0)))
    for lane in range(1, left):
        other = writer.let("lane", dtype, GetValue(value.tensor.name, Number(lane)))
        total = writer.let("lane", dtype, _combined(function, total, other))
    return total


def _combined(function: str, left: Expression, right: Expression) -> Expression:
    match function:
        case "add":
            return left + right
        case "mul":
            return Binary("*", left, right)
        case "maximum":
            return Choice(left < right, right, left)
        case _:
            return Choice(left < right, left, right)
