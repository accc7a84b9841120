"""The flags of one core: set or not, and which wait cleared each last."""

from __future__ import annotations

from collections.abc import Iterator

from kernelgen.ascendc.clocks import FlagTable
from kernelgen.ascendc.types import EVENTS
from kernelgen.machines.ascend.description import Machine
from kernelgen.simulators.ascendc.order.vector_clocks import Mark

Key = tuple[str, str, int]
"""(source, target, event id)."""


class Flags(FlagTable[Key, Mark]):
    """Which flags of the machine are set."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self._machine = machine

    def problem(self, source: str, target: str, identity: int) -> str:
        """Why there is no such flag; empty where there is."""
        if f"{source}_{target}" not in EVENTS:
            return f"no flag leads from {source} to {target}"
        if not 0 <= identity < self._machine.event_ids:
            return f"event id {identity}, {self._machine.name} has 0 to {self._machine.event_ids - 1}"
        if identity in self._machine.reserved_ids:
            return f"event id {identity} is the vendor's"
        return ""

    def left(self) -> Iterator[tuple[int, str]]:
        """(line, name) of the flags that are set."""
        for (source, target, identity), mark in self._set.items():
            yield mark.line, f"{source}_{target} {identity}"
