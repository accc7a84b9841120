"""Faults that a run shows, one for each kind and line of the text; a further one only counts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Generic, TypeVar


@dataclass(frozen=True)
class Finding:
    """One fault: ``text`` is the instruction of the line, ``where`` is what ran it first, ``count`` how often it was seen."""

    kind: str
    line: int
    text: str
    where: str
    message: str
    count: int = 1

    @property
    def times(self) -> str:
        """How often it was seen, as a remark; empty for once."""
        return f" ({self.count} times)" if self.count > 1 else ""


AnyFinding = TypeVar("AnyFinding", bound=Finding)


class Stop(Exception):
    """Ends a run after a fault that leaves nothing sensible to go on with."""


class Findings(Generic[AnyFinding]):
    """The faults of a run; ``kinds`` is the closed list of what they may be."""

    def __init__(self, kinds: Collection[str]) -> None:
        self._kinds = kinds
        self._found: dict[tuple[str, int], AnyFinding] = {}

    def note(self, finding: AnyFinding) -> None:
        """Keeps a fault, or counts it to the first of its kind and line. Raises ValueError for a kind that is not declared."""
        if finding.kind not in self._kinds:
            raise ValueError(f"finding {finding.kind!r} is not declared in KINDS")
        key = finding.kind, finding.line
        known = self._found.get(key)
        self._found[key] = finding if known is None else replace(known, count=known.count + finding.count)

    def all(self) -> tuple[AnyFinding, ...]:
        """Every fault, in the order of discovery."""
        return tuple(self._found.values())
