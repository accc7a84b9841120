"""Barriers of a block: what ``bar.sync`` and ``bar.red`` do once every thread of the block has arrived."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kernelgen.simulators.ptx.instructions.arithmetic import unknown
from kernelgen.simulators.ptx.instructions.operands import Action, Scope
from kernelgen.simulators.ptx.language.errors import PtxError
from kernelgen.simulators.ptx.language.nodes import Instruction
from kernelgen.simulators.ptx.state.frame import Frame
from kernelgen.simulators.ptx.state.race_detector import MOST_BARRIERS


def arrive(instruction: Instruction, scope: Scope) -> Action:
    """The action of a frame that holds whole blocks. Raises PtxError for other forms."""
    names = instruction.opcode[1:]
    if "red" in names:
        return _reduce(instruction, scope)
    if "sync" not in names or "cluster" in names:
        raise unknown(instruction)
    check = _check_count(instruction, scope, 1)

    def act(frame: Frame) -> None:
        check(frame)
        _pass(frame)

    return act


def _pass(frame: Frame) -> None:
    state = frame.state
    index = slice(None) if frame.index is None else frame.index
    state.epoch[index] += 1
    slots = frame.pick(state.lanes.slot)
    fenced = np.bincount(slots, frame.pick(state.dirty), len(state.lanes.blocks)) == 0
    done = slots[fenced[slots]]
    state.clean_until[done] = frame.pick(state.epoch)[fenced[slots]]
    state.tally.barriers += frame.count // state.lanes.threads
    if int(state.epoch.max()) > MOST_BARRIERS:
        raise PtxError(f"a block passes more than {MOST_BARRIERS} barriers, which the race check cannot count")


def _check_count(instruction: Instruction, scope: Scope, place: int) -> Action:
    """A barrier for a part of the block is not implemented."""
    if len(instruction.operands) <= place:
        return lambda frame: None
    read = scope.reader(instruction.operands[place], "u32", instruction)

    def check(frame: Frame) -> None:
        if (read(frame) != frame.state.lanes.threads).any():
            raise unknown(instruction)

    return check


def _reduce(instruction: Instruction, scope: Scope) -> Action:
    """``bar.red.popc.u32 d, a, p``, ``bar.red.and.pred d, a, p``: a reduction over the block's predicates."""
    how, kind = instruction.opcode[-2:]
    target, source = instruction.operands[0], instruction.operands[-1]
    check = _check_count(instruction, scope, 2) if len(instruction.operands) == 4 else None
    read, write = scope.reader(source, "pred", instruction), scope.writer(target, kind, instruction)
    table: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
        "popc": lambda votes: votes.sum(axis=1).astype(np.uint32),
        "and": lambda votes: np.logical_and.reduce(votes, axis=1),
        "or": lambda votes: np.logical_or.reduce(votes, axis=1),
    }
    combine = table[how]

    def act(frame: Frame) -> None:
        if check:
            check(frame)
        threads = frame.state.lanes.threads
        votes = frame.spread(read(frame)).reshape(-1, threads)
        write(frame, np.repeat(combine(votes), threads))
        _pass(frame)

    return act
