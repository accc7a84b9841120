"""Verifies many files in worker processes, so that a crash or a hang costs one record and not the run."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from kernelgen import options
from kernelgen.targets.cpu.runtime.faults import STATUS, report_faults
from kernelgen.verify.record import Record, failed
from kernelgen.verify.verify_one import BYTE_LIMIT, verify_file
from kernelgen.verify.worker_diary import Diary

START_SECONDS = 60.0
"""A worker that has not started after this has failed."""

READY = "ready"


@dataclass(frozen=True)
class Job:
    """What every worker needs to know. ``limit_seconds`` is per file, and counts from when the worker is ready."""

    target: str = "cpu"
    seed: int = 0
    limit_seconds: float = 120.0
    byte_limit: int = BYTE_LIMIT
    threads: int = 1
    check: bool = False
    device: bool = False
    guard: bool = False
    against: Path | None = None


def verify_files(
    paths: Sequence[Path], job: Job, workers: int, report: Callable[[Record], None] = lambda record: None
) -> list[Record]:
    """One record per file, in the order of the files. ``report`` is called with each as it is finished."""
    records: dict[int, Record] = {}
    for index, record in _finished(paths, job, min(workers, len(paths))):
        records[index] = record
        report(record)
    return [records[index] for index in range(len(paths))]


def _finished(paths: Sequence[Path], job: Job, workers: int) -> Iterator[tuple[int, Record]]:
    waiting = list(range(len(paths)))[::-1]
    idle = [_Worker(job) for _ in range(workers)]
    busy: list[_Worker] = []
    try:
        while waiting or busy:
            while waiting and idle:
                worker = idle.pop()
                worker.start(waiting.pop(), paths)
                busy.append(worker)
            wait([w.connection for w in busy], timeout=0.2)
            for worker in list(busy):
                record = worker.result(paths)
                if record is None:
                    continue
                busy.remove(worker)
                idle.append(worker if worker.process.is_alive() else worker.successor())
                yield worker.index, record
    finally:
        for worker in (*idle, *busy):
            worker.stop()


class _Worker:
    """A process that verifies one file after another. It says READY once, then sends a record per file."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.index = -1
        self.deadline = 0.0
        self.ready = False
        self.diary = Diary.new() if job.guard else None
        context = multiprocessing.get_context("spawn")
        self.connection, far_end = context.Pipe()
        self.process: SpawnProcess = context.Process(
            target=_serve, args=(far_end, job, self.diary and self.diary.path), daemon=True
        )
        self.process.start()
        far_end.close()

    def start(self, index: int, paths: Sequence[Path]) -> None:
        """Hands the worker a file."""
        self.index = index
        self.deadline = time.monotonic() + self.job.limit_seconds + (0 if self.ready else START_SECONDS)
        self.connection.send(str(paths[index]))

    def result(self, paths: Sequence[Path]) -> Record | None:
        """The record of the file, None while it is not finished. A worker past the limit is killed."""
        name = paths[self.index].name
        try:
            message = self.connection.recv() if self.connection.poll() else None
        except (EOFError, ConnectionResetError):
            self.process.join()
            if self.diary and self.process.exitcode == STATUS:
                return failed(name, "fault", self.diary.read())
            return failed(name, "crash", f"the worker process ended with code {self.process.exitcode}")
        if message == READY:
            self.ready = True
            self.deadline = time.monotonic() + self.job.limit_seconds
        elif message is not None:
            return message
        if time.monotonic() < self.deadline:
            return None
        self.process.kill()
        self.process.join()
        return failed(name, "time-limit", f"not finished after {self.job.limit_seconds:g} s")

    def successor(self) -> _Worker:
        """A process in the place of one that is gone."""
        self.stop()
        return _Worker(self.job)

    def stop(self) -> None:
        """Kills the process."""
        self.process.kill()
        self.process.join()
        self.connection.close()
        if self.diary:
            self.diary.remove()


def _serve(connection: Connection, job: Job, diary_path: Path | None) -> None:
    options.limit_threads(job.threads)
    options.isolate_compiler()
    diary = Diary(diary_path) if diary_path else None
    if diary:
        report_faults(diary.descriptor)
    connection.send(READY)
    while True:
        try:
            path = connection.recv()
        except EOFError:
            return
        found = verify_file(
            Path(path),
            job.target,
            job.seed,
            byte_limit=job.byte_limit,
            checked=job.check,
            device=job.device,
            diary=diary,
            against=job.against,
        )
        connection.send(found)
