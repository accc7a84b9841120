"""Processes that check one seed after another. A process that dies or does not answer is a failure of its seed."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random
from typing import Any

from kernelgen import options
from kernelgen.targets.cpu.runtime.faults import STATUS, report_faults
from kernelgen.verify.worker_diary import Diary
from tests.random_kernels.check import Kind, Outcome, check
from tests.random_kernels.generate import kernel
from tests.random_kernels.minimize import minimize
from tests.random_kernels.stored import to_json
from tests.random_kernels.traits import traits
from tests.random_kernels.values import Sample

LIFETIME = 400
"""Kernels per process: compiled code stays in memory."""
START_SECONDS = 120.0
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
    operators = Counter(op.name for op in sample.desc.ops)
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


def run(seeds: Sequence[int], job: Job, processes: int) -> Iterator[Result]:
    """The results as they come."""
    waiting = list(seeds)[::-1]
    workers = [_Worker(job) for _ in range(min(processes, len(waiting)))]
    try:
        while waiting or any(w.seed is not None for w in workers):
            for place, worker in enumerate(workers):
                if worker.seed is None and waiting:
                    if worker.served >= LIFETIME:
                        worker.stop()
                        worker = workers[place] = _Worker(job)
                    worker.start(waiting.pop())
            wait([w.connection for w in workers if w.seed is not None], timeout=0.5)
            for place, worker in enumerate(workers):
                result = worker.result()
                if result is not None:
                    yield result
                    if not worker.process.is_alive():
                        worker.stop()
                        workers[place] = _Worker(job)
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """One process."""

    def __init__(self, job: Job) -> None:
        self.job, self.served = job, 0
        self.seed: int | None = None
        self.limit = self.deadline = 0.0
        self.diary = Diary.new() if job.guard else None
        context = multiprocessing.get_context("spawn")
        self.connection, far_end = context.Pipe()
        self.process = context.Process(target=_serve, args=(far_end, job, self.diary and self.diary.path), daemon=True)
        self.process.start()
        far_end.close()

    def start(self, seed: int) -> None:
        self.seed = seed
        allowed = self.job.seconds + (0 if self.served else START_SECONDS)
        self.limit = processor_seconds(self.process.pid) + allowed
        self.deadline = time.monotonic() + PATIENCE * allowed
        self.connection.send(seed)

    def result(self) -> Result | None:
        """The result of the seed, None while there is none."""
        if self.seed is None:
            return None
        try:
            found = self.connection.recv() if self.connection.poll() else None
        except (EOFError, ConnectionResetError):
            self.process.join()
            if self.diary and self.process.exitcode == STATUS:
                return self._lost("fault", self.diary.read())
            return self._lost("crash", f"the process ended with code {self.process.exitcode}")
        if found is None and self._is_late():
            self.process.kill()
            self.process.join()
            return self._lost("time-limit", f"not finished after {self.job.seconds:g} s")
        if found is not None:
            self.seed, self.served = None, self.served + 1
        return found

    def _is_late(self) -> bool:
        return time.monotonic() > self.deadline or processor_seconds(self.process.pid) > self.limit

    def _lost(self, reason: str, message: str) -> Result:
        assert self.seed is not None
        sample, outcome = sample_of(self.seed, self.job), Outcome(Kind.FAILED, reason, message)
        operators = Counter(op.name for op in sample.desc.ops)
        seed, self.seed = self.seed, None
        return Result(seed, outcome, operators, traits(sample.desc), fault(sample, seed, self.job, outcome))

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()
        if self.diary:
            self.diary.remove()


def processor_seconds(process: int | None) -> float:
    """What a process has had of the processor; of one that is gone, and where Linux does not tell, 0."""
    try:
        after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def _serve(connection: Connection, job: Job, diary_path: Path | None) -> None:
    options.limit_threads(2)
    diary = Diary(diary_path) if diary_path else None
    if diary:
        report_faults(diary.descriptor)
    while True:
        try:
            seed = connection.recv()
        except EOFError:
            return
        connection.send(one_seed(seed, job, diary))
