"""Loads and stores: where the bytes are, whether the access is allowed, what it costs, and who else touches them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from kernelgen.simulators.common.findings import Stop
from kernelgen.simulators.ptx.instructions.arithmetic import unknown
from kernelgen.simulators.ptx.instructions.operands import Action, Reader, Scope
from kernelgen.simulators.ptx.language.nodes import Address, Instruction, Operand, Vector
from kernelgen.simulators.ptx.language.types import numpy_type, width_of
from kernelgen.simulators.ptx.state.counters import Traffic, bank_cycles, sector_count
from kernelgen.simulators.ptx.state.frame import Frame
from kernelgen.simulators.ptx.state.memory import LOCAL_BASE, RANGE_BITS, SHARED_BASE, Part, Region
from kernelgen.simulators.ptx.state.race_detector import Shadow, Visitors, describe
from kernelgen.simulators.ptx.state.state import FLIGHT_WORD

SPACES = ("global", "shared", "local", "param", "const")
BASES = {"shared": SHARED_BASE, "local": LOCAL_BASE}
Touch = Callable[[Shadow, np.ndarray, Visitors], np.ndarray | None]


@dataclass(frozen=True)
class Access:
    """The lanes of a frame that touch one region: places in the frame, positions in the gang, where in the storage."""

    region: Region
    places: np.ndarray | None
    positions: np.ndarray | slice
    offsets: np.ndarray  # within one copy of the region
    storage: np.ndarray  # within all copies


def space_of(instruction: Instruction) -> str:
    """The state space that an opcode names, "" for generic addresses."""
    names = (part.partition("::")[0] for part in instruction.opcode)
    return next((name for name in names if name in SPACES), "")


def address_reader(operand: Operand, space: str, instruction: Instruction, scope: Scope) -> Reader:
    """Addresses as 64 bits, those of shared memory from 32-bit registers included.

    Raises PtxError for another operand.
    """
    if not isinstance(operand, Address):
        raise unknown(instruction)
    width = scope.widths.get(str(operand.base), 64)
    read = scope.reader(operand.base, f"u{width}", instruction)
    offset, base = np.uint64(operand.offset & (1 << 64) - 1), np.uint64(BASES.get(space, 0))
    low = np.uint64((1 << 32) - 1)

    def addresses(frame: Frame) -> np.ndarray:
        value = frame.spread(read(frame))
        if width == 32:
            return ((value.astype(np.uint64) + offset) & low) + base  # the low half of a base is zero
        return value + offset

    return addresses


def locate(frame: Frame, addresses: np.ndarray, width: int, instruction: Instruction) -> list[Access]:
    """Every lane's place in memory.

    Raises a finding, which stops the launch, at an access that is outside or not aligned.
    """
    odd = addresses & np.uint64(width - 1)
    if odd.any():
        first = int(np.argmax(odd != 0))
        message = f"address is {int(odd[first])} bytes past a multiple of {width}"
        raise frame.state.findings.stop("misaligned", instruction, frame.name(first), message)
    return [_checked(frame, part, width, instruction) for part in frame.state.memory.parts(addresses)]


def _checked(frame: Frame, part: Part | np.ndarray, width: int, instruction: Instruction) -> Access:
    if not isinstance(part, Part):
        raise _outside(frame, instruction, int(part[0]), "address belongs to no buffer")
    wrong = part.region.outside(part.offsets, width)
    if wrong is not None:
        place = int(np.argmax(wrong))
        size = f"{part.region.name} has {part.region.size} bytes"
        message = f"{width} bytes at offset {int(part.offsets[place])}, {size}"
        raise _outside(frame, instruction, place if part.places is None else int(part.places[place]), message)
    positions = _positions(frame, part.places)
    lanes, region = frame.state.lanes, part.region
    match region.space:
        case "shared":
            storage = part.offsets + lanes.slot[positions] * region.stride
        case "local":
            every = np.arange(lanes.count) if isinstance(positions, slice) else positions
            storage = part.offsets + every * region.stride
        case _:
            storage = part.offsets
    return Access(region, part.places, positions, part.offsets, storage)


def _outside(frame: Frame, instruction: Instruction, place: int, message: str) -> Stop:
    return frame.state.findings.stop("out-of-bounds", instruction, frame.name(place), message)


def _positions(frame: Frame, places: np.ndarray | None) -> np.ndarray | slice:
    if places is None:
        return slice(None) if frame.index is None else frame.index
    return places if frame.index is None else frame.index[places]


def count(frame: Frame, access: Access, width: int, kind: str) -> None:
    """Adds an access to the traffic of ``kind`` (load, store, atomic)."""
    lanes, region = frame.state.lanes, access.region
    warps = lanes.warp[access.positions]
    total = len(warps) * width
    if region.space == "shared":
        requests, cycles, conflicts = bank_cycles(warps, lanes.lane[access.positions], access.storage, width)
        frame.state.tally.access(f"shared {kind}", Traffic(requests, total, 0, cycles, conflicts))
    elif region.space in ("global", "local"):
        requests, sectors = sector_count(warps, access.storage, width)
        frame.state.tally.access(f"{region.space} {kind}", Traffic(requests, total, sectors))
        frame.state.tally.sectors[region.number, kind] += sectors


def touch(frame: Frame, access: Access, width: int, instruction: Instruction, how: Touch) -> None:
    """Tells the shadow of every word of an access, and notes the races that it sees."""
    shadow = frame.state.shadows.get(access.region.name)
    if shadow is None:
        return
    who = frame.state.visitors(access.positions)
    for start in range(0, width, shadow.word):
        words = (access.storage + start) // shadow.word
        before = shadow.writer[words]
        wrong = how(shadow, words, who)
        if wrong is not None:
            place = int(np.argmax(wrong))
            offset, name = int(access.offsets[place]) + start, access.region.name
            other = (
                describe(int(before[place]), frame.state.running) if before[place] else "a thread of the same kernel"
            )
            message = f"byte {offset} of {name} is also touched by {other}"
            _note(frame, access, instruction, f"{access.region.space}-race", wrong, message)


def _note(frame: Frame, access: Access, instruction: Instruction, kind: str, wrong: np.ndarray, message: str) -> None:
    place = int(np.argmax(wrong))
    where = frame.name(place if access.places is None else int(access.places[place]))
    frame.state.findings.add(kind, instruction, where, message, int(np.count_nonzero(wrong)))


def check_written(frame: Frame, access: Access, width: int, instruction: Instruction) -> None:
    """Notes reads of shared or local words that nobody wrote."""
    shadow = frame.state.shadows.get(access.region.name)
    if shadow is None or access.region.space not in ("shared", "local"):
        return
    for start in range(0, width, shadow.word):
        missing = shadow.unwritten((access.storage + start) // shadow.word)
        if missing is not None:
            offset = int(access.offsets[int(np.argmax(missing))]) + start
            kind = f"uninitialised-{access.region.space}"
            _note(frame, access, instruction, kind, missing, f"byte {offset} was never written")


def check_in_flight(frame: Frame, access: Access, width: int, instruction: Instruction) -> None:
    """Notes an access to shared words that an asynchronous copy is about to write."""
    if not frame.state.copies or access.region.space != "shared":
        return
    for start in range(0, width, FLIGHT_WORD):
        wrong = frame.state.flight[(access.storage + start) // FLIGHT_WORD]
        if wrong.any():
            _note(frame, access, instruction, "in-flight", wrong, "cp.async into this place has not been waited for")


def _width(instruction: Instruction) -> tuple[int, str]:
    """How many numbers of which type."""
    kind = instruction.opcode[-1]
    lanes = next((int(part[1:]) for part in instruction.opcode if part in ("v2", "v4", "v8")), 1)
    return lanes, kind


def load(instruction: Instruction, scope: Scope) -> Action:
    """``ld.space.v4.f32 {a, b, c, d}, [address]``. Raises PtxError for forms that are not interpreted."""
    number, kind = _width(instruction)
    space = space_of(instruction)
    if kind == "b128":
        raise unknown(instruction)
    targets = instruction.operands[0].parts if isinstance(instruction.operands[0], Vector) else instruction.operands[:1]
    writers = [scope.writer(target, kind, instruction) for target in targets]
    addresses = address_reader(instruction.operands[1], space, instruction, scope)
    dtype, size = numpy_type(kind), width_of(kind) // 8
    width, promised = number * size, "nc" in instruction.opcode
    if space == "param":
        return _parameter(instruction, scope)

    def act(frame: Frame) -> None:
        found = locate(frame, addresses(frame), width, instruction)
        values = [np.empty(frame.count, dtype) for _ in writers] if len(found) > 1 else []
        for access in found:
            count(frame, access, width, "load")
            _note_read(frame, access, width, instruction, promised)
            view, index = access.region.view(dtype), access.storage // size
            if access.places is None:
                values = [view[index + step] for step in range(number)]
            else:
                for step, value in enumerate(values):
                    value[access.places] = view[index + step]
        for write, value in zip(writers, values, strict=True):
            write(frame, value)

    return act


def _note_read(frame: Frame, access: Access, width: int, instruction: Instruction, promised: bool) -> None:
    check_in_flight(frame, access, width, instruction)
    check_written(frame, access, width, instruction)
    if promised:
        frame.state.read_only.setdefault(access.region.name, instruction)
    else:
        touch(frame, access, width, instruction, Shadow.read)


def _parameter(instruction: Instruction, scope: Scope) -> Action:
    """Parameters are the same for every lane: one number stands for all."""
    _, kind = _width(instruction)
    targets = instruction.operands[0].parts if isinstance(instruction.operands[0], Vector) else instruction.operands[:1]
    writers = [scope.writer(target, kind, instruction) for target in targets]
    address = instruction.operands[1]
    if not isinstance(address, Address):
        raise unknown(instruction)
    read = scope.reader(address.base, "u64", instruction)
    dtype, size = numpy_type(kind), width_of(kind) // 8

    def act(frame: Frame) -> None:
        base = read(frame)
        if base.ndim:
            raise unknown(instruction)
        place = int(base) + address.offset
        region = frame.state.memory.regions[place >> RANGE_BITS]
        for step, write in enumerate(writers):
            write(frame, region.view(dtype)[(place - region.base) // size + step].reshape(()))

    return act


def store(instruction: Instruction, scope: Scope) -> Action:
    """``st.space.v4.f32 [address], {a, b, c, d}``. Raises PtxError for forms that are not interpreted."""
    _, kind = _width(instruction)
    space = space_of(instruction)
    if kind == "b128":
        raise unknown(instruction)
    target, source = instruction.operands
    parts = source.parts if isinstance(source, Vector) else (source,)
    readers = [scope.reader(part, kind, instruction) for part in parts]
    addresses = address_reader(target, space, instruction, scope)
    dtype, size = numpy_type(kind), width_of(kind) // 8
    width = len(readers) * size

    def act(frame: Frame) -> None:
        values = [frame.spread(read(frame)) for read in readers]
        for access in locate(frame, addresses(frame), width, instruction):
            count(frame, access, width, "store")
            check_in_flight(frame, access, width, instruction)
            touch(frame, access, width, instruction, Shadow.write)
            if access.region.space == "global":
                frame.state.dirty[access.positions] = True
            view, index = access.region.view(dtype), access.storage // size
            for step, value in enumerate(values):
                view[index + step] = value if access.places is None else value[access.places]

    return act


BUILDERS: Mapping[str, Callable[[Instruction, Scope], Action]] = {"ld": load, "ldu": load, "st": store}
