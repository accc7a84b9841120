"""What a launch did, in numbers: instructions by class, memory traffic by space, bank conflicts, barriers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kernelgen.simulators.ptx.language.nodes import Instruction
from kernelgen.simulators.ptx.language.types import is_float, opcode_types

SECTOR = 32  # bytes that the device moves at least
BANKS, BANK_BYTES = 32, 4
CLASSES: Mapping[str, tuple[str, ...]] = {
    "special": ("ex2", "lg2", "sin", "cos", "tanh", "rcp", "sqrt", "rsqrt"),
    "convert": ("cvt",),
    "compare": ("setp", "set", "selp", "slct", "testp"),
    "move": ("mov", "cvta"),
    "control": ("bra", "brx", "ret", "exit", "trap"),
    "warp": ("shfl", "vote", "match", "redux", "activemask"),
    "matrix": ("mma",),
    "barrier": ("bar", "barrier", "membar", "fence"),
    "load": ("ld", "ldu", "ldmatrix"),
    "store": ("st",),
    "atomic": ("atom", "red"),
    "async": ("cp",),
}
CLASS_OF = {opcode: name for name, opcodes in CLASSES.items() for opcode in opcodes}


@dataclass(frozen=True)
class Traffic:
    """Accesses of one kind to one space.

    A request is one warp's instruction. Global and local traffic moves ``sectors`` of 32 bytes; shared memory serves a
    request in ``cycles``, of which ``conflicts`` are beyond what its bytes need. ``bytes`` are those the lanes asked for.
    """

    requests: int = 0
    bytes: int = 0
    sectors: int = 0
    cycles: int = 0
    conflicts: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        """Both together."""
        return Traffic(
            self.requests + other.requests,
            self.bytes + other.bytes,
            self.sectors + other.sectors,
            self.cycles + other.cycles,
            self.conflicts + other.conflicts,
        )

    @property
    def sectors_per_needed(self) -> float:
        """Sectors moved for each 32 bytes asked for: 1.0 is fully coalesced, less is shared between lanes."""
        return self.sectors * SECTOR / self.bytes if self.bytes else 0.0


@dataclass(frozen=True)
class Counts:
    """The totals of a launch: warp instructions by class, traffic by ``"global load"`` and the like, barriers by block.

    ``sectors`` are those of global memory by the number of the buffer among the arguments, and load, store or atomic.
    ``machine`` are estimated machine instructions by class.
    """

    instructions: Mapping[str, int]
    traffic: Mapping[str, Traffic]
    barriers: int
    approximate: tuple[str, ...] = ()
    sectors: Mapping[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])
    machine: Mapping[str, float] = field(default_factory=dict[str, float])

    def of(self, kind: str) -> Traffic:
        """The traffic of one kind, ``"shared store"`` for example; empty where there was none."""
        return self.traffic.get(kind, Traffic())


@dataclass(eq=False)
class Tally:
    """Counts while they grow."""

    runs: Counter[int] = field(default_factory=Counter[int])
    traffic: dict[str, Traffic] = field(default_factory=dict[str, Traffic])
    barriers: int = 0
    sectors: Counter[tuple[int, str]] = field(default_factory=Counter[tuple[int, str]])

    def access(self, kind: str, traffic: Traffic) -> None:
        """Adds one instruction's accesses."""
        self.traffic[kind] = self.traffic.get(kind, Traffic()) + traffic


def class_of(instruction: Instruction) -> str:
    """The class that an instruction is counted in."""
    base = instruction.opcode[0]
    if base == "div":
        return "special" if is_float(instruction.opcode[-1]) else "integer"
    if base in CLASS_OF:
        return CLASS_OF[base]
    kinds = opcode_types(instruction.opcode)
    kind = kinds[-1] if kinds else ""
    if not is_float(kind):
        return "integer"
    return {"f32": "float", "f64": "double"}.get(kind, "half")


def sector_count(warps: np.ndarray, offsets: np.ndarray, width: int) -> tuple[int, int]:
    """Requests, and the 32-byte sectors that each touches, summed; an access of ``width`` <= 32 bytes lies in one."""
    keys = (warps << 40) + (offsets >> 5)
    steps = np.diff(keys)
    if not (steps >= 0).all():
        steps = np.diff(np.sort(keys))
    return _distinct(warps), 1 + int(np.count_nonzero(steps))


def bank_cycles(warps: np.ndarray, lanes: np.ndarray, offsets: np.ndarray, width: int) -> tuple[int, int, int]:
    """Requests, cycles, and cycles beyond the least, of one access to shared memory.

    A warp is served 128 bytes at a time: in one go up to 4 bytes a lane, by half warps for 8, by quarters for 16.
    Lanes that want different words of one bank wait for each other; the same word is given to all at once.
    """
    words = max(width // BANK_BYTES, 1)
    group = warps * 4 + lanes * words // BANKS
    groups = _distinct(group)
    first = offsets // BANK_BYTES
    keys = np.sort(np.concatenate([(group << 40) + (first + word) for word in range(words)]))
    keys = keys[np.diff(keys, prepend=-1) != 0]
    owners = np.cumsum(np.diff(keys >> 40, prepend=keys[0] >> 40) != 0)
    waiting = np.bincount(owners * BANKS + (keys & (BANKS - 1)), minlength=groups * BANKS)
    cycles = int(waiting.reshape(-1, BANKS).max(axis=1).sum())
    return _distinct(warps), cycles, cycles - groups


def _distinct(rising: np.ndarray) -> int:
    """How many different numbers a rising array has."""
    return 1 + int(np.count_nonzero(np.diff(rising)))
