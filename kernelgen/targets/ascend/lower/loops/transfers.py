"""Loads and stores of a turn: elements between GM or a local and tiles.

step along the last axis 1, one axis        DataCopyPad of one burst
1, and a step of whole rows along the first  DataCopyPad of a burst for each row
another step, one axis                       a burst of one element for each, picked by Gather or put by Brcb
0 along an axis                              the element or row once, spread when an operand must be as large

x[c0 + r, c1]        ->   DataCopyPad(in, x_gm[c0 * 50], {rows, 200 bytes, gap, pads})
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from kernelgen.ascendc.builder import Tensor
from kernelgen.ascendc.expressions import BLOCK_INDEX, Expression, GetValue, Name, ceil_div
from kernelgen.ascendc.instructions import GATHER, GlobalTensor
from kernelgen.ascendc.types import BLOCK
from kernelgen.errors import UnsupportedError
from kernelgen.nest.index import references, variables
from kernelgen.nest.nodes import Buffer, Index, IndexBinary, Num, Ref, Space, ValueIndex, Var
from kernelgen.targets.ascend.lower.functions.doubles import cast
from kernelgen.targets.ascend.lower.lanes.lanes import Lanes
from kernelgen.targets.ascend.lower.loops.lane_reductions import columns_of
from kernelgen.targets.ascend.lower.program.indices import divides, element_step, linear, to_expression
from kernelgen.targets.ascend.lower.program.names import Constant, Held, Value
from kernelgen.targets.ascend.lower.program.scope import ALIGNED, Context, Scope, Unaligned, local_size
from kernelgen.tensor.dtypes import BOOL, FLOAT16, INT32, UINT8

Places = tuple[Index, ...]
APART = "apart"


def steps_of(buffer: Buffer, index: Places, names: Sequence[str]) -> tuple[Index | None, ...]:
    """By how many elements an access of ``buffer`` at ``index`` moves along each loop of ``names``."""
    return tuple(element_step(index, buffer.shape, name) for name in names)


def axes_of(buffer: Buffer, index: Places, lanes: Lanes) -> tuple[str, ...]:
    """The axes of a turn, ``lanes``, that an access of ``buffer`` at ``index`` moves along; a local of the rows is
    another one for each row.
    """
    steps = steps_of(buffer, index, lanes.names)
    return tuple(name for name, step in zip(lanes.names, steps, strict=True) if step != Num(0))


def load(context: Context, buffer: Buffer, index: Places, lanes: Lanes, scope: Scope) -> Held:
    """A load as a value of its own: what is stored to a local later does not change it.

    What is the same for all turns of a loop is loaded before it.
    """
    local = context.locals.get(buffer.name)
    names = axes_of(buffer, index, lanes)
    names = tuple(name for name in lanes.names if name in names or (local is not None and name == local.row))
    narrow = lanes.along(names)
    shared = local is None or not local.row
    still = names != lanes.names and lanes.depth and shared and _is_there_before(buffer, index, lanes, scope)
    with context.writer.before(lanes.depth) if still else nullcontext():
        found = place(context, buffer, index, narrow, scope)
        if local is None or names != lanes.names:
            return found
        kept = lanes.new(buffer.dtype)
        lanes.move(found, kept, lanes.lanes)
        return kept


def _is_there_before(buffer: Buffer, index: Places, lanes: Lanes, scope: Scope) -> bool:
    """Whether an element is the same in all turns of the loop, and known before it."""
    used = frozenset(name for at in index for name in variables(at))
    decided = any(references(at) for at in index)
    return not (decided or used & (scope.moving | frozenset(lanes.names)) or buffer.name in scope.written)


def place(context: Context, buffer: Buffer, index: Places, lanes: Lanes, scope: Scope) -> Held:
    """The elements in a tile: a local's are where they are."""
    if buffer.name in context.locals:
        return _local(context, buffer, index, lanes, scope)
    tensor = context.tensors[buffer.name]
    offset = _position(context, buffer, index, scope)
    steps = steps_of(buffer, index, lanes.names)
    if len(steps) == 1 and steps[0] != Num(1):
        return _picked(context, tensor, offset, _expression(steps[0], scope), lanes)
    item = tensor.dtype.itemsize
    bursts, length, gap, pads = _bursts(lanes, steps, item, scope)
    partly = lanes.whole and not lanes.exact
    tile = context.writer.tile("in", tensor.dtype, lanes.capacity, primed=partly or pads > 0)
    context.writer.emit(
        "DataCopyPad",
        dst=tile,
        src=Tensor(tensor.name, tensor.dtype)[offset],
        params=(bursts, length, gap, pads, 0),
        padding=("false", 0, 0, 0),
    )
    kind = tensor.dtype if buffer.dtype == BOOL else buffer.dtype
    found = Held(tile, kind, lanes.names, level=lanes.level)
    return lanes.as_bits(lanes.cast(found, FLOAT16)) if buffer.dtype == BOOL else found


def store(context: Context, buffer: Buffer, index: Places, value: Value, lanes: Lanes, scope: Scope) -> None:
    """Elements go from a tile to where they belong."""
    if buffer.name in context.locals:
        lanes.move(value, _local(context, buffer, index, lanes, scope))
        return
    tensor = context.tensors[buffer.name]
    offset = _position(context, buffer, index, scope)
    steps = steps_of(buffer, index, lanes.names)
    held = lanes.held(value)
    held = held if held.bits or held.dtype == buffer.dtype else cast(lanes, held, buffer.dtype)
    if len(steps) == 1 and steps[0] not in (Num(0), Num(1)):
        _scattered(context, tensor, offset, _expression(steps[0], scope), held, lanes)
        return
    if held.bits:
        held = lanes.cast(lanes.from_bits(held, FLOAT16), UINT8)
    bursts, length, gap, pads = _bursts(lanes, steps, tensor.dtype.itemsize, scope)
    context.writer.emit(
        "DataCopyPad",
        dst=Tensor(tensor.name, tensor.dtype)[offset],
        src=held.ref,
        params=(bursts, length, pads, gap, 0),
    )


def _expression(step: Index | None, scope: Scope) -> Expression:
    if step is None:
        raise AssertionError("an access whose steps differ has no lanes")
    return to_expression(step, scope.variables, scope.ranges)


def _bursts(
    lanes: Lanes, steps: Sequence[Index | None], item: int, scope: Scope
) -> tuple[Expression | int, Expression | int, Expression | int, int]:
    """Bursts, bytes of each, bytes between two in GM, blocks between two in the tile."""
    if len(lanes.axes) < 2:
        return 1, lanes.count * item, 0, 0
    length = columns_of(lanes) * item
    gap = _expression(steps[0], scope) * item - length
    return lanes.rows, length, gap, lanes.pitch * item // BLOCK - -(-length // BLOCK)


def _position(context: Context, buffer: Buffer, index: Places, scope: Scope) -> Expression:
    """The element where a turn's access begins."""
    settled = tuple(_settled(context, at, scope) for at in index)
    offset = to_expression(linear(settled, buffer.shape), scope.variables, scope.ranges)
    return BLOCK_INDEX * local_size(buffer) + offset if buffer.space is Space.LOCAL else offset


def _settled(context: Context, index: Index, scope: Scope) -> Index:
    """Values that decide an index are read by the scalar unit, and have names from then on."""
    match index:
        case ValueIndex(Ref(name)):
            value = scope.bound[name]
            if isinstance(value, Constant):
                return Num(int(value.value))
            fresh = context.writer.let("pick", INT32, GetValue(value.tensor.name, value.offset))
            variable = fresh.name if isinstance(fresh, Name) else "pick"
            scope.variables[variable] = fresh
            return Var(variable)
        case ValueIndex():
            raise UnsupportedError("unsupported-op", "an index that is no binding")
        case IndexBinary(op, left, right):
            return IndexBinary(op, _settled(context, left, scope), _settled(context, right, scope))
        case _:
            return index


def _local(context: Context, buffer: Buffer, index: Places, lanes: Lanes, scope: Scope) -> Held:
    """Elements of a local in the unified buffer; its first must be a block's."""
    local = context.locals[buffer.name]
    if local.row:
        return Held(local.tensor, buffer.dtype, lanes.names, level=lanes.level)
    steps = steps_of(buffer, index, lanes.names)
    at = linear(index, buffer.shape)
    if any(step != Num(1) for step in steps[-1:]) or not divides(ALIGNED, at, scope.multiples):
        raise Unaligned(buffer.name)
    offset = to_expression(at, scope.variables, scope.ranges)
    return Held(local.tensor, buffer.dtype, lanes.names, offset, level=lanes.level)


def _picked(context: Context, tensor: GlobalTensor, offset: Expression, step: Expression, lanes: Lanes) -> Held:
    """Elements that are apart: a copy gives each a block of its own, Gather takes the first of every block."""
    writer, item = context.writer, tensor.dtype.itemsize
    blocks = writer.tile(APART, tensor.dtype, lanes.capacity * BLOCK // item, primed=not lanes.exact)
    writer.emit(
        "DataCopyPad",
        dst=blocks,
        src=Tensor(tensor.name, tensor.dtype)[offset],
        params=(lanes.count, item, (step - 1) * item, 0, 0),
        padding=("false", 0, 0, 0),
    )
    found = lanes.new(tensor.dtype, "picked")
    offsets = context.counting.offsets()
    writer.emit(GATHER, dst=found.ref, src=blocks, offsets=offsets, base=0, count=lanes.count)
    if lanes.whole and not lanes.exact:
        writer.prime(found.tensor)
    return found


def _scattered(
    context: Context, tensor: GlobalTensor, offset: Expression, step: Expression, value: Held, lanes: Lanes
) -> None:
    """Brcb gives each element a block of its own, a copy takes the first of every block."""
    writer, item = context.writer, tensor.dtype.itemsize
    blocks = writer.tile(APART, tensor.dtype, lanes.capacity * BLOCK // item)
    if not lanes.exact:
        writer.prime(value.tensor)
    writer.emit("Brcb", dst=blocks, src=value.ref, repeats=ceil_div(lanes.count, 8), strides=(1, 8))
    writer.emit(
        "DataCopyPad",
        dst=Tensor(tensor.name, tensor.dtype)[offset],
        src=blocks,
        params=(lanes.count, item, 0, (step - 1) * item, 0),
    )
