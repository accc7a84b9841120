"""``python -m tests.random_kernels --count 1000 --target cpu --seed 0 --json OUT``: random kernels agree with the reference.

Each failure is made small, printed, and written into a folder as JSON (``--faults``); ``--again FILE`` runs such a file.
The record counts kernels, operators, what kernels have in them, refusals by reason and operator, and lists the failures.
``--join RECORDS`` makes one record of those of runs over seeds that follow each other. Ends with status 1 when there was
a failure.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from tests.random_kernels.check import Kind, check
from tests.random_kernels.generate import FAMILIES
from tests.random_kernels.pool import Job, Result, run
from tests.random_kernels.records import joined
from tests.random_kernels.stored import from_json

CACHE_VARIABLE = "GRAPHKERNEL_CACHE_DIR"


def main() -> None:
    """Checks the seeds in processes, with a line of progress."""
    arguments = _arguments()
    if arguments.again:
        outcome = check(from_json(Path(arguments.again)), arguments.target)
        print(f"{outcome.kind} {outcome.reason} {outcome.message}")
        sys.exit(outcome.kind is Kind.FAILED)
    if arguments.join:
        _tell(joined([json.loads(Path(file).read_text()) for file in arguments.join]), arguments.json)
    families = tuple(arguments.families.split(",")) if arguments.families else None
    job = Job(arguments.target, arguments.elements, arguments.steps, families, arguments.seconds, arguments.guard)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="random-kernels-") as folder:
        os.environ[CACHE_VARIABLE] = folder  # for the processes that start now
        record = _checked(range(arguments.seed, arguments.seed + arguments.count), job, arguments)
    record |= {"seconds": round(time.perf_counter() - start), "date": str(datetime.datetime.now(datetime.UTC).date())}
    _tell(record, arguments.json)


def _tell(record: dict[str, Any], file: str | None) -> NoReturn:
    """Writes a record, prints it, and ends."""
    if file:
        Path(file).write_text(json.dumps(record, indent=1) + "\n")
    print(f"{record['passed']} passed, {record['skipped']} skipped, {record['failed']} failed in {record['seconds']} s")
    for what, count in record["refusals"].items():
        print(f"  {count:6} {what} (first seed {record['first_seed_refused'][what]})")
    _print_shares("kernels with", record["traits"], record["kernels"])
    _print_shares("operators", record["by_operator"], record["kernels"])
    sys.exit(record["failed"] > 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.random_kernels", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; the others follow")
    parser.add_argument("--json", metavar="OUT", help="where the record goes")
    parser.add_argument("--faults", metavar="FOLDER", help="where failures go, one JSON file each")
    parser.add_argument("--again", metavar="FILE", help="checks the kernel of such a file")
    parser.add_argument("--join", metavar="RECORD", nargs="+", help="checks nothing: one record of all of these")
    parser.add_argument("--families", help=f"all of these take part, else some are drawn: {','.join(FAMILIES)}")
    parser.add_argument("--elements", type=int, default=400, help="the size of most tensors")
    parser.add_argument("--steps", type=int, default=40, help="the most steps of a kernel")
    parser.add_argument("--seconds", type=float, default=60.0, help="what a kernel may take")
    parser.add_argument("--guard", action="store_true", help="cpu: every array against pages without access too")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--executor", help="who works: processes[:N] or dask://HOST:PORT")
    found = parser.parse_args()
    if found.guard and found.target != "cpu":
        parser.error("--guard: only kernels for the CPU run on this machine's pages")
    return found


def _checked(seeds: range, job: Job, arguments: argparse.Namespace) -> dict[str, Any]:
    """The record of a run."""
    kinds: Counter[str] = Counter()
    operators: Counter[str] = Counter()
    having: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    refused: dict[str, int] = {}
    failures: list[dict[str, Any]] = []
    for result in run(seeds, job, arguments.processes, arguments.executor):
        kinds[result.outcome.kind.value] += 1
        if result.outcome.kind is Kind.PASSED:
            operators.update(result.operators)
            having.update(result.traits)
        elif result.outcome.kind is Kind.SKIPPED:
            what = f"{result.outcome.reason} {result.outcome.subject}"
            refusals[what] += 1
            refused.setdefault(what, result.seed)
        if result.fault is not None:
            failures.append(result.fault)
            _report(result, arguments.faults)
        done = sum(kinds.values())
        if done % 25 == 0 or done == len(seeds):
            print(f"\r{done} of {len(seeds)}: {dict(kinds)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {
        "target": job.target, "guard": job.guard, "commits": {_commit(): len(seeds)},
        "seed": seeds.start, "kernels": len(seeds),
        **{kind.value: kinds[kind.value] for kind in Kind},
        "operators": sum(operators.values()), "by_operator": dict(operators.most_common()),
        "traits": dict(having.most_common()),
        "refusals": dict(refusals.most_common()), "first_seed_refused": refused, "failures": failures,
    }  # fmt: skip


def _commit() -> str:
    """What the working tree is of; "-dirty" behind it says that something was changed."""
    command = ("git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*")
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def _print_shares(title: str, counts: dict[str, int], kernels: int) -> None:
    """Four columns: how many there are in 1,000 kernels."""
    print(f"of 1,000: {title}")
    cells = [f"{1000 * count / kernels:8.1f} {what:28}" for what, count in counts.items()]
    for place in range(0, len(cells), 4):
        print("".join(cells[place : place + 4]).rstrip())


def _report(result: Result, folder: str | None) -> None:
    assert result.fault is not None
    print(f"\nseed {result.seed}: {result.fault['reason']}: {result.fault['message']}")
    print("\n".join(f"    {line}" for line in result.fault["text"]), flush=True)
    if folder:
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{result.fault['target']}_{result.seed}.json").write_text(json.dumps(result.fault, indent=1) + "\n")


if __name__ == "__main__":
    main()
