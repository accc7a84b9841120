"""What a run leaves behind: counts by level, refusals and explanations by reason, findings, versions, date.

A record may grow: a later run goes on behind the last seed of its level and adds to what is there.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import platform
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.outcome import Kind
from tests.fuzz.pool import Result

PACKAGES = ("numpy", "onnx", "onnxruntime", "llvmlite", "islpy", "ml_dtypes")


@dataclass
class Tally:
    """The counts of one level, from seed ``first`` up to and without ``next``."""

    first: int
    next: int
    kinds: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    explained: Counter[str] = field(default_factory=Counter[str])
    findings: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    again: int = 0
    """How many samples were checked once more after a mend, because they had been findings."""

    def add(self, result: Result) -> None:
        """Counts one result."""
        outcome = result.outcome
        self.kinds[outcome.kind.value] += 1
        if outcome.kind is Kind.REFUSED:
            self.refused[outcome.reason] += 1
        if outcome.kind is Kind.EXPLAINED:
            self.explained[outcome.reason] += 1
        if outcome.is_finding:
            self.findings.append(finding(result))

    def take_findings(self) -> list[int]:
        """The seeds of the findings, which count no longer: they are to be checked once more."""
        seeds = [entry["seed"] for entry in self.findings]
        self.kinds.subtract(entry["kind"] for entry in self.findings)
        self.again += len(seeds)
        self.findings = []
        return seeds

    def to_json(self) -> dict[str, Any]:
        """The counts, most frequent reasons first."""
        return {
            "first_seed": self.first, "next_seed": self.next, "samples": self.kinds.total(),
            "checked_again": self.again,
            **{kind.value: self.kinds[kind.value] for kind in Kind},
            "refused_by_reason": dict(self.refused.most_common()),
            "explained_by_reason": dict(self.explained.most_common()), "findings": self.findings,
        }  # fmt: skip

    @staticmethod
    def from_json(entry: dict[str, Any]) -> Tally:
        """The inverse of :meth:`to_json`."""
        return Tally(
            entry["first_seed"], entry["next_seed"], Counter({kind.value: entry[kind.value] for kind in Kind}),
            Counter(entry["refused_by_reason"]), Counter(entry["explained_by_reason"]), entry["findings"],
            entry.get("checked_again", 0),
        )  # fmt: skip


def finding(result: Result) -> dict[str, Any]:
    """A finding as the record lists it."""
    outcome = result.outcome
    return {
        "seed": result.task.seed, "kind": outcome.kind.value, "reason": outcome.reason, "message": outcome.message
    }  # fmt: skip


@dataclass
class Record:
    """The tallies of a fuzzer by level."""

    fuzzer: str
    version: int
    seconds: float = 0.0
    levels: dict[str, Tally] = field(default_factory=dict[str, Tally])

    def tally(self, level: str, seed: int | None) -> Tally:
        """Where a run counts: behind the last seed of the level, or from ``seed`` on, which drops what was there."""
        if seed is not None or level not in self.levels:
            self.levels[level] = Tally(seed or 0, seed or 0)
        return self.levels[level]

    def write(self, path: Path) -> None:
        """As JSON."""
        today = datetime.datetime.now(datetime.UTC).date()
        document = {
            "fuzzer": self.fuzzer, "version": self.version, "date": str(today), "seconds": round(self.seconds),
            "python": platform.python_version(), "machine": platform.machine(),
            "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
            "levels": {level: tally.to_json() for level, tally in sorted(self.levels.items())},
        }  # fmt: skip
        path.write_text(json.dumps(document, indent=1) + "\n")

    @staticmethod
    def read(path: Path, fuzzer: str, version: int) -> Record:
        """What is there; empty when there is nothing, or it is of another fuzzer or generator."""
        if not path.exists():
            return Record(fuzzer, version)
        found = json.loads(path.read_text())
        if (found["fuzzer"], found["version"]) != (fuzzer, version):
            return Record(fuzzer, version)
        levels = {level: Tally.from_json(entry) for level, entry in found["levels"].items()}
        return Record(fuzzer, version, found["seconds"], levels)
