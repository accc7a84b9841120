"""The flags of one core: set or not, and which wait cleared each last."""

from __future__ import annotations

from collections.abc import Iterator

from kernelgen.ascendc.types import EVENTS
from kernelgen.machines.ascend.description import Machine
from kernelgen.simulators.ascendc.order.vector_clocks import Mark

Key = tuple[str, str, int]
"""(source, target, event id)."""


class Flags:
    """Which flags are set."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._set: dict[Key, tuple[Mark, int]] = {}
        self._waits: dict[Key, int] = {}

    def problem(self, source: str, target: str, identity: int) -> str:
        """Why there is no such flag; empty where there is."""
        if f"{source}_{target}" not in EVENTS:
            return f"no flag leads from {source} to {target}"
        if not 0 <= identity < self._machine.event_ids:
            return f"event id {identity}, {self._machine.name} has 0 to {self._machine.event_ids - 1}"
        if identity in self._machine.reserved_ids:
            return f"event id {identity} is the vendor's"
        return ""

    def set(self, key: Key, mark: Mark, line: int) -> bool:
        """Sets a flag; False where it is set already."""
        if key in self._set:
            return False
        self._set[key] = (mark, line)
        return True

    def take(self, key: Key) -> Mark | None:
        """Clears a flag; None where it is not set."""
        found = self._set.pop(key, None)
        return None if found is None else found[0]

    def waited(self, key: Key, number: int) -> None:
        """Writes down the wait that cleared the flag."""
        self._waits[key] = number

    def last_wait(self, key: Key) -> int | None:
        """The number of that wait in the target's pipe."""
        return self._waits.get(key)

    def left(self) -> Iterator[tuple[int, str]]:
        """(line, name) of the flags that are set."""
        for (source, target, identity), (_, line) in self._set.items():
            yield line, f"{source}_{target} {identity}"
