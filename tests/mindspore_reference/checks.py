"""What is checked of a record, and what comes out of a check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Check(Enum):
    """The value is how the report calls it."""

    FLAGS = "effective flags"
    MESSAGES = "messages about flags"
    PASSES = "passes and whether they run"
    PARTITION = "each kernel lies inside one of ours"
    OUTSIDE = "operators that a flag keeps out stay out"
    LAUNCHES = "no more launches"
    NUMBERS = "same numbers"
    RECORD = "the record can be read"


@dataclass(frozen=True)
class Outcome:
    """A fault, or a difference that is meant and has a reason."""

    check: Check
    message: str
    is_failure: bool

    @staticmethod
    def failure(check: Check, message: str) -> Outcome:
        """Something is wrong."""
        return Outcome(check, message, is_failure=True)

    @staticmethod
    def deviation(check: Check, reason: str) -> Outcome:
        """Something differs on purpose."""
        return Outcome(check, reason, is_failure=False)

    def __str__(self) -> str:
        return f"{'FAILED' if self.is_failure else 'differs'}: {self.check.value}: {self.message}"
