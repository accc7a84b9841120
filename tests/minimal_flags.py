"""``python -m tests.minimal_flags FILE_OR_DIR... --jobs 2 --json OUT``: no flag or barrier of an Ascend kernel is one too many.

Each file is compiled for Ascend and its text read back; every flag and every barrier is taken out alone, and the order
proof must fail (:mod:`tests.support.redundant_flags`). Ends with status 1 when one was not needed or a file failed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from kernelgen.__main__ import described_files
from kernelgen.ascendc.reader import read_kernel
from kernelgen.composite.read import load_desc
from kernelgen.driver import compile
from kernelgen.errors import UnsupportedError
from kernelgen.machines.ascend.machines import ASCEND_910B
from tests.support.order_launches import launches
from tests.support.redundant_flags import minimality

MINIMAL, IDLE, UNSEEN, REFUSED, FAILED = "minimal", "idle", "unseen", "refused", "failed"
"""Needed all; some idle; some that no launch came to; no kernel for this machine; anything else."""


def looked_at(path: Path) -> Mapping[str, object]:
    """The record of one file."""
    start = time.process_time()
    try:
        kernel = compile(load_desc(path), "ascend")
        read = read_kernel(kernel.source)
        found = minimality(read, tuple(launches(kernel.nest, read, ASCEND_910B)), ASCEND_910B)
    except UnsupportedError as refusal:
        return {"name": path.name, "status": REFUSED, "reason": refusal.code}
    except Exception as error:
        return {"name": path.name, "status": FAILED, "reason": f"{type(error).__name__}: {error}"}
    status = IDLE if found.idle else UNSEEN if found.unseen else MINIMAL
    more = {"idle": [str(group) for group in found.idle], "unseen": list(found.unseen)} if status != MINIMAL else {}
    seconds = round(time.process_time() - start, 2)
    return {"name": path.name, "status": status, "groups": len(found.groups), "seconds": seconds, **more}


def main() -> None:
    """Looks at the files in processes."""
    parser = argparse.ArgumentParser(prog="python -m tests.minimal_flags", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", metavar="OUT", help="where the record goes")
    arguments = parser.parse_args()
    paths = described_files(arguments.files)
    with ProcessPoolExecutor(arguments.jobs, max_tasks_per_child=50) as pool:
        records = list(pool.map(looked_at, paths))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"summary": summary(records), "records": records}, indent=1) + "\n")
    for record in records:
        if record["status"] in (IDLE, UNSEEN, FAILED):
            print(record)
    print(summary(records))
    sys.exit(any(record["status"] in (IDLE, FAILED) for record in records))


def summary(records: Sequence[Mapping[str, object]]) -> Mapping[str, int]:
    """How many files of each status, and how many flags and barriers were taken out."""
    groups = sum(int(str(record.get("groups", 0))) for record in records)
    return {**Counter(str(record["status"]) for record in records), "flags and barriers": groups}


if __name__ == "__main__":
    main()
