"""Findings that were kept: one JSON file each, replayed by a test for ever."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.fuzzer import Document
from tests.fuzz.outcome import Outcome
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


def replay(cases: Sequence[Kept]) -> list[Outcome]:
    """The cases of one fuzzer once more, in a process that may die of them."""
    tasks = (Task(case.seed, case.sample, case.level) for case in cases)
    return [result.outcome for result in run(tasks, Job(cases[0].fuzzer), 1)]
