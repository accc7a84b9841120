"""The lanes that execute an instruction together, and the registers of a gang.

A register holds one number for each lane of the gang, or a single one while all lanes agree (a constant, a parameter).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernelgen.simulators.ptx.language.nodes import Instruction

if TYPE_CHECKING:
    from kernelgen.simulators.ptx.state.state import State


class Frame:
    """Some lanes of a gang: ``index`` holds their positions in rising order, None means all."""

    __slots__ = ("count", "index", "registers", "state")

    def __init__(self, state: State, index: np.ndarray | None) -> None:
        self.state = state
        self.index = index
        self.registers = state.registers
        self.count = state.lanes.count if index is None else len(index)

    def pick(self, values: np.ndarray) -> np.ndarray:
        """The part of an array over the gang that belongs to these lanes."""
        return values if self.index is None else values[self.index]

    def spread(self, value: np.ndarray) -> np.ndarray:
        """One number for each of these lanes, where all of them may share a single one."""
        return value if value.ndim else np.full(self.count, value)

    def read(self, slot: int) -> np.ndarray:
        """The bits in a register."""
        value = self.registers[slot]
        return value if self.index is None or not value.ndim else value[self.index]

    def write(self, slot: int, bits: np.ndarray) -> None:
        """New bits for a register of these lanes; arrays may be shared between registers, so none is changed in place."""
        if self.index is None:
            self.registers[slot] = bits
            return
        old = self.registers[slot]
        new = old.copy() if old.ndim else np.full(self.state.lanes.count, old)
        new[self.index] = bits
        self.registers[slot] = new

    def narrow(self, mask: np.ndarray) -> Frame | None:
        """The lanes where ``mask`` holds, None where it holds for none."""
        if mask.all():
            return self
        if not mask.any():
            return None
        positions = np.flatnonzero(mask)
        return Frame(self.state, positions if self.index is None else self.index[positions])

    def positions(self) -> np.ndarray:
        """The lanes' positions in the gang."""
        return np.arange(self.count) if self.index is None else self.index

    def warps(self) -> np.ndarray:
        """The warp of each lane."""
        return self.pick(self.state.lanes.warp)

    def name(self, position: int) -> str:
        """One of these lanes as a person would write it."""
        return self.state.lanes.name(position if self.index is None else int(self.index[position]))

    def complain(self, kind: str, instruction: Instruction, wrong: np.ndarray, message: str) -> None:
        """Notes a fault of the lanes where ``wrong`` holds, named by the first of them."""
        first = int(np.argmax(wrong))
        self.state.findings.add(kind, instruction, self.name(first), message, int(np.count_nonzero(wrong)))
