"""Atomic operations: ``atom`` gives the old value, ``red`` does not. Lanes of one instruction go in order of position."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kernelgen.simulators.ptx.instructions.access import Access, address_reader, count, locate, space_of, touch
from kernelgen.simulators.ptx.instructions.arithmetic import unknown
from kernelgen.simulators.ptx.instructions.floats import Compute, float_compute
from kernelgen.simulators.ptx.instructions.operands import Action, Scope
from kernelgen.simulators.ptx.language.nodes import Instruction, Register, Vector
from kernelgen.simulators.ptx.language.types import is_float, numpy_type, width_of
from kernelgen.simulators.ptx.state.frame import Frame
from kernelgen.simulators.ptx.state.race_detector import Shadow

OPERATIONS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")


def _operation(instruction: Instruction) -> tuple[str, Compute]:
    """The name and what it makes of the old value and the operands."""
    name = next(part for part in instruction.opcode if part in OPERATIONS)
    kind = instruction.opcode[-1]
    if is_float(kind):
        compute = float_compute((name, kind), kind)
        if compute is None:
            raise unknown(instruction)
        return name, compute
    table: Mapping[str, Compute] = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "exch": lambda old, new: new,
        "cas": lambda old, compare, new: np.where(old == compare, new, old),
        "inc": lambda old, limit: np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1)),
        "dec": lambda old, limit: np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1)),
    }
    return name, table[name]


def atomic(instruction: Instruction, scope: Scope) -> Action:
    """``atom.global.add.f32 d, [a], b`` and ``red.global.add.f32 [a], b``; ``cas`` has a third source.

    Raises PtxError for other operations.
    """
    kind = instruction.opcode[-1]
    returns = instruction.opcode[0] == "atom"
    operands = instruction.operands if returns else (Register("_"), *instruction.operands)
    if any(isinstance(operand, Vector) for operand in operands):
        raise unknown(instruction)
    write = scope.writer(operands[0], kind, instruction)
    addresses = address_reader(operands[1], space_of(instruction), instruction, scope)
    readers = [scope.reader(operand, kind, instruction) for operand in operands[2:]]
    _, compute = _operation(instruction)
    width, dtype = width_of(kind) // 8, numpy_type(kind)
    releases = bool({"release", "acq_rel"} & set(instruction.opcode))

    def act(frame: Frame) -> None:
        values = [frame.spread(read(frame)) for read in readers]
        old = np.empty(frame.count, dtype)
        for access in locate(frame, addresses(frame), width, instruction):
            count(frame, access, width, "atomic")
            touch(frame, access, width, instruction, Shadow.update)
            if access.region.space == "global":
                _publish(frame, access, width, releases)
            mine = values if access.places is None else [value[access.places] for value in values]
            before = _in_turn(access, dtype, compute, mine)
            old[slice(None) if access.places is None else access.places] = before
        write(frame, old)

    return act


def _publish(frame: Frame, access: Access, width: int, releases: bool) -> None:
    state, positions = frame.state, np.arange(frame.state.lanes.count)[access.positions]
    if releases:
        state.fence(positions)
    state.publish(access.region.name, access.storage // width, positions)


def _in_turn(access: Access, dtype: np.dtype, compute: Compute, values: list[np.ndarray]) -> np.ndarray:
    """Applies the operation lane after lane; lanes of the same turn have different addresses, so they go at once."""
    view, index = access.region.view(dtype), access.storage // dtype.itemsize
    old = np.empty(len(index), dtype)
    for turn in _turns(index):
        place = index[turn]
        before = view[place]
        old[turn] = before
        view[place] = compute(before, *(value[turn] for value in values))
    return old


def _turns(index: np.ndarray) -> list[np.ndarray]:
    """Positions grouped so that the n-th visitor of each address is in group n."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    lengths = np.diff(starts, append=len(ordered))
    if (lengths == 1).all():
        return [np.arange(len(index))]
    rank = np.arange(len(ordered)) - np.repeat(starts, lengths)
    by_rank = np.argsort(rank, kind="stable")
    bounds = np.cumsum(np.bincount(rank))
    return [order[by_rank[start:stop]] for start, stop in zip([0, *bounds[:-1]], bounds, strict=True)]


BUILDERS: Mapping[str, Callable[[Instruction, Scope], Action]] = {"atom": atomic, "red": atomic}
