"""Instructions in which the lanes of a warp work together: shuffles, votes, matches, reductions.

The machine brings lanes together before it runs one (see ``machine``); here every lane of the frame takes part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kernelgen.simulators.ptx.instructions.arithmetic import unknown
from kernelgen.simulators.ptx.instructions.operands import Action, Scope
from kernelgen.simulators.ptx.language.nodes import Immediate, Instruction, Operand, Pair
from kernelgen.simulators.ptx.language.types import numpy_type, opcode_types
from kernelgen.simulators.ptx.state.frame import Frame
from kernelgen.simulators.ptx.state.lanes import WARP

EVERY_LANE = np.array(0xFFFFFFFF, np.uint32)


def membership(instruction: Instruction) -> Operand:
    """The operand that names the lanes that must arrive; the instructions without one want the whole warp."""
    if instruction.opcode[0] in ("shfl", "vote", "match", "redux") or "warp" in instruction.opcode:
        return instruction.operands[-1]
    return Immediate(0xFFFFFFFF)


def _gathered(frame: Frame, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A value of the frame's lanes spread over whole warps: rows of 32, and each lane's row."""
    warps = frame.warps()
    rows = np.cumsum(np.diff(warps, prepend=warps[0]) != 0)
    table = np.zeros((int(rows[-1]) + 1, WARP), value.dtype)
    table[rows, frame.pick(frame.state.lanes.lane)] = value
    return table, rows


def shuffle(instruction: Instruction, scope: Scope) -> Action:
    """``shfl.sync.down.b32 d|p, a, b, c, mask``: a of another lane; p says whether that lane is in range.

    Raises PtxError for other forms.
    """
    how = instruction.opcode[2]
    target, *sources = instruction.operands
    if len(sources) != 4 or how not in ("up", "down", "bfly", "idx"):
        raise unknown(instruction)
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    value, amount, clamp, mask = (scope.reader(operand, "b32", instruction) for operand in sources)
    write = scope.writer(first, "b32", instruction)
    write_range = scope.writer(second, "pred", instruction) if second else None

    def act(frame: Frame) -> None:
        lanes = frame.pick(frame.state.lanes.lane)
        source, inside = _source_lane(how, lanes, amount(frame).astype(np.int64), clamp(frame).astype(np.int64))
        values = frame.spread(value(frame))
        table, rows = _gathered(frame, values)
        present, _ = _gathered(frame, np.ones(frame.count, np.bool_))
        asked = mask(frame) >> source.astype(np.uint32) & np.uint32(1) == 1
        absent = ~(present[rows, source] & asked)
        if absent.any():
            lane = int(source[int(np.argmax(absent))])
            frame.complain("bad-shuffle", instruction, absent, f"reads lane {lane}, which takes no part")
        write(frame, table[rows, source])
        if write_range:
            write_range(frame, frame.spread(inside))

    return act


def _source_lane(how: str, lane: np.ndarray, amount: np.ndarray, clamp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lane to read and whether it is in range; out of range a lane reads itself. c is clamp and segment mask."""
    by, bound, segment = amount & 31, clamp & 31, clamp >> 8 & 31
    highest = (lane & segment) | (bound & ~segment)
    lowest = lane & segment
    match how:
        case "up":
            source = lane - by
            inside = source >= highest
        case "down":
            source = lane + by
            inside = source <= highest
        case "bfly":
            source = lane ^ by
            inside = source <= highest
        case _:
            source = lowest | (by & ~segment)
            inside = source <= highest
    return np.where(inside, source, lane), inside


def _ballot(frame: Frame, bits: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The lanes of the mask for which a predicate holds, as bits."""
    table, rows = _gathered(frame, frame.spread(bits))
    packed = (table.astype(np.uint32) << np.arange(WARP, dtype=np.uint32)).sum(axis=1, dtype=np.uint32)
    return packed[rows] & mask


def vote(instruction: Instruction, scope: Scope) -> Action:
    """``vote.sync.ballot.b32 d, p, mask`` and all, any, uni."""
    how = instruction.opcode[2]
    target, source, members = instruction.operands
    read, mask = scope.reader(source, "pred", instruction), scope.reader(members, "b32", instruction)
    write = scope.writer(target, "b32" if how == "ballot" else "pred", instruction)

    def act(frame: Frame) -> None:
        named = mask(frame)
        named = named & _ballot(frame, np.ones(frame.count, np.bool_), EVERY_LANE)
        bits = _ballot(frame, read(frame), named)
        results: Mapping[str, Callable[[], np.ndarray]] = {
            "ballot": lambda: bits,
            "all": lambda: bits == named,
            "any": lambda: bits != 0,
            "uni": lambda: (bits == named) | (bits == 0),
        }
        write(frame, results[how]())

    return act


def match(instruction: Instruction, scope: Scope) -> Action:
    """``match.any.sync.b32 d, a, mask``: the lanes with the same value; ``all``: the mask if they all agree, else 0."""
    how, kind = instruction.opcode[1], instruction.opcode[-1]
    target, source, members = instruction.operands
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    read, mask = scope.reader(source, kind, instruction), scope.reader(members, "b32", instruction)
    write = scope.writer(first, "b32", instruction)
    write_all = scope.writer(second, "pred", instruction) if second else None

    def act(frame: Frame) -> None:
        table, rows = _gathered(frame, frame.spread(read(frame)))
        present, _ = _gathered(frame, np.ones(frame.count, np.bool_))
        named = frame.spread(mask(frame))
        lanes = frame.pick(frame.state.lanes.lane)
        equal = (table[rows] == table[rows, lanes][:, None]) & present[rows]
        bits = (equal.astype(np.uint32) << np.arange(WARP, dtype=np.uint32)).sum(axis=1, dtype=np.uint32) & named
        whole = bits == named
        write(frame, bits if how == "any" else np.where(whole, named, np.uint32(0)))
        if write_all:
            write_all(frame, whole)

    return act


def reduce(instruction: Instruction, scope: Scope) -> Action:
    """``redux.sync.add.s32 d, a, mask``: one result for all lanes of the mask."""
    how = instruction.opcode[2]
    (kind,) = opcode_types(instruction.opcode)
    target, source, members = instruction.operands
    read, mask = scope.reader(source, kind, instruction), scope.reader(members, "b32", instruction)
    write = scope.writer(target, kind, instruction)
    table: Mapping[str, np.ufunc] = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }
    combine = table[how]

    def act(frame: Frame) -> None:
        values = frame.spread(read(frame))
        keys = frame.warps() << 32 | frame.spread(mask(frame)).astype(np.int64)
        result = np.empty(frame.count, numpy_type(kind))
        for key in np.unique(keys):
            together = keys == key
            result[together] = combine.reduce(values[together], dtype=values.dtype)
        write(frame, result)

    return act


def active_mask(instruction: Instruction, scope: Scope) -> Action:
    """The lanes that happen to be together here."""
    write = scope.writer(instruction.operands[0], "b32", instruction)
    return lambda frame: write(frame, _ballot(frame, np.ones(frame.count, np.bool_), EVERY_LANE))


def barrier(instruction: Instruction, scope: Scope) -> Action:
    """``bar.warp.sync mask``: what it means for the order of accesses is the machine's business."""
    return lambda frame: None


BUILDERS: Mapping[str, Callable[[Instruction, Scope], Action]] = {
    "shfl": shuffle,
    "vote": vote,
    "match": match,
    "redux": reduce,
    "activemask": active_mask,
    "bar": barrier,
}
