"""A frame: everything that a call needs for one set of input shapes, so that calling is only a loop over actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphkernel.errors import InputError
from graphkernel.ir.bind import concrete_attrs, concrete_shape
from graphkernel.ir.graph import Value
from graphkernel.ir.types import TensorType, evaluate
from graphkernel.runtime.buffers import Lifetime, place, view_of
from graphkernel.runtime.memory import HOST, Memory
from graphkernel.runtime.plan import Plan
from graphkernel.runtime.steps import Action, Slots

Layout = tuple[tuple[int, ...], "np.dtype[Any]"]


@dataclass(frozen=True, eq=False)
class Frame:
    """Actions over slots in which constants and the buffers of intermediates are in place.

    Outputs lie in memory of their own: ``fresh`` are the slots that a call fills with new arrays, ``results`` the slots
    that an array of ``out=`` may take instead, with its position. ``outputs`` is what every output looks like.
    """

    actions: tuple[Action, ...]
    slots: Slots
    fresh: tuple[tuple[int, Layout], ...]
    results: tuple[tuple[int, int], ...]
    outputs: tuple[Layout, ...]
    arena_bytes: int


def make_frame(plan: Plan, symbols: Mapping[str, int], memory: Memory = HOST) -> Frame:
    """The frame for these symbol values, with constants and intermediates in ``memory``.

    Raises ``InputError`` when an extent would be negative.
    """
    for dim, name in plan.differences.items():
        if evaluate(dim, symbols) < 0:
            given = ", ".join(f"{symbol} = {symbols[symbol]}" for symbol in dim.symbols)
            raise InputError(f"{name} would have an extent of {dim}, which is negative with {given}")
    slots: Slots = [None] * len(plan.slots)
    for value in plan.constants:
        if value.constant is None:
            raise InputError(f"the content of constant {value.node.name} is unknown; give it to parse as weights")
        slots[plan.slots[value]] = memory.constant(value.constant)
    for value, array in _numbers(plan, symbols).items():
        slots[plan.slots[value]] = memory.take(array, value.node.name)
    arena_bytes = _fill_arena(plan, symbols, slots, memory)
    bound = tuple(step.bind(slots, symbols) for step in plan.steps)
    actions = memory.actions(plan, slots, bound)
    escaping = [buffer for buffer in plan.buffers if buffer.escapes]
    positions = {value: position for position, value in reversed(list(enumerate(plan.graph.outputs)))}
    return Frame(
        actions,
        slots,
        tuple(
            (b.slot, _layout(b.value.type, symbols))
            for b in escaping
            if not (b.made_by_kernel and memory.is_made_by_kernels)
        ),
        tuple((b.slot, positions[b.value]) for b in escaping if b.value in positions),
        tuple(_layout(value.type, symbols) for value in plan.graph.outputs),
        arena_bytes,
    )


def _numbers(plan: Plan, symbols: Mapping[str, int]) -> dict[Value, np.ndarray[Any, Any]]:
    """What follows from the shapes: in place before a call, which then has no step for it."""
    known: dict[Value, np.ndarray[Any, Any]] = {}
    for node in plan.numbers:
        operands = [known[arg] if arg in known else _content(arg, symbols) for arg in node.args]
        with np.errstate(all="ignore"):
            found = node.op.meaning(*operands, attrs=concrete_attrs(node.attrs, symbols))
        arrays = found if isinstance(found, tuple) else (found,)
        known.update((value, np.asarray(array)) for value, array in zip(node.outs, arrays, strict=True))
    return known


def _content(value: Value, symbols: Mapping[str, int]) -> np.ndarray[Any, Any]:
    """A constant's content; of anything else an array without memory, of which only the shape is read."""
    nothing = np.empty((), value.type.dtype.numpy)
    return (
        np.broadcast_to(nothing, concrete_shape(value.type.shape, symbols))
        if value.constant is None
        else value.constant
    )


def _fill_arena(plan: Plan, symbols: Mapping[str, int], slots: Slots, memory: Memory) -> int:
    inner = [buffer for buffer in plan.buffers if not buffer.escapes]
    layouts = [_layout(buffer.value.type, symbols) for buffer in inner]
    sizes = [int(np.prod(shape, dtype=np.int64)) * dtype.itemsize for shape, dtype in layouts]
    offsets, total = place([Lifetime(size, b.first, b.last) for size, b in zip(sizes, inner, strict=True)])
    arena = memory.bytes(total)
    for buffer, (shape, dtype), offset in zip(inner, layouts, offsets, strict=True):
        slots[buffer.slot] = view_of(arena, offset, shape, dtype)
    return total


def _layout(type_: TensorType, symbols: Mapping[str, int]) -> Layout:
    return concrete_shape(type_.shape, symbols), type_.dtype.numpy
