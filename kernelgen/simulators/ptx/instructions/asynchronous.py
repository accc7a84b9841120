"""``cp.async``: copies from global to shared memory that end at a wait.

The bytes are read when the copy starts and appear in shared memory when the thread waits for its group; between the two
nobody may touch the place. Other threads see it after a barrier, as with any store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kernelgen.simulators.ptx.instructions.access import Access, address_reader, count, locate, touch
from kernelgen.simulators.ptx.instructions.arithmetic import unknown
from kernelgen.simulators.ptx.instructions.operands import Action, Reader, Scope
from kernelgen.simulators.ptx.language.nodes import Immediate, Instruction
from kernelgen.simulators.ptx.state.frame import Frame
from kernelgen.simulators.ptx.state.race_detector import Shadow
from kernelgen.simulators.ptx.state.state import FLIGHT_WORD, Copy


def asynchronous(instruction: Instruction, scope: Scope) -> Action:
    """``cp.async.ca.shared.global [to], [from], 16``, ``commit_group``, ``wait_group n`` and ``wait_all``.

    Raises PtxError for other forms.
    """
    names = instruction.opcode[1:]
    if names[:1] != ("async",) or "bulk" in names or "mbarrier" in names:
        raise unknown(instruction)
    if "commit_group" in names:
        return _commit
    if "wait_all" in names:
        return lambda frame: _finish(frame, instruction, None)
    if "wait_group" in names:
        pending = scope.reader(instruction.operands[0], "u32", instruction)
        return lambda frame: _finish(frame, instruction, int(pending(frame)))
    return _start(instruction, scope)


def _commit(frame: Frame) -> None:
    frame.state.copy_group[slice(None) if frame.index is None else frame.index] += 1


def _start(instruction: Instruction, scope: Scope) -> Action:
    to, source, size, *rest = instruction.operands
    if not isinstance(size, Immediate) or len(rest) > 1:
        raise unknown(instruction)
    width = size.value
    shared = address_reader(to, "shared", instruction, scope)
    addresses = address_reader(source, "global", instruction, scope)
    wanted = scope.reader(rest[0], "u32", instruction) if rest else None

    def act(frame: Frame) -> None:
        data = np.zeros((frame.count, width), np.uint8)
        places = frame.spread(wanted(frame)) if wanted else np.full(frame.count, width)
        _fetch(frame, addresses, places, data, instruction)
        for access in locate(frame, shared(frame), width, instruction):
            count(frame, access, width, "store")
            touch(frame, access, width, instruction, Shadow.write)
            _take_off(frame, access, width, data)

    return act


def _fetch(frame: Frame, addresses: Reader, sizes: np.ndarray, data: np.ndarray, instruction: Instruction) -> None:
    """Reads as many bytes as each lane wants; the rest stays zero."""
    every = addresses(frame)
    for size in np.unique(sizes[sizes > 0]):
        mask = sizes == size
        part = frame.narrow(mask)
        assert part is not None
        rows = np.flatnonzero(mask)
        for access in locate(part, every[mask], int(size), instruction):
            count(part, access, int(size), "load")
            touch(part, access, int(size), instruction, Shadow.read)
            chosen = rows if access.places is None else rows[access.places]
            data[chosen, : int(size)] = access.region.storage[access.storage[:, None] + np.arange(int(size))]


def _take_off(frame: Frame, access: Access, width: int, data: np.ndarray) -> None:
    state = frame.state
    positions = np.arange(state.lanes.count)[access.positions]
    mine = data if access.places is None else data[access.places]
    state.copies.append(
        Copy(access.region, positions, access.offsets, access.storage, mine, state.copy_group[positions].copy())
    )
    for start in range(0, width, FLIGHT_WORD):
        state.flight[(access.storage + start) // FLIGHT_WORD] = True


def _finish(frame: Frame, instruction: Instruction, pending: int | None) -> None:
    """Ends the copies of these lanes, all but those of the last ``pending`` groups."""
    state = frame.state
    waits = np.zeros(state.lanes.count, np.bool_)
    waits[slice(None) if frame.index is None else frame.index] = True
    under_way, state.copies = state.copies, []
    for copy in under_way:
        done = waits[copy.positions]
        if pending is not None:
            done &= copy.group < state.copy_group[copy.positions] - pending
        if not done.all():
            state.copies.append(copy.pick(~done))
        if done.any():
            _land(frame, copy.pick(done), instruction)


def _land(frame: Frame, copy: Copy, instruction: Instruction) -> None:
    width = copy.data.shape[1]
    part = Frame(frame.state, copy.positions)
    touch(part, Access(copy.region, None, copy.positions, copy.offsets, copy.storage), width, instruction, Shadow.write)
    copy.region.storage[copy.storage[:, None] + np.arange(width)] = copy.data
    for start in range(0, width, FLIGHT_WORD):
        frame.state.flight[(copy.storage + start) // FLIGHT_WORD] = False


BUILDERS: Mapping[str, Callable[[Instruction, Scope], Action]] = {"cp": asynchronous}
