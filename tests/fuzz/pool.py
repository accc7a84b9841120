"""Processes that work one sample after another. One that dies or does not answer is the finding of its sample."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

from tests.fuzz.fuzzer import Document, fuzzer, smallest
from tests.fuzz.outcome import Kind, Outcome, internal

LIFETIME = 400
"""Samples per process: compiled code stays in memory."""
START_SECONDS = 120.0


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


def run(tasks: Iterable[Task], job: Job, processes: int) -> Iterator[Result]:
    """The results as they come."""
    waiting = iter(tasks)
    workers = [_Worker(job) for _ in range(processes)]
    try:
        yield from _results(workers, waiting, job)
    finally:
        for worker in workers:
            worker.stop()


def _results(workers: list[_Worker], waiting: Iterator[Task], job: Job) -> Iterator[Result]:
    while True:
        for place, worker in enumerate(workers):
            if worker.task is None and (task := next(waiting, None)) is not None:
                if worker.served >= LIFETIME or not worker.process.is_alive():
                    worker.stop()
                    worker = workers[place] = _Worker(job)
                worker.start(task)
        busy = [worker for worker in workers if worker.task is not None]
        if not busy:
            return
        wait([worker.connection for worker in busy], timeout=0.5)
        yield from (result for worker in busy if (result := worker.result()) is not None)


class _Worker:
    """One process."""

    def __init__(self, job: Job) -> None:
        self.job, self.served = job, 0
        self.task: Task | None = None
        self.deadline = 0.0
        context = multiprocessing.get_context("spawn")
        self.connection, far_end = context.Pipe()
        self.process = context.Process(target=_serve, args=(far_end, job), daemon=True)
        self.process.start()
        far_end.close()

    def start(self, task: Task) -> None:
        self.task = task
        seconds = self.job.seconds * (2 if self.job.shrink else 1)
        self.deadline = time.monotonic() + seconds + (0 if self.served else START_SECONDS)
        with contextlib.suppress(BrokenPipeError):  # a process that has died says so when the result is asked for
            self.connection.send(task)

    def result(self) -> Result | None:
        """The result of the task, None while there is none."""
        try:
            found: Result | None = self.connection.recv() if self.connection.poll() else None
        except (EOFError, ConnectionResetError):
            self.process.join()
            return self._lost(Kind.CRASH, f"the process ended with code {self.process.exitcode}")
        if found is None and time.monotonic() > self.deadline:
            self.stop()
            return self._lost(Kind.HANG, f"not finished after {self.job.seconds:g} s")
        if found is not None:
            self.task, self.served = None, self.served + 1
        return found

    def _lost(self, kind: Kind, reason: str) -> Result:
        assert self.task is not None
        task, self.task = self.task, None
        return Result(task, Outcome(kind, reason), task.kept)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def _serve(connection: Connection, job: Job) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (job.memory, job.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 2)  # libraries print what they think of hostile input
    while True:
        try:
            task: Task = connection.recv()
        except EOFError:
            return
        connection.send(_guarded(task, job))


def _guarded(task: Task, job: Job) -> Result:
    """An exception of the fuzzer itself is a finding too."""
    try:
        return work(task, job)
    except Exception as error:
        return Result(task, internal("the fuzzer", error), task.kept)
