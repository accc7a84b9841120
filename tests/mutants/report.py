"""The mutants of one file on one target, and the sums over many files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kernelgen
from kernelgen.composite.read import load_desc
from kernelgen.composite.specialize import specialize
from kernelgen.errors import KernelgenError
from kernelgen.samples import trials
from kernelgen.samples.inputs import bind_symbols
from kernelgen.samples.smaller_shapes import shrink
from tests.mutants.judge import Draw, Judge, Judged, Run, Verdict

SMALL_BYTES = {"cpu": 32 << 10, "gpu": 16 << 10, "ascend": 8 << 10}
"""Arguments of a kernel whose mutants are judged; the larger ones are scaled down."""


@dataclass(frozen=True)
class Job:
    """A file, and the target whose kernel runs."""

    path: Path
    target: str
    seed: int = 0


@dataclass(frozen=True)
class FileReport:
    """``refusal`` says why there are no mutants: the target refuses the kernel, or it fails on its own inputs."""

    name: str
    mutants: tuple[Judged, ...] = ()
    refusal: str = ""


def judge_file(job: Job) -> FileReport:
    """All mutants of a file."""
    try:
        whole = load_desc(job.path)
        desc = shrink(specialize(whole, bind_symbols(whole)), SMALL_BYTES[job.target])
        runs = ran(desc, job)
    except KernelgenError as refusal:
        return FileReport(job.path.name, refusal=str(refusal))
    faults = [fault for run in runs if (fault := run.fault(desc))]
    if faults:
        return FileReport(job.path.name, refusal=f"the kernel itself does not agree with its meaning: {faults[0]}")
    return FileReport(job.path.name, tuple(Judge(desc, runs).verdicts()))


def ran(desc: kernelgen.KernelDesc, job: Job) -> list[Run]:
    """Inputs and results of the kernel, for each draw."""
    kernel = kernelgen.compile(desc, target=job.target).without_device()
    runs: list[Run] = []
    for inputs in trials(desc, job.seed):
        given = [array.copy() for array in inputs]
        outputs = kernel(*given)
        runs.append(Run(Draw.of(desc, inputs), [*outputs, *(given[i] for i in desc.updated_inputs)]))
    return runs


@dataclass
class Sums:
    """Counts by kind of fault and verdict; every mutant that was not noticed, with its reason."""

    files: int = 0
    refused: dict[str, str] = field(default_factory=dict[str, str])
    counts: Counter[tuple[str, Verdict]] = field(default_factory=Counter[tuple[str, Verdict]])
    unnoticed: list[tuple[str, Judged]] = field(default_factory=list[tuple[str, Judged]])

    def add(self, report: FileReport) -> None:
        """Takes in what was found about one file."""
        self.files += 1
        if report.refusal:
            self.refused[report.name] = report.refusal
        for each in report.mutants:
            self.counts[each.kind, each.verdict] += 1
            if each.verdict is not Verdict.NOTICED:
                self.unnoticed.append((report.name, each))

    def of(self, *verdicts: Verdict) -> int:
        """How many mutants had one of the verdicts."""
        return sum(count for (_, verdict), count in self.counts.items() if verdict in verdicts)

    def table(self) -> list[str]:
        """A line per kind of fault."""
        kinds = sorted({kind for kind, _ in self.counts})
        width = max(map(len, kinds), default=0)
        return [
            f"{kind:{width}} " + ", ".join(f"{self.counts[kind, v]} {v.value}" for v in Verdict if self.counts[kind, v])
            for kind in kinds
        ]

    def to_json(self, target: str, seed: int) -> dict[str, Any]:
        """The record."""
        kinds = sorted({kind for kind, _ in self.counts})
        return {
            "target": target, "seed": seed, "files": self.files, "refused": self.refused,
            **{v.value: self.of(v) for v in Verdict},
            "by_kind": {kind: {v.value: self.counts[kind, v] for v in Verdict if self.counts[kind, v]} for kind in kinds},
            "unnoticed": [[name, each.kind, each.what, each.verdict.value, each.reason] for name, each in self.unnoticed],
        }  # fmt: skip


def spread(paths: Sequence[Path], count: int | None) -> list[Path]:
    """So many of the files, at even distances."""
    if count is None or count >= len(paths):
        return list(paths)
    return [paths[place * len(paths) // count] for place in range(count)]
