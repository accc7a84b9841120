"""What a fuzzer finds for one sample."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Kind(Enum):
    """The end that a sample came to."""

    PASSED = "passed"
    REFUSED = "refused"
    """An error of a documented class, raised where the input was read."""
    EXPLAINED = "explained"
    """The results differ, and triage says why both may."""
    WRONG = "wrong"
    INTERNAL = "internal"
    """Any other exception, and a documented one where it comes too late."""
    CRASH = "crash"
    HANG = "hang"


FINDINGS = frozenset({Kind.WRONG, Kind.INTERNAL, Kind.CRASH, Kind.HANG})


@dataclass(frozen=True)
class Outcome:
    """The end and its class; ``reason`` is the same for all samples of a class, ``message`` belongs to this one."""

    kind: Kind
    reason: str = ""
    message: str = ""

    @property
    def is_finding(self) -> bool:
        """Whether something has to be mended."""
        return self.kind in FINDINGS

    def resembles(self, other: Outcome) -> bool:
        """Whether both are of one class."""
        return (self.kind, self.reason) == (other.kind, other.reason)


PASSED = Outcome(Kind.PASSED)


def internal(where: str, error: BaseException) -> Outcome:
    """An exception that nobody should meet: its class, and the line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/graphkernel/" in frame.filename or "/kernelgen/" in frame.filename]
    last = (ours or frames)[-1]
    place = f"{Path(last.filename).name}:{last.name}"
    return Outcome(Kind.INTERNAL, f"{where}: {type(error).__name__} in {place}", _short(str(error)))


def _short(message: str) -> str:
    return message if len(message) <= 2000 else f"{message[:2000]} ..."
