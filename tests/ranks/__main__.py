"""``python -m tests.ranks --ranks 2 4 --json OUT``: real processes run every program at every level, over MPI and gloo.

Every rank has the numbers of one process and the same order of collectives, and every collective on every data type gives
what ranks in memory give. Ends with status 1 where something differs.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.ranks.processes import LIBRARY, Rank, missing, run_job
from tests.ranks.programs import alone


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.ranks", description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--over", nargs="+", default=list(LIBRARY), choices=list(LIBRARY))
    parser.add_argument("--json", metavar="OUT")
    arguments = parser.parse_args()
    jobs = [_job(over, ranks) for over in arguments.over for ranks in arguments.ranks]
    record = {"date": str(datetime.datetime.now(datetime.UTC).date()), "jobs": jobs}
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(record, indent=1) + "\n")
    for job in jobs:
        print(json.dumps({key: job[key] for key in ("over", "ranks", "status", "greatest_difference", "problems")}))
    sys.exit(any(job["status"] != "passed" for job in jobs))


def _job(over: str, ranks: int) -> dict[str, Any]:
    told: dict[str, Any] = {"over": over, "ranks": ranks, "greatest_difference": None, "problems": []}
    if missing(over):
        return told | {"status": "skipped", "problems": [missing(over)]}
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = run_job(over, ranks, Path(folder))
    problems = [problem for rank in found for problem in rank.problems]
    problems += [f"rank {number}: another order" for number, rank in enumerate(found) if rank.logs != found[0].logs]
    difference = max(_difference(rank) for rank in found)
    is_good = not problems and difference < 2e-5
    return told | {
        "status": "passed" if is_good else "failed",
        "version": importlib.metadata.version(LIBRARY[over]),
        "greatest_difference": difference,
        "problems": problems,
        "collectives": {name: len(log) for name, log in found[0].logs.items()},
        "seconds": round(time.perf_counter() - start, 1),
    }


def _difference(rank: Rank) -> float:
    """The greatest difference from one process, against the greatest number of the result."""
    found = 0.0
    for key, array in rank.results.items():
        name, _, number = key.split(".")
        wanted = alone(name)[int(number)]
        found = max(found, float(np.abs(array - wanted).max() / np.abs(wanted).max()))
    return found


if __name__ == "__main__":
    main()
