"""Findings that were kept: one JSON file each, replayed by a test for ever."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

from tests.fuzz.fuzzer import Document
from tests.fuzz.pool import Job, Result, Task, run

FOLDER = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Kept:
    """A sample with its fuzzer and level, and what it once came to."""

    fuzzer: str
    level: int
    seed: int
    was: str
    sample: Document

    @property
    def name(self) -> str:
        """For a file."""
        words = re.sub(r"[^a-z0-9]+", "_", self.was.lower()).strip("_")
        return f"{self.fuzzer}_{self.seed}_{words[:60]}"


def keep(result: Result, job: Job, folder: Path) -> Path:
    """Writes a finding; one without a sample (the process died) is kept by its seed."""
    outcome = result.outcome
    kept = Kept(job.name, job.level, result.task.seed, f"{outcome.kind.value}: {outcome.reason}", result.sample)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{kept.name}.json"
    path.write_text(json.dumps(vars(kept), indent=1) + "\n")
    return path


def read(path: Path) -> Kept:
    """A case that was kept."""
    return Kept(**json.loads(path.read_text()))


def replay(kept: Kept, job: Job | None = None) -> Result:
    """The case once more, in a process of its own."""
    job = replace(job or Job(kept.fuzzer), name=kept.fuzzer, level=kept.level)
    return next(iter(run([Task(kept.seed, kept.sample)], job, 1)))
