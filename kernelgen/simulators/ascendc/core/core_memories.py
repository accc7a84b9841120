"""What one block of a core leaves to the next: memories, and plans of the calls that were made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelgen.simulators.ascendc.core.decode import Raw
from kernelgen.simulators.ascendc.order.flags import Key
from kernelgen.simulators.ascendc.state.instruction import Operand, Work
from kernelgen.simulators.ascendc.state.memory import Memory


@dataclass(frozen=True)
class Declared:
    """A tensor's memory and bytes."""

    tensor: Operand
    elements: int


@dataclass(frozen=True)
class Planned:
    """A pipe and what it does for a call."""

    pipe: int
    work: Work


MOST_PLANS = 4096
"""Plans that are kept; copies from ever other places would fill the memory."""


class Bench:
    """A core's memories by place, and its plans by (number of the call, values of its arguments).

    Plans hold for the tensors that were declared last; ``where`` is the block at work.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.where = ""
        self.plans: dict[tuple[int, tuple[Raw, ...]], Planned] = {}
        self.flags: dict[tuple[int, tuple[Raw, ...]], Key] = {}
        self._sizes = sizes
        self._memories: dict[str, Memory] = {}
        self._tensors: dict[str, Declared] = {}

    def begin(self, where: str) -> None:
        """Poisons the memories, for another block."""
        self.where = where
        for memory in self._memories.values():
            memory.clear()

    def memory(self, place: str) -> Memory:
        """The memory of that name."""
        if place not in self._memories:
            self._memories[place] = Memory(place, self._sizes[place])
        return self._memories[place]

    def keep(self, key: tuple[int, tuple[Raw, ...]], planned: Planned) -> None:
        """Keeps a plan."""
        if len(self.plans) >= MOST_PLANS:
            self.plans.clear()
        self.plans[key] = planned

    def declared(self, name: str, tensor: Declared) -> Declared:
        """The tensor of that name from now on."""
        if self._tensors.get(name) != tensor:
            self._tensors[name] = tensor
            self.plans.clear()
        return tensor
