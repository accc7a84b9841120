"""Operands as functions of a frame: readers give typed numbers, writers take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from kernelgen.simulators.ptx.language.errors import PtxError
from kernelgen.simulators.ptx.language.nodes import Immediate, Instruction, Negated, Operand, Register, Symbol
from kernelgen.simulators.ptx.language.types import BITS, is_float, numpy_type, width_of
from kernelgen.simulators.ptx.state.frame import Frame
from kernelgen.simulators.ptx.state.lanes import WARP

Reader = Callable[[Frame], np.ndarray]
Writer = Callable[[Frame, np.ndarray], None]
Action = Callable[[Frame], None]


@dataclass(frozen=True)
class Scope:
    """What an instruction's names stand for: registers by slot and width, variables by address.

    ``unsure`` holds the registers that may hold nothing when they are read; ``checks`` says whether a read looks.
    """

    slots: Mapping[str, int]
    widths: Mapping[str, int]
    addresses: Mapping[str, int]
    unsure: frozenset[str] = field(default_factory=frozenset[str])
    checks: bool = True

    def reader(self, operand: Operand, kind: str, instruction: Instruction) -> Reader:
        """Reads an operand as ``kind``. Raises PtxError for one that cannot be read so."""
        match operand:
            case Register(name) if name in self.slots:
                return self._checked(name, self._register(name, kind, instruction), instruction)
            case Register(name):
                return _special(name, kind, instruction)
            case Negated(register):
                inner = self.reader(register, "pred", instruction)
                return lambda frame: ~inner(frame)
            case Immediate():
                value = _constant(operand, kind)
                return lambda frame: value
            case Symbol("WARP_SZ", 0):
                width = np.array(WARP).astype(BITS[width_of(kind)])
                return lambda frame: width
            case Symbol(name, offset) if name in self.addresses:
                address = np.array(self.addresses[name] + offset).astype(BITS[width_of(kind)])
                return lambda frame: address
            case _:
                raise PtxError(f"cannot read operand {operand} of `{instruction}`", instruction.place.line)

    def writer(self, operand: Operand, kind: str, instruction: Instruction) -> Writer:
        """Writes numbers of type ``kind``; a wider register takes them extended by their sign.

        Raises PtxError for what is no register, or too narrow.
        """
        if not isinstance(operand, Register):
            raise PtxError(f"cannot write operand {operand} of `{instruction}`", instruction.place.line)
        if operand.name == "_":
            return _forget
        slot, width = self.slots[operand.name], self.widths[operand.name]
        bits, same = BITS[width], width == width_of(kind)
        if width < width_of(kind):
            raise PtxError(f"register {operand} is too narrow for {kind} in `{instruction}`", instruction.place.line)
        if operand.name in self.unsure:
            return _noting(slot, bits, same)
        if same:
            return lambda frame, value: frame.write(slot, value.view(bits))
        return lambda frame, value: frame.write(slot, value.astype(bits))

    def _register(self, name: str, kind: str, instruction: Instruction) -> Reader:
        slot, width, wanted = self.slots[name], self.widths[name], width_of(kind)
        dtype = numpy_type(kind)
        if wanted > width:
            raise PtxError(f"register {name} is too narrow for {kind} in `{instruction}`", instruction.place.line)
        if wanted < width:
            narrow = BITS[wanted]
            return lambda frame: frame.read(slot).astype(narrow).view(dtype)
        if dtype == BITS[width]:
            return lambda frame: frame.read(slot)
        return lambda frame: frame.read(slot).view(dtype)

    def _checked(self, name: str, read: Reader, instruction: Instruction) -> Reader:
        if name not in self.unsure or not self.checks:
            return read
        slot = self.slots[name]

        def check(frame: Frame) -> np.ndarray:
            missing = ~frame.pick(frame.state.written(slot))
            if missing.any():
                frame.complain(
                    "uninitialised-register", instruction, missing, f"register {name} holds nothing that was written"
                )
            return read(frame)

        return check


def _noting(slot: int, bits: np.dtype, same: bool) -> Writer:
    """Writes, and notes which lanes have a value now."""

    def write(frame: Frame, value: np.ndarray) -> None:
        written = frame.state.written(slot)
        written[slice(None) if frame.index is None else frame.index] = True
        frame.write(slot, value.view(bits) if same else value.astype(bits))

    return write


def _forget(frame: Frame, value: np.ndarray) -> None:
    """The sink ``_``."""


def _special(name: str, kind: str, instruction: Instruction) -> Reader:
    dtype = numpy_type(kind)

    def read(frame: Frame) -> np.ndarray:
        value = frame.state.special(name)
        if value is None:
            raise PtxError(f"special register {name} is not known", instruction.place.line)
        return (value if not value.ndim else frame.pick(value)).astype(dtype)

    return read


def _constant(operand: Immediate, kind: str) -> np.ndarray:
    """A constant as ``kind``; a double constant is rounded where a single is wanted."""
    width = width_of(kind)
    if operand.width and operand.width != width and is_float(kind):
        value = np.array(operand.value, BITS[operand.width]).view(np.float32 if operand.width == 32 else np.float64)
        return value.astype(numpy_type(kind))
    if kind == "pred":
        return np.array(bool(operand.value))
    bits = np.array(operand.value & ((1 << width) - 1), dtype=BITS[width])
    return bits.view(numpy_type(kind))
