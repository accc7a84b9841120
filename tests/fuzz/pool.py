"""Samples over a crew (:mod:`kernelgen.farm`). A process that dies or does not answer is the finding of its sample."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from kernelgen.farm import answers, call, crew_of
from kernelgen.farm.sandbox import TaskError, told
from kernelgen.system.answering import Limit, ProcessDied, ProcessLate
from tests.fuzz.fuzzer import Document, fuzzer, smallest
from tests.fuzz.outcome import Kind, Outcome, internal


@dataclass(frozen=True)
class Job:
    """What every process needs to know. ``name`` is a fuzzer's, or a module's with dots."""

    name: str
    level: int = 2
    seconds: float = 60.0
    """For one sample, and as long again to make a finding small."""
    memory: int = 16 << 30
    """Bytes of address space of a process."""
    shrink: bool = False


@dataclass(frozen=True)
class Task:
    """A seed, or a sample that was kept, with its own level."""

    seed: int
    kept: Document | None = None
    level: int | None = None


@dataclass(frozen=True)
class Result:
    """What became of a task; a finding comes with its sample, made small when the job asks for it."""

    task: Task
    outcome: Outcome
    sample: Document | None = None


def work(task: Task, job: Job) -> Result:
    """One sample, in this process."""
    of, level = fuzzer(job.name), job.level if task.level is None else task.level
    sample = of.draw(task.seed) if task.kept is None else of.from_json(task.kept)
    outcome = of.check(sample, level)
    if not outcome.is_finding:
        return Result(task, outcome)
    if job.shrink:
        sample = smallest(of, sample, level, outcome, job.seconds / 2)
        outcome = of.check(sample, level)
    return Result(task, outcome, of.to_json(sample))


def run(tasks: Iterable[Task], job: Job, processes: int, executor: str | None = None) -> Iterator[Result]:
    """The results as they come; ``executor`` is a text of :func:`kernelgen.farm.crew_of`."""
    requests = ((task, json.dumps({"task": asdict(task), "job": asdict(job)}).encode()) for task in tasks)
    with crew_of(executor, processes) as crew:
        for task, answer in answers(worked, requests, crew):
            yield Result(task, Outcome(Kind(answer["kind"]), answer["reason"], answer["message"]), answer["sample"])


def worked(request: bytes) -> bytes:
    """The reply to a request of :func:`run`: a result, also where the process that works dies or never ends."""
    asked = json.loads(request)
    task, job = Task(**asked["task"]), Job(**asked["job"])
    try:
        return call("tests.fuzz.pool:worked_here", request, Limit(job.seconds * (2 if job.shrink else 1)))
    except ProcessLate:
        outcome = Outcome(Kind.HANG, f"not finished after {job.seconds:g} s")
    except ProcessDied as death:
        outcome = Outcome(Kind.CRASH, f"the process ended with code {death.code}")
    except TaskError as error:
        outcome = Outcome(Kind.INTERNAL, f"the fuzzer: {error}")
    return told(_plain(Result(task, outcome, task.kept)))


def worked_here(request: bytes) -> bytes:
    """The result of a request, as JSON, in a process that may die of it."""
    asked = json.loads(request)
    task, job = Task(**asked["task"]), Job(**asked["job"])
    resource.setrlimit(resource.RLIMIT_AS, (job.memory, job.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return json.dumps(_plain(_guarded(task, job))).encode()


def _plain(result: Result) -> dict[str, Document]:
    outcome = result.outcome
    return {
        "kind": outcome.kind.value, "reason": outcome.reason, "message": outcome.message, "sample": result.sample
    }  # fmt: skip


def _guarded(task: Task, job: Job) -> Result:
    """An exception of the fuzzer itself is a finding too."""
    try:
        return work(task, job)
    except Exception as error:
        return Result(task, internal("the fuzzer", error), task.kept)
