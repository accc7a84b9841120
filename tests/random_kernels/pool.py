"""Random kernels over a crew (:mod:`kernelgen.farm`). A process that dies or does not answer is a failure of its seed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from kernelgen import options
from kernelgen.farm import answers, call, crew_of
from kernelgen.farm.sandbox import TaskError, told
from kernelgen.system.answering import Limit, ProcessDied, ProcessLate
from kernelgen.targets.cpu.runtime.faults import STATUS, report_faults
from kernelgen.verify.worker_diary import Diary
from tests.random_kernels.check import Kind, Outcome, check
from tests.random_kernels.generate import kernel
from tests.random_kernels.minimize import minimize
from tests.random_kernels.stored import to_json
from tests.random_kernels.traits import traits
from tests.random_kernels.values import Sample

PATIENCE = 20
"""How much longer than a seed's own time it may take until it answers: other programs want the processor too."""


@dataclass(frozen=True)
class Job:
    """What every process needs to know."""

    target: str
    elements: int = 400
    steps: int = 40
    families: tuple[str, ...] | None = None
    seconds: float = 60.0
    guard: bool = False


@dataclass(frozen=True)
class Result:
    """What became of one seed; ``fault`` is the small reproducer of a failure (see :mod:`tests.random_kernels.stored`)."""

    seed: int
    outcome: Outcome
    operators: Counter[str]
    traits: Counter[str]
    fault: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        counts = {"operators": dict(self.operators), "traits": dict(self.traits)}
        return {"seed": self.seed, "outcome": asdict(self.outcome), "fault": self.fault, **counts}

    @staticmethod
    def from_json(document: dict[str, Any]) -> Result:
        """The inverse of :meth:`to_json`."""
        outcome = Outcome(**{**document["outcome"], "kind": Kind(document["outcome"]["kind"])})
        counts = {name: Counter(document[name]) for name in ("operators", "traits")}
        return Result(document["seed"], outcome, fault=document["fault"], **counts)


def sample_of(seed: int, job: Job) -> Sample:
    """The kernel of a seed; some are of larger extents (for parallel loops and tiles) and few operators.

    The plain Python target has neither and takes a microsecond for every step: its kernels are a tenth as large.
    """
    random = Random(seed)
    scale = random.choice((1,) * 20 + (10, 10, 100))
    scale = min(scale, 10) if job.target == "python" else scale
    if scale > 1:
        return kernel(random, scale * job.elements, max(job.steps // (2 * scale), 2), job.families)
    return kernel(random, job.elements, job.steps, job.families)


def one_seed(seed: int, job: Job, diary: Diary | None = None) -> Result:
    """Draws, checks, and makes a failure small."""
    sample = sample_of(seed, job)
    operators = Counter(node.op.name for node in sample.desc.operators)
    outcome = check(sample, job.target, diary)
    if outcome.kind is not Kind.FAILED:
        return Result(seed, outcome, operators, traits(sample.desc))
    small = minimize(sample, lambda candidate: check(candidate, job.target, diary).resembles(outcome), job.seconds / 2)
    return Result(
        seed, outcome, operators, traits(sample.desc), fault(small, seed, job, check(small, job.target, diary))
    )


def fault(sample: Sample, seed: int, job: Job, outcome: Outcome) -> dict[str, Any]:
    """The reproducer of a failure."""
    return to_json(sample, target=job.target, seed=seed, reason=outcome.reason, message=outcome.message)


def run(seeds: Sequence[int], job: Job, processes: int, executor: str | None = None) -> Iterator[Result]:
    """The results as they come; ``executor`` is a text of :func:`kernelgen.farm.crew_of`."""
    requests = ((seed, json.dumps({"seed": seed, "job": asdict(job)}).encode()) for seed in seeds)
    with crew_of(executor, max(1, min(processes, len(seeds)))) as crew:
        for _, answer in answers(worked, requests, crew):
            yield Result.from_json(answer)


def worked(request: bytes) -> bytes:
    """The reply to a request of :func:`run`: a result, also where the process that checks dies or never ends."""
    asked = json.loads(request)
    seed, job = asked["seed"], Job(**asked["job"])
    diary = Diary.new() if job.guard else None
    try:
        given = json.dumps({**asked, "diary": str(diary.path) if diary else None}).encode()
        return call("tests.random_kernels.pool:worked_here", given, Limit(job.seconds, PATIENCE))
    except ProcessLate:
        outcome = Outcome(Kind.FAILED, "time-limit", f"not finished after {job.seconds:g} s")
    except ProcessDied as death:
        is_fault = diary is not None and death.code == STATUS
        message = diary.read() if diary and is_fault else f"the process ended with code {death.code}"
        outcome = Outcome(Kind.FAILED, "fault" if is_fault else "crash", message)
    except TaskError as error:
        outcome = Outcome(Kind.FAILED, "exception", str(error))
    finally:
        if diary:
            diary.remove()
    return told(_lost(seed, job, outcome).to_json())


def worked_here(request: bytes) -> bytes:
    """The result of a request, as JSON, in a process that may die of it."""
    asked = json.loads(request)
    options.limit_threads(2)
    diary = Diary(Path(asked["diary"])) if asked["diary"] else None
    if diary:
        report_faults(diary.descriptor)
    found = one_seed(asked["seed"], Job(**asked["job"]), diary)
    if diary:
        diary.close()
    return json.dumps(found.to_json()).encode()


def _lost(seed: int, job: Job, outcome: Outcome) -> Result:
    sample = sample_of(seed, job)
    operators = Counter(node.op.name for node in sample.desc.operators)
    return Result(seed, outcome, operators, traits(sample.desc), fault(sample, seed, job, outcome))
