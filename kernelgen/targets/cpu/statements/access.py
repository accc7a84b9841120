"""Loads and stores: the stride along the vector variable decides between vector, splat, shuffled vectors and gather."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernelgen.nest import index as index_algebra
from kernelgen.nest.nodes import Buffer, Expr, Index, Num, Ref, Space, Var
from kernelgen.targets.cpu.statements import bound_checks as borders
from kernelgen.targets.cpu.statements import strided
from kernelgen.targets.cpu.text.formats import from_memory, memory_kind, to_memory
from kernelgen.targets.cpu.text.indices import index_value
from kernelgen.targets.cpu.text.scope import Frame, Memory
from kernelgen.targets.cpu.text.values import Value, constant, iota, type_suffix, vector_type


def flat_index(buffer: Buffer, index: tuple[Index, ...]) -> Index:
    """The row-major position of an element."""
    if not index:
        return Num(0)
    total = index[0]
    for position, extent in zip(index[1:], buffer.shape[1:], strict=True):
        total = index_algebra.add(index_algebra.multiply(total, index_algebra.from_dim(extent)), position)
    return total


def vector_stride(frame: Frame, flat: Index) -> int | None:
    """Elements between neighbouring lanes; 0 outside of vector loops, None when not constant."""
    if frame.lanes is None:
        return 0
    shared: dict[Expr, Index] = {
        value: Num(0)
        for value in index_algebra.values(flat)
        if isinstance(value, Ref) and frame.bindings[value.name].lanes == 1
    }
    return index_algebra.stride(index_algebra.settle(flat, shared), frame.lanes.variable)


def load(frame: Frame, buffer: Buffer, index: tuple[Index, ...]) -> Value:
    """The element of ``buffer`` at ``index``, as printed into ``frame``; one per lane when the index varies along the
    lanes.
    """
    return from_memory(read_memory(frame, buffer, index), buffer.dtype)


def read_memory(frame: Frame, buffer: Buffer, index: tuple[Index, ...]) -> Value:
    """What :func:`load` gives for ``frame``, ``buffer`` and ``index``, as it lies in memory."""
    memory = frame.memory[buffer.name]
    kind = memory_kind(buffer.dtype, frame.host)
    if memory.lanes > 1:
        return _plain_load(frame, memory.pointer, kind, memory.lanes)
    flat = flat_index(buffer, index)
    stride = vector_stride(frame, flat)
    if stride == 0 and not frame.guarded:
        return _plain_load(frame, pointer(frame, memory, flat), kind, 1)
    if stride == 1:
        inside = replace(frame, mask=None) if _has_room(frame, buffer, index) else frame
        return _vector_load(inside, pointer(frame, memory, flat), kind)
    if frame.lanes is None:
        return _plain_load(frame, pointer(frame, memory, flat), kind, 1)
    if frame.mask is None or frame.host.has_masks:
        apart = _apart(frame, memory, flat, kind)
        if apart is not None:
            return apart
    return _bordered_load(frame, memory, index) or _gather(frame, lane_pointers(frame, memory, flat), kind)


def _has_room(frame: Frame, buffer: Buffer, index: tuple[Index, ...]) -> bool:
    """Whether a local of numbers holds elements for all lanes, also those that do not run: a masked load would keep it in
    memory, where a plain one lets it be a register.
    """
    if buffer.space is not Space.LOCAL or not buffer.dtype.is_float or frame.lanes is None or frame.streamed:
        return False
    extent = buffer.shape[-1] if len(buffer.shape) == 1 else None
    is_whole = isinstance(extent, int) and extent % frame.lanes.count == 0
    return is_whole and index == (Var(frame.lanes.variable),)


def _apart(frame: Frame, memory: Memory, flat: Index, kind: str) -> Value | None:
    """One element per lane, of vectors that hold all from the first lane's to the last one's, see :mod:`strided`; None where
    there are no such vectors.
    """
    assert frame.lanes is not None
    lanes = frame.lanes
    step = strided.step_of(flat, lanes.variable, lanes.count)
    if step is None or (step.width > 1 and (frame.mask is not None or not lanes.are_first)):
        return None
    line, beside = strided.line_of(memory.buffer.name, flat)
    spread = strided.spread(flat, beside, frame.known.loaded.get(line, {}), step, lanes.count)
    reads_all = step.width == 1 or spread.is_shared
    reading = frame if reads_all else replace(frame, mask=constant(frame.function, True, "i1"))
    least = lanes.start if step.distance > 0 else lanes.start + (lanes.count - 1)
    base = _element(frame, _row_pointer(frame, memory, kind, spread.first, lanes.variable), kind, least * step.distance)
    loads: list[Value] = []
    for start, readers in zip(spread.starts, spread.readers, strict=True):
        address = frame.function.assign(f"getelementptr {kind}, ptr {base}, i64 {start}")
        loads.append(_vector_load(_reading(reading, readers), address, kind))
    return _woven(loads, spread.places)


def _reading(frame: Frame, readers: Mapping[int, int]) -> Frame:
    """``frame`` for a vector whose places are read where their ``readers`` run; those without one are not."""
    if frame.mask is None or frame.lanes is None:
        return frame
    count = frame.lanes.count
    none = constant(frame.function, False, "i1").splat(count)
    order = [readers.get(place, count) for place in range(count)]
    return replace(frame, mask=frame.mask.splat(count).shuffle(none, order))


def _woven(loads: Sequence[Value], places: Sequence[tuple[int, int]]) -> Value:
    """For each lane the element at a place of one of the vectors ``loads``, which join the first one after another."""
    found, own = loads[0], [place for _, place in places]
    for number, other in enumerate(loads[1:] or loads, 1):
        order = enumerate(places)
        found = found.shuffle(other, [found.lanes + at if owner == number else own[k] for k, (owner, at) in order])
        own = list(range(found.lanes))
    return found


def _bordered_load(frame: Frame, memory: Memory, index: tuple[Index, ...]) -> Value | None:
    """A load that is contiguous but for lanes which are clamped to an edge: one masked load; None for others.

    The edges are read whether a lane needs them or not, so that one lane must be sure to run.
    """
    if frame.guarded or not frame.host.has_masks:
        return None
    found = [(dim, place) for dim, each in enumerate(index) if (place := borders.clamped(frame, each)) is not None]
    if len(found) != 1:
        return None
    ((dim, place),) = found
    inner, lower, upper = (
        flat_index(memory.buffer, (*index[:dim], at, *index[dim + 1 :]))
        for at in (place.place, place.lower, place.upper)
    )
    if vector_stride(frame, inner) != 1:
        return None
    kind = memory_kind(memory.buffer.dtype, frame.host)
    reached = borders.at_least(frame, place.place, place.lower)
    first, last = (_plain_load(frame, _offset(frame, memory.pointer, kind, edge), kind, 1) for edge in (lower, upper))
    inside = frame.masked(reached & borders.at_most(frame, place.place, place.upper))
    return _vector_load(inside, pointer(frame, memory, inner), kind, reached.select(last, first))


def store(frame: Frame, buffer: Buffer, index: tuple[Index, ...], value: Value, streaming: bool = False) -> None:
    """Stores a register value; ``streaming`` writes past the caches, the address must then be aligned to the vector."""
    write_memory(frame, buffer, index, to_memory(value, buffer.dtype, frame.host), streaming)


def write_memory(
    frame: Frame, buffer: Buffer, index: tuple[Index, ...], stored: Value, streaming: bool = False
) -> None:
    """Stores the value ``stored``, which is as it shall lie in memory; ``frame``, ``buffer``, ``index`` and
    ``streaming`` as in :func:`store`.
    """
    memory = frame.memory[buffer.name]
    if memory.lanes > 1:
        _masked_update(frame, memory.pointer, stored.splat(memory.lanes))
        return
    flat = flat_index(buffer, index)
    if frame.lanes is None:
        _plain_store(frame, pointer(frame, memory, flat), stored)
    elif vector_stride(frame, flat) == 1:
        _vector_store(frame, pointer(frame, memory, flat), stored.splat(frame.lanes.count), streaming)
    else:
        _scatter(frame, lane_pointers(frame, memory, flat), stored.splat(frame.lanes.count))


def pointer(frame: Frame, memory: Memory, flat: Index) -> str:
    """The address of the element ``flat`` of ``memory``, in ``frame``; of lane 0's when the index grows by one from
    lane to lane.
    """
    kind = memory_kind(memory.buffer.dtype, frame.host)
    if frame.lanes is None or frame.lanes.variable not in index_algebra.variables(flat):
        return _offset(frame, memory.pointer, kind, flat)
    return _element(frame, _row_pointer(frame, memory, kind, flat, frame.lanes.variable), kind, frame.lanes.start)


def misaligned_lanes(frame: Frame, buffer: Buffer, index: tuple[Index, ...]) -> Value:
    """How many elements lie between the vector at ``index`` of ``buffer``, a contiguous access in ``frame``, and the
    aligned address before it.
    """
    assert frame.lanes is not None
    address = pointer(frame, frame.memory[buffer.name], flat_index(buffer, index))
    size = alignment(memory_kind(buffer.dtype, frame.host))
    bits = Value(frame.function, frame.function.assign(f"ptrtoint ptr {address} to i64"), "i64")
    return (bits & (frame.lanes.count * size - 1)).binary("udiv", size)


def prefetch(frame: Frame, buffer: Buffer, place: Index, level: int) -> None:
    """Asks for the line of an element, counted from the buffer's first, to be in a cache; of lane 0's in vector loops."""
    address = pointer(frame, frame.memory[buffer.name], place)
    name = frame.function.module.declare("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
    frame.function.perform(f"call void {name}(ptr {address}, i32 0, i32 {4 - level}, i32 1)")


def row_key(buffer: Buffer, flat: Index, variable: str) -> tuple[str, Index]:
    """What identifies the part of the address of element ``flat`` of ``buffer`` that does not change with
    ``variable``, in :attr:`Known.pointers`.
    """
    return buffer.name, index_algebra.substitute(flat, {variable: Num(0)})


def row_pointer(frame: Frame, memory: Memory, invariant: Index) -> str:
    """The address of the element at the index ``invariant`` of ``memory``, which does not vary along the lanes of
    ``frame``.
    """
    return _offset(frame, memory.pointer, memory_kind(memory.buffer.dtype, frame.host), invariant)


def lane_pointers(frame: Frame, memory: Memory, flat: Index) -> Value:
    """The addresses of the elements ``flat`` of ``memory``, one per lane of ``frame``."""
    assert frame.lanes is not None
    kind, lanes = memory_kind(memory.buffer.dtype, frame.host), frame.lanes
    step = vector_stride(frame, flat)
    if step is None:
        base, offsets = memory.pointer, index_value(frame, flat)
    else:
        base = _row_pointer(frame, memory, kind, flat, lanes.variable)
        offsets = (lanes.start + iota(frame.function, "i64", lanes.count)) * step
    offsets = offsets.splat(lanes.count)
    text = frame.function.assign(f"getelementptr {kind}, ptr {base}, {offsets.typed}")
    return Value(frame.function, text, "ptr", lanes.count)


def _row_pointer(frame: Frame, memory: Memory, kind: str, flat: Index, variable: str) -> str:
    key = row_key(memory.buffer, flat, variable)
    return frame.known.pointers.get(key) or _offset(frame, memory.pointer, kind, key[1])


def _offset(frame: Frame, base: str, kind: str, flat: Index) -> str:
    return base if flat == Num(0) else _element(frame, base, kind, index_value(frame, flat))


def _element(frame: Frame, base: str, kind: str, offset: Value) -> str:
    return frame.function.assign(f"getelementptr {kind}, ptr {base}, {offset.typed}")


def _plain_load(frame: Frame, address: str, kind: str, lanes: int) -> Value:
    text = frame.function.assign(f"load {vector_type(kind, lanes)}, ptr {address}, align {alignment(kind)}")
    return Value(frame.function, text, kind, lanes)


def _vector_load(frame: Frame, address: str, kind: str, others: Value | None = None) -> Value:
    """The lanes of the mask; ``others`` are what the other ones get, zeros when they do not matter."""
    assert frame.lanes is not None
    lanes = frame.lanes.count
    if frame.mask is None:
        return _plain_load(frame, address, kind, lanes)
    whole = vector_type(kind, lanes)
    mask = frame.mask.splat(lanes)
    name = frame.function.module.declare(
        f"llvm.masked.load.{type_suffix(kind, lanes)}.p0", whole, f"ptr, {mask.type}, {whole}"
    )  # fmt: skip
    rest = "zeroinitializer" if others is None else others.text
    text = frame.function.assign(
        f"call {whole} {name}(ptr align {alignment(kind)} {address}, {mask.typed}, {whole} {rest})"
    )
    return Value(frame.function, text, kind, lanes)


def _gather(frame: Frame, addresses: Value, kind: str) -> Value:
    lanes = addresses.lanes
    whole, mask = vector_type(kind, lanes), _full_mask(frame, lanes)
    name = frame.function.module.declare(
        f"llvm.masked.gather.{type_suffix(kind, lanes)}.v{lanes}p0", whole, f"{addresses.type}, {mask.type}, {whole}"
    )
    text = frame.function.assign(
        f"call {whole} {name}({addresses.type} align {alignment(kind)} {addresses.text}, {mask.typed}, "
        f"{whole} zeroinitializer)"
    )
    return Value(frame.function, text, kind, lanes)


def _plain_store(frame: Frame, address: str, value: Value) -> None:
    frame.function.perform(f"store {value.typed}, ptr {address}, align {alignment(value.kind)}")


def _streaming_store(frame: Frame, address: str, value: Value) -> None:
    whole = value.lanes * alignment(value.kind)
    frame.function.perform(f"store {value.typed}, ptr {address}, align {whole}, !nontemporal !0")


_TRUNCATED = frozenset({"i8", "i16", "i32"})
"""What a truncation may give."""


def _certain(frame: Frame) -> Value:
    """``true``, which LLVM does not know: it passes an empty piece of assembly.

    LLVM 22 makes one scalar store of a masked one whose mask is known to have one lane, and forgets that it truncates: the
    element is stored as wide as it was before, over its neighbours.
    """
    one = frame.function.assign('call i32 asm "", "=r,0"(i32 1)')
    return Value(frame.function, one, "i32").compare("ne", 0)


def _vector_store(frame: Frame, address: str, value: Value, streaming: bool) -> None:
    if frame.mask is None:
        (_streaming_store if streaming else _plain_store)(frame, address, value)
        return
    mask = frame.mask.splat(value.lanes)
    if value.kind in _TRUNCATED:
        mask = mask & _certain(frame).splat(value.lanes)
    name = frame.function.module.declare(
        f"llvm.masked.store.{type_suffix(value.kind, value.lanes)}.p0", "void", f"{value.type}, ptr, {mask.type}"
    )
    frame.function.perform(
        f"call void {name}({value.typed}, ptr align {alignment(value.kind)} {address}, {mask.typed})"
    )


def _scatter(frame: Frame, addresses: Value, value: Value) -> None:
    mask = _full_mask(frame, value.lanes)
    name = frame.function.module.declare(
        f"llvm.masked.scatter.{type_suffix(value.kind, value.lanes)}.v{value.lanes}p0",
        "void",
        f"{value.type}, {addresses.type}, {mask.type}",
    )
    frame.function.perform(
        f"call void {name}({value.typed}, {addresses.type} align {alignment(value.kind)} {addresses.text}, {mask.typed})"
    )


def _masked_update(frame: Frame, address: str, value: Value) -> None:
    if frame.guarded and frame.mask is not None:
        value = frame.mask.select(value, _plain_load(frame, address, value.kind, value.lanes))
    _plain_store(frame, address, value)


def _full_mask(frame: Frame, lanes: int) -> Value:
    mask = frame.mask if frame.mask is not None else constant(frame.function, True, "i1")
    return mask.splat(lanes)


def alignment(kind: str) -> int:
    """The natural alignment of an element, in bytes."""
    return {"i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4}.get(kind, 8)
