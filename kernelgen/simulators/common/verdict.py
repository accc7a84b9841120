"""What the report of any run says: whether it came to its end, and the faults that it showed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from kernelgen.simulators.common.findings import AnyFinding


@dataclass(frozen=True, kw_only=True)
class Verdict(Generic[AnyFinding]):
    """The faults of a run; ``completed`` says that it came to its end."""

    findings: tuple[AnyFinding, ...]
    completed: bool

    @property
    def clean(self) -> bool:
        """Whether the run came to its end and nothing was found."""
        return self.completed and not self.findings

    def kinds(self) -> frozenset[str]:
        """The kinds of faults that were found."""
        return frozenset(finding.kind for finding in self.findings)
