"""``python -m tests.ascendc_compile DIR --count N --random N --seed S --json OUT``: is every printed kernel C++?

Kernels of files are printed at their own sizes; ``--random`` goes through seeds until so many kernels were printed. Each
is parsed by clang as C++17 against the declarations of kernel_operator.h. Passed are those without a diagnostic. Ends with
status 1 when there are others.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from kernelgen import options
from kernelgen.__main__ import described_files
from kernelgen.system import cores
from tests.ascendc_compile.kernels import Checked, check
from tests.mutants.report import spread

BATCH = 20
SHOWN = 3


@dataclass
class Sums:
    """Kernels that passed, that failed with what clang says, and that were refused with the reason."""

    passed: int = 0
    failed: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    refused: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def printed(self) -> int:
        """Kernels that there is a text of."""
        return self.passed + len(self.failed)

    def add(self, one: Checked) -> None:
        """Takes in a kernel."""
        if one.refusal:
            self.refused[one.name] = one.refusal
        elif one.errors:
            self.failed[one.name] = list(one.errors)
        else:
            self.passed += 1

    def kinds(self) -> list[tuple[str, int]]:
        """Each thing that clang says, without names and numbers, and of how many kernels."""
        found = (_kind(message) for errors in self.failed.values() for message in {_kind(error) for error in errors})
        return Counter(found).most_common()


def main() -> None:
    """Checks files, then seeds, in processes."""
    arguments = _arguments()
    files, drawn = Sums(), Sums()
    context = multiprocessing.get_context("spawn")
    with context.Pool(arguments.processes, options.limit_threads, (1,), maxtasksperchild=20) as pool:
        for checked in pool.imap(check, _batches(spread(described_files(arguments.files), arguments.count))):
            _add(files, checked)
        seeds = count(arguments.seed)
        while drawn.printed < arguments.random:
            for checked in pool.imap(check, [[next(seeds) for _ in range(BATCH)] for _ in range(arguments.processes)]):
                _add(drawn, checked)
    print(file=sys.stderr)
    if arguments.json:
        arguments.json.write_text(json.dumps(_record(arguments, files, drawn), indent=1) + "\n", encoding="utf-8")
    _print(files, drawn)
    sys.exit(bool(files.failed or drawn.failed))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.ascendc_compile", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="composite JSON files, or directories of them")
    parser.add_argument("--count", type=int, help="so many of the files, at even distances")
    parser.add_argument("--random", type=int, default=0, help="at least so many random kernels too")
    parser.add_argument("--seed", type=int, default=0, help="the first seed of these")
    parser.add_argument("--json", metavar="OUT", type=Path, help="where the record goes")
    parser.add_argument("--processes", type=int, default=cores.core_count())
    return parser.parse_args()


def _batches(paths: Sequence[Path]) -> Iterator[Sequence[Path]]:
    yield from (paths[start : start + BATCH] for start in range(0, len(paths), BATCH))


def _add(sums: Sums, checked: Sequence[Checked]) -> None:
    for one in checked:
        sums.add(one)
    print(f"\r{sums.printed} printed, {len(sums.failed)} failed", end="", file=sys.stderr, flush=True)


def _kind(message: str) -> str:
    """What is the same for all places of one fault."""
    return re.sub(r"^\d+:\d+: ", "", message)


def _record(arguments: argparse.Namespace, files: Sums, drawn: Sums) -> dict[str, Any]:
    return {
        "how": " ".join(["python -m tests.ascendc_compile", *sys.argv[1:]]),
        "date": str(datetime.datetime.now(datetime.UTC).date()),
        "files": _counts(files),
        "random": {"first_seed": arguments.seed, **_counts(drawn)},
    }


def _counts(sums: Sums) -> dict[str, Any]:
    reasons = Counter(reason.partition(":")[0] for reason in sums.refused.values())
    return {
        "passed": sums.passed, "failed": len(sums.failed), "refused": len(sums.refused),
        "refusals": dict(reasons.most_common()), "diagnostics": dict(sums.kinds()), "failures": sums.failed,
    }  # fmt: skip


def _print(files: Sums, drawn: Sums) -> None:
    for sums in (files, drawn):
        for name, errors in sums.failed.items():
            print("\n".join(f"{name}: {error}" for error in errors[:SHOWN]))
        for kind, kernels in sums.kinds():
            print(f"{kernels:6} kernels: {kind}")
        if sums.refused:
            print(f"{len(sums.refused)} refused by the target")
    print(f"{files.passed + drawn.passed} passed, {len(files.failed) + len(drawn.failed)} failed")


if __name__ == "__main__":
    main()
