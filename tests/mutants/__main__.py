"""``python -m tests.mutants DIR --target cpu --count N --json OUT``: which faults of a generator would ``verify`` notice?

Prints every mutant that was not noticed with the reason that was computed for it; passed are the mutants that were
noticed, failed those that were not although inputs exist that tell them apart. Ends with status 1 when there are any.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import sys
from pathlib import Path

from kernelgen import options
from kernelgen.__main__ import described_files
from kernelgen.system import cores
from tests.mutants.judge import Verdict
from tests.mutants.report import SMALL_BYTES, Job, Sums, judge_file, spread


def main() -> None:
    """Judges the mutants of all files in processes."""
    arguments = _arguments()
    paths = spread(described_files(arguments.files), arguments.count)
    jobs = [Job(path, arguments.target, arguments.seed) for path in paths]
    sums = Sums()
    context = multiprocessing.get_context("spawn")
    with context.Pool(arguments.processes, options.limit_threads, (1,), maxtasksperchild=100) as pool:
        for report in pool.imap(judge_file, jobs):
            sums.add(report)
            print(f"\r{sums.files} of {len(jobs)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if arguments.json:
        record = {"how": " ".join(["python -m tests.mutants", *sys.argv[1:]])}
        record |= {"date": str(datetime.datetime.now(datetime.UTC).date())}
        record |= sums.to_json(arguments.target, arguments.seed)
        arguments.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    _print(sums)
    sys.exit(sums.of(Verdict.MISSED) > 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="composite JSON files, or directories of them")
    parser.add_argument("--count", type=int, help="so many of the files, at even distances")
    parser.add_argument("--target", default="cpu", choices=SMALL_BYTES)
    parser.add_argument("--seed", type=int, default=0, help="of the drawn inputs")
    parser.add_argument("--json", metavar="OUT", type=Path, help="where the record goes")
    parser.add_argument("--processes", type=int, default=cores.core_count())
    return parser.parse_args()


def _print(sums: Sums) -> None:
    for name, reason in sums.refused.items():
        print(f"{name}: no mutants: {reason}")
    for name, each in sums.unnoticed:
        print(f"{name}: {each.kind}: {each.what}: {each.verdict.value}: {each.reason}")
    print("\n".join(sums.table()))
    explained = sums.of(Verdict.EQUIVALENT, Verdict.ROUNDING)
    print(f"{explained} mutants are no other kernel, by the reasons above")
    print(f"{sums.of(Verdict.NOTICED)} passed, {sums.of(Verdict.MISSED)} failed")


if __name__ == "__main__":
    main()
