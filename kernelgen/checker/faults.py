"""What the checker may find wrong with a nest, and how it says so."""

from __future__ import annotations

from dataclasses import dataclass

CHECKS: dict[str, str] = {
    "form": "the nest keeps the numbered invariants of nests",
    "bounds": "every index is inside its buffer",
    "initialised": "what is read or accumulated into has been stored before, or is an input",
    "inputs": "no input is written",
    "kept": "no value is stored over before somebody reads it",
    "parallel": "iterations of a loop marked parallel share no element that one of them writes",
    "interleave": "iterations of a loop marked interleave share no element that one of them writes",
    "vector": "iterations of a loop marked vector share no written element, but for accumulations of one function",
    "outputs": "every element of every output is written",
    "terms": "every element holds the term over the inputs that the description gives it",
}
"""The closed list of checks. ``initialised``, ``kept``, ``outputs`` and ``terms`` need a run of all iterations."""

WHOLE_RUN: tuple[str, ...] = ("initialised", "kept", "outputs", "terms")
"""The checks that a sample of the iterations cannot show."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: ``element`` is the witness, ``statement`` the text of the statement that met it."""

    check: str
    element: str
    message: str
    statement: str = ""

    def __post_init__(self) -> None:
        if self.check not in CHECKS:
            raise ValueError(f"check {self.check!r} is not declared in CHECKS")

    def __str__(self) -> str:
        place = f" in `{self.statement}`" if self.statement else ""
        return f"{self.check}: {self.element} {self.message}{place}"


class Found(Exception):
    """Ends a run at its first fault; never leaves this package."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault
