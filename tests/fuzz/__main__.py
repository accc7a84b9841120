"""``python -m tests.fuzz NAME --minutes 10``: draws samples, checks them, and tells what has to be mended.

NAME is onnx_models, text_ir, composite_json, onnx_bytes, flags or plans. A seed always gives the same sample, so
``--seed S --count 1`` shows a finding again. ``--json OUT`` writes the record; one that is there already goes on behind
its last seed. ``--save FOLDER`` makes findings small and writes them as files; ``--again FILE`` runs such a file.
Ends with status 1 when there was a finding. See docs/fuzzing.md.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.fuzz.fuzzer import NAMES, fuzzer
from tests.fuzz.kept import keep, read, replay
from tests.fuzz.pool import Job, Result, Task, run
from tests.fuzz.record import Record, Tally

CACHE_VARIABLE = "GRAPHKERNEL_CACHE_DIR"
SLICE = 100  # results between two writings of the record


def main() -> None:
    """Runs a fuzzer, with a line of progress."""
    arguments = _arguments()
    sys.exit(_again(Path(arguments.again)) if arguments.again else _fuzz(arguments))


def _again(path: Path) -> bool:
    (outcome,) = replay([read(path)])
    print(outcome.kind.value, outcome.reason, outcome.message)
    return outcome.is_finding


def _fuzz(arguments: argparse.Namespace) -> bool:
    """Whether there was a finding."""
    of = fuzzer(arguments.name)
    level = str(arguments.level) if of.levels else "any"
    place = Path(arguments.json) if arguments.json else None
    record = Record(arguments.name, of.version) if place is None else Record.read(place, arguments.name, of.version)
    tally = record.tally(level, arguments.seed)
    spent, start = record.seconds, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        os.environ.setdefault(CACHE_VARIABLE, folder)  # for the processes that start now
        for count, result in enumerate(_results(arguments, tally), start=1):
            _tell(result, tally, arguments)
            record.seconds = spent + time.monotonic() - start
            if place is not None and count % SLICE == 0:
                record.write(place)
    if place is not None:
        record.write(place)
    _summary(tally, record.seconds)
    return bool(tally.findings)


def _results(arguments: argparse.Namespace, tally: Tally) -> Iterator[Result]:
    """Checks seeds in order and counts them; those under way when the time is over are waited for."""
    job = Job(arguments.name, arguments.level, arguments.seconds, shrink=bool(arguments.save))
    if arguments.recheck:
        for result in run(map(Task, tally.take_findings()), job, arguments.jobs, arguments.executor):
            tally.add(result)
            yield result
        return
    deadline = time.monotonic() + 60 * arguments.minutes if arguments.minutes else float("inf")
    count = arguments.count or (None if arguments.minutes else 200)
    seeds = itertools.count(tally.next) if count is None else range(tally.next, tally.next + count)
    tasks = map(Task, itertools.takewhile(lambda _: time.monotonic() < deadline, seeds))
    for result in run(tasks, job, arguments.jobs, arguments.executor):
        tally.add(result)
        tally.next = max(tally.next, result.task.seed + 1)
        yield result


def _tell(result: Result, tally: Tally, arguments: argparse.Namespace) -> None:
    outcome = result.outcome
    if outcome.is_finding:
        print(f"\nseed {result.task.seed}: {outcome.kind.value}: {outcome.reason}\n    {outcome.message}", flush=True)
    if outcome.is_finding and arguments.save:
        job = Job(arguments.name, arguments.level)
        seeded = replace(result, sample=result.sample or _drawn(arguments.name, result.task.seed))
        print(f"    {keep(seeded, job, Path(arguments.save))}", flush=True)
    if tally.kinds.total() % 10 == 0:
        print(f"\r{tally.kinds.total()}: {dict(tally.kinds)}", end="", file=sys.stderr, flush=True)


def _drawn(name: str, seed: int) -> object:
    of = fuzzer(name)
    return of.to_json(of.draw(seed))


def _summary(tally: Tally, seconds: float) -> None:
    kinds = ", ".join(f"{count} {kind}" for kind, count in tally.kinds.most_common())
    print(f"\n{tally.kinds.total()} samples in {seconds:.0f} s: {kinds}")
    _listed("refused", tally.refused)
    _listed("explained", tally.explained)
    _listed("findings", Counter(f"{entry['kind']}: {entry['reason']}" for entry in tally.findings))


def _listed(title: str, reasons: Counter[str]) -> None:
    if reasons:
        print(f"{title}:")
        print("\n".join(f"  {count:6} {reason}" for reason, count in reasons.most_common()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("name", nargs="?", choices=NAMES, default=NAMES[0])
    parser.add_argument("--minutes", type=float, help="how long; without --count there is no other end")
    parser.add_argument("--count", type=int, help="how many samples (200 without --minutes)")
    parser.add_argument("--seed", type=int, help="the first seed; the others follow (0, or behind a record's last)")
    parser.add_argument("--level", type=int, choices=range(4), default=2, help="of optimization")
    parser.add_argument("--json", metavar="OUT", help="the record")
    parser.add_argument("--save", metavar="FOLDER", help="where findings are written, made small")
    parser.add_argument("--again", metavar="FILE", help="runs a finding that was written")
    parser.add_argument(
        "--recheck", action="store_true", help="checks the findings of the record once more, nothing else"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--executor", help="who works: processes[:N] or dask://HOST:PORT")
    parser.add_argument("--seconds", type=float, default=60.0, help="for one sample; more is a hang")
    return parser.parse_args()


if __name__ == "__main__":
    main()
