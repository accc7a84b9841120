"""What the pipes did, in the order in which they did it, without data: enough to prove the order again with less of it.

A run that keeps a ledger computes nothing: what an instruction touches follows from its arguments.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelgen.simulators.ascendc.order.core_flags import Seat
from kernelgen.simulators.ascendc.order.flags import Key
from kernelgen.simulators.ascendc.state.instruction import Touch

NOW = -1
"""The number of the issue of what is done at once."""
ISSUE, WORK, SET, WAIT, BARRIER, DRAIN, CROSS_SET, CROSS_WAIT = (
    "issue", "work", "set", "wait", "barrier", "drain", "cross set", "cross wait",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a pipe of a core did, or that its scalar unit issued.

    ``issued`` is the number of the event at which the scalar unit issued it; ``number`` counts the pipe's instructions.
    """

    kind: str
    seat: Seat
    pipe: int
    issued: int
    line: int
    number: int = 0
    key: Key | None = None
    mode: int = 0
    identity: int = 0
    touches: tuple[Touch, ...] = ()


@dataclass
class Ledger:
    """The events of a run. ``cut`` says that the run was longer than its limit of steps."""

    events: list[Event] = field(default_factory=list[Event])
    cut: bool = False

    def issue(self, seat: Seat, pipe: int, line: int) -> int:
        """Writes down that something will be done later; gives its number."""
        self.events.append(Event(ISSUE, seat, pipe, NOW, line))
        return len(self.events) - 1

    def note(self, event: Event) -> None:
        """Writes an event down."""
        self.events.append(event)
