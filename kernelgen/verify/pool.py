"""Verifies many files over a crew (:mod:`kernelgen.farm`), so that a crash or a hang costs one record and not the run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from kernelgen import options
from kernelgen.errors import DescError
from kernelgen.farm import Crew, Journal, answers, call, local
from kernelgen.farm.sandbox import TaskError, told
from kernelgen.system.answering import Limit, ProcessDied, ProcessLate
from kernelgen.system.bounded_io import read_text
from kernelgen.targets.cpu.runtime.faults import STATUS, report_faults
from kernelgen.verify.record import Record, failed
from kernelgen.verify.verify_one import BYTE_LIMIT, verify_text
from kernelgen.verify.worker_diary import Diary


@dataclass(frozen=True)
class Job:
    """What every worker needs to know. ``limit_seconds`` is per file, and counts from when the worker is ready; ``operators``
    are the modules of users that declare some.
    """

    target: str = "cpu"
    seed: int = 0
    limit_seconds: float = 120.0
    byte_limit: int = BYTE_LIMIT
    threads: int = 1
    check: bool = False
    device: bool = False
    guard: bool = False
    operators: tuple[str, ...] = ()


def verify_files(
    paths: Sequence[Path],
    job: Job,
    workers: int,
    report: Callable[[Record], None] = lambda record: None,
    against: Path | None = None,
    crew: Crew | None = None,
    journal: Journal | None = None,
) -> list[Record]:
    """One record per file of ``paths``, in their order, as the ``job`` says. ``report`` is called with each as it is finished.

    ``against`` is a file that says what the results should be. ``crew`` does the work in place of so many ``workers`` of
    this machine; what the ``journal`` knows is not verified again.
    """
    records: dict[int, Record] = {}
    with ExitStack() as stack:
        crew = crew or (stack.enter_context(local(min(workers, len(paths)))) if paths else None)
        for index, record in _finished(paths, job, against, crew, journal) if crew else ():
            records[index] = record
            report(record)
    return [records[index] for index in range(len(paths))]


def _finished(
    paths: Sequence[Path], job: Job, against: Path | None, crew: Crew, journal: Journal | None
) -> Iterator[tuple[int, Record]]:
    unread: dict[int, Record] = {}
    for index, answer in answers(verified, _requests(paths, job, against, unread), crew, journal):
        yield index, Record.from_json(answer)
    yield from unread.items()


def _requests(
    paths: Sequence[Path], job: Job, against: Path | None, unread: dict[int, Record]
) -> Iterator[tuple[int, bytes]]:
    """What a worker needs of each file: all of it, since it may be on another machine."""
    for index, path in enumerate(paths):
        try:
            texts = {"text": read_text(path, DescError), "against": read_text(against, DescError) if against else None}
        except DescError as error:
            unread[index] = failed(path.name, "bad-description", str(error))
            continue
        yield index, json.dumps({"name": path.name, **texts, "job": asdict(job)}, sort_keys=True).encode()


def verified(request: bytes) -> bytes:
    """The reply to a request of :func:`verify_files`: a record, also where the process that verifies dies or never ends."""
    asked = json.loads(request)
    job, name = Job(**asked["job"]), asked["name"]
    diary = Diary.new() if job.guard else None
    try:
        given = json.dumps({**asked, "diary": str(diary.path) if diary else None}).encode()
        return call("kernelgen.verify.pool:verified_here", given, Limit(job.limit_seconds))
    except ProcessLate:
        found = failed(name, "time-limit", f"not finished after {job.limit_seconds:g} s")
    except ProcessDied as death:
        is_fault = diary is not None and death.code == STATUS
        message = diary.read() if diary and is_fault else f"the worker process ended with code {death.code}"
        found = failed(name, "fault" if is_fault else "crash", message)
    except TaskError as error:
        found = failed(name, "exception", str(error))
    finally:
        if diary:
            diary.remove()
    return told(found.to_json())


def verified_here(request: bytes) -> bytes:
    """The record of a request, as JSON, in a process that may die of it."""
    asked = json.loads(request)
    job = Job(**asked["job"])
    options.limit_threads(job.threads)
    options.isolate_compiler()
    diary = Diary(Path(asked["diary"])) if asked["diary"] else None
    if diary:
        report_faults(diary.descriptor)
    found = verify_text(
        asked["name"],
        asked["text"],
        job.target,
        job.seed,
        byte_limit=job.byte_limit,
        checked=job.check,
        device=job.device,
        diary=diary,
        against=asked["against"],
        operators=job.operators,
    )
    if diary:
        diary.close()
    return json.dumps(found.to_json()).encode()
