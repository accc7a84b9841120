"""Operators about places along axes: counting them, running sums, elements looked up one by one, cuts at places told late."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphkernel import ops
from graphkernel.errors import TypeRuleError
from graphkernel.frontends.onnx.rules.base import Declined, OnnxCall, Operand, Results, onnx_op, shape_of
from graphkernel.ops.library.places import PLACES, is_provable
from graphkernel.ops.tensor.apply import apply
from kernelgen.system.limits import LIMITS
from kernelgen.tensor.operators.scan import CUM_SUM
from kernelgen.tensor.types import Category, Dim, dtype, product


@onnx_op("Range")
def value_range(call: OnnxCall) -> Results:
    """Known when the bounds are; of integers also where shapes say them."""
    start, limit, delta = (call.array(position) for position in range(3))
    if start is not None and limit is not None and delta is not None:
        return _counted(start, limit, delta)
    bounds = [dim for position in range(3) for dim in call.dims(position) or ()]
    if len(bounds) < 3:
        return Declined("the bounds are computed at run time")
    first, end, step = bounds
    if not isinstance(step, int) or step == 0:
        return Declined("the step is no known number")
    room = end - first if step > 0 else first - end
    count = call.derive.greatest(call.derive.ceil_div(room, abs(step)), 0)
    if not call.derive.is_nonnegative(count - 1):
        return Declined("there may be no numbers")
    return ops.cast(from_position(call, positions(call, count), first, step), dtype(call.operands[0].dtype))


def _counted(start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> Results:
    first, end, step = start.item(), limit.item(), delta.item()
    if step == 0 or not np.isfinite([first, end, step]).all():
        raise ValueError(f"a range from {first} to {end} in steps of {step} has no end")
    if (end - first) / step > LIMITS.constant_elements:
        return Declined(f"{first} to {end} in steps of {step} is too much for a constant")
    return np.arange(first, end, step, dtype=start.dtype)


def positions(call: OnnxCall, count: Dim) -> Operand:
    """The numbers 0, 1, ... of ``count`` elements, where the ``call`` records."""
    if isinstance(count, int):
        return np.arange(count)
    one = call.constant(np.ones(1, np.int64))
    return ops.cum_sum(ops.broadcast_to(one, (count,)), axis=0, exclusive=True)


def from_position(call: OnnxCall, numbers: Operand, begin: Dim, step: int) -> Operand:
    """``begin + step * numbers``, where the ``call`` records."""
    scaled = numbers if step == 1 else ops.mul(numbers, step)
    return scaled if begin == 0 else ops.add(scaled, call.extent(begin))


def cut_by_places(call: OnnxCall, cuts: Sequence[tuple[Dim, int, Dim]]) -> Results:
    """The operand of a ``call``, of which ``cuts`` leave (begin, step, extent) of each axis; places are looked at late."""
    x = call.tensor(0)
    for axis, (begin, step, extent) in enumerate(cuts):
        if (begin, step, extent) != (0, 1, shape_of(x)[axis]):
            x = ops.gather(x, from_position(call, positions(call, extent), begin, step), axis=axis)
    return x


def run_of(call: OnnxCall, x: Operand, axis: int, first: Dim, step: int, count: int) -> Operand:
    """The elements of ``x`` of a ``call`` along an ``axis`` at ``first``, ``first + step``, ...: ``count`` of them, not 0.

    Where only a call's extents tell whether they are there, places are looked at late.
    """
    have = shape_of(x)
    begin: list[Dim] = [0] * len(have)
    end, strides = list(have), [1] * len(have)
    begin[axis], end[axis], strides[axis] = first, first + (step * count or 1), step or 1
    try:
        found = ops.strided_slice(x, begin, end, strides)
    except TypeRuleError:
        places = from_position(call, np.arange(count if step else 1), first, step or 1)
        found = ops.gather(x, places, axis=axis)
    return found if step else ops.broadcast_to(found, (*have[:axis], count, *have[axis + 1 :]))


@onnx_op(CUM_SUM.name)
def running_sum(call: OnnxCall) -> Results:
    """Along an axis that is known at import."""
    axis = call.ints(1)
    if axis is None or dtype(call.operands[0].dtype).category is Category.BOOL:
        return Declined("the axis is computed at run time")
    exclusive, reverse = (bool(call.attribute(name, 0)) for name in ("exclusive", "reverse"))
    return ops.cum_sum(call.operands[0], axis=axis[0], exclusive=exclusive, reverse=reverse)


@onnx_op("GatherElements")
def gather_elements(call: OnnxCall) -> Results:
    """Each index stands for the element at its own place, but along ``axis``: a gather from all elements in a row."""
    x, indices = call.tensor(0), call.tensor(1)
    have, wanted = shape_of(x), shape_of(indices)
    axis = call.attribute("axis", 0) % len(have)
    if not all(call.derive.is_nonnegative(dim - 1) for dim in (*have, *wanted)):
        return Declined("there may be nothing to look up")
    places: Operand = ops.cast(indices, dtype("int64"))
    places = apply(PLACES, places, extent=have[axis], reader=call.op_type)
    terms = [
        (places if along == axis else _along(call, along, count, len(have)), along)
        for along, count in enumerate(wanted)
        if along == axis or count != 1
    ]
    return ops.gather(ops.reshape(x, (product(have),)), _numbered(call, terms, have), axis=0)


@onnx_op("GatherND")
def gather_slices(call: OnnxCall) -> Results:
    """Each row of indices stands for the slice at its places: a gather from all slices in a row."""
    x, indices = call.tensor(0), call.tensor(1)
    have, batches = shape_of(x), call.attribute("batch_dims", 0)
    *wanted, depth = shape_of(indices)
    if not isinstance(depth, int) or not all(call.derive.is_nonnegative(dim - 1) for dim in (*have, *wanted)):
        return Declined("there may be nothing to look up")
    last = batches + depth
    slices = product(have[:last])
    if not is_provable(slices):
        return Declined(f"{slices} slices: what a kernel reads is not shown to be among them")
    parts = ops.split(ops.cast(indices, dtype("int64")), (1,) * depth, axis=-1)
    terms = [(_along(call, axis, have[axis], len(wanted)), axis) for axis in range(batches) if have[axis] != 1]
    for axis, part in enumerate(parts, batches):
        of = ops.squeeze(part, (len(wanted),))
        terms.append((apply(PLACES, of, extent=have[axis], reader=call.op_type), axis))
    number = _numbered(call, terms, have[:last])
    return ops.gather(ops.reshape(x, (slices, *have[last:])), number, axis=0)


def _numbered(call: OnnxCall, terms: Sequence[tuple[Operand, int]], have: Sequence[Dim]) -> Operand:
    """The number of each element in a row of all, from its places along some axes of these extents; others are at 0."""
    number: Operand | None = None
    for part, axis in terms:
        behind = product(have[axis + 1 :])
        moved = part if behind == 1 else ops.mul(part, call.extent(behind))
        number = moved if number is None else ops.add(number, moved)
    return number


def _along(call: OnnxCall, axis: int, count: Dim, rank: int) -> Operand:
    """The positions along an axis, as a tensor that broadcasts."""
    shape = tuple(count if k == axis else 1 for k in range(rank))
    return ops.reshape(positions(call, count), shape)
