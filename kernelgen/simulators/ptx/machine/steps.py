"""Chunks made ready to run: actions in place of instructions, and where the lanes go afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kernelgen.simulators.ptx.instructions.operands import Action, Reader, Scope
from kernelgen.simulators.ptx.instructions.warp import membership
from kernelgen.simulators.ptx.language.nodes import Instruction, Kernel
from kernelgen.simulators.ptx.machine.barriers import arrive
from kernelgen.simulators.ptx.machine.decode import decode
from kernelgen.simulators.ptx.machine.flow import ENDS, Chunk
from kernelgen.simulators.ptx.state.frame import Frame

ENDED = 1 << 21  # where a lane stands that has left the kernel
Branch = Callable[[Frame], list[tuple[Frame, int]]]


@dataclass(frozen=True)
class Step:
    """A chunk ready to run. ``members`` reads the lanes that must arrive, ``guard`` which lanes take part at all."""

    actions: tuple[Action, ...]
    branch: Branch
    meeting: str
    first: Instruction
    last: Instruction
    length: int
    members: Reader | None
    guard: Reader | None


def prepare(kernel: Kernel, chunks: Sequence[Chunk], scope: Scope) -> tuple[Step, ...]:
    """The chunks of a kernel as steps. Raises PtxError for instructions that are not implemented."""
    return tuple(_step(kernel, chunk, scope) for chunk in chunks)


def _step(kernel: Kernel, chunk: Chunk, scope: Scope) -> Step:
    inside = kernel.instructions[chunk.start : chunk.stop]
    first, last = inside[0], inside[-1]
    flows = last.opcode[0] in ("bra", "brx", *ENDS)
    if chunk.meeting == "block":
        actions = (arrive(first, scope),)
    else:
        actions = tuple(decode(instruction, scope) for instruction in (inside[:-1] if flows else inside))
    guarded = chunk.meeting and first.guard is not None
    return Step(
        actions,
        _branch(chunk, last, scope) if flows else _fall(chunk),
        chunk.meeting,
        first,
        last,
        len(inside),
        scope.reader(membership(first), "b32", first) if chunk.meeting == "warp" else None,
        scope.reader(first.guard, "pred", first) if guarded and first.guard is not None else None,
    )


def _fall(chunk: Chunk) -> Branch:
    following = ENDED if chunk.following is None else chunk.following
    return lambda frame: [(frame, following)]


def _branch(chunk: Chunk, last: Instruction, scope: Scope) -> Branch:
    kind = last.opcode[0]
    if kind == "brx":
        taken = _by_index(chunk, last, scope)
    elif kind == "trap":
        taken = _trap(last)
    else:
        target = chunk.targets[0] if kind == "bra" else ENDED
        taken = _go(target)
    if last.guard is None:
        return taken
    read, fall = scope.reader(last.guard, "pred", last), _fall(chunk)

    def split(frame: Frame) -> list[tuple[Frame, int]]:
        mask = read(frame)
        yes, no = frame.narrow(mask), frame.narrow(~mask)
        return [*(taken(yes) if yes else []), *(fall(no) if no else [])]

    return split


def _go(target: int) -> Branch:
    return lambda frame: [(frame, target)]


def _trap(last: Instruction) -> Branch:
    def stop(frame: Frame) -> list[tuple[Frame, int]]:
        raise frame.state.findings.stop("trap", last, frame.name(0), "the kernel reaches a trap")

    return stop


def _by_index(chunk: Chunk, last: Instruction, scope: Scope) -> Branch:
    """``brx.idx %r, table;``."""
    read = scope.reader(last.operands[0], "u32", last)

    def split(frame: Frame) -> list[tuple[Frame, int]]:
        index = frame.spread(read(frame))
        parts = ((frame.narrow(index == number), chunk.targets[int(number)]) for number in np.unique(index))
        return [(part, target) for part, target in parts if part]

    return split
