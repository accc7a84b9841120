"""``python -m tests.onnx_node_tests --level 2 --json OUT``: every operator test of the installed onnx, compared.

A case is passed, refused (with an error that says so), excused (an operator is random, or onnxruntime gives our answer and
not the expected one), wrong, or internal (any other exception). Ends with status 1 when one is wrong or internal.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.onnx_node_tests.cases import NodeCase, node_cases
from tests.onnx_node_tests.check import Kind, Outcome, check
from tests.onnx_node_tests.opinion import failure_of_onnxruntime

CACHE_VARIABLE = "GRAPHKERNEL_CACHE_DIR"
FAILURES = (Kind.WRONG, Kind.INTERNAL)


def main() -> None:
    """Runs the cases at the levels asked for and writes the record."""
    arguments = _arguments()
    levels = range(4) if arguments.level is None else [arguments.level]
    cases = node_cases(arguments.filter)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="onnx-node-tests-") as folder:
        os.environ[CACHE_VARIABLE] = folder
        for level in levels:
            outcomes = _checked(cases, level)
            refused = [case for case in cases if outcomes[case.name].kind is Kind.REFUSED]
            theirs = {case.name: failure_of_onnxruntime(case) for case in refused}
            found[str(level)] = _level_record(outcomes) | {"refused_where_onnxruntime_says": theirs}
            _report(level, outcomes)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(_record(found), indent=1) + "\n")
    sys.exit(any(record["failures"] for record in found.values()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.onnx_node_tests", description=__doc__)
    parser.add_argument("--level", type=int, choices=range(4), help="the opt_level; without it all four")
    parser.add_argument("--filter", default="", metavar="TEXT", help="only cases whose name contains this")
    parser.add_argument("--json", metavar="OUT", help="where the record goes")
    return parser.parse_args()


def _checked(cases: Sequence[NodeCase], level: int) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    for case in cases:
        outcomes[case.name] = check(case, level)
        if len(outcomes) % 50 == 0:
            print(f"\rlevel {level}: {len(outcomes)} of {len(cases)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return outcomes


def _level_record(outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    def counted(kind: Kind) -> dict[str, int]:
        return dict(Counter(o.reason for o in outcomes.values() if o.kind is kind).most_common())

    kinds = Counter(outcome.kind for outcome in outcomes.values())
    passed = Counter(" and ".join(o.ran_on) or "nothing" for o in outcomes.values() if o.kind is Kind.PASSED)
    return {
        "cases": len(outcomes), **{kind.value: kinds[kind] for kind in Kind},
        "passed_on": dict(passed.most_common()), "refusals": counted(Kind.REFUSED), "excuses": counted(Kind.EXCUSED),
        "excused_cases": sorted(name for name, o in outcomes.items() if o.kind is Kind.EXCUSED),
        "failures": [[name, o.kind, o.message] for name, o in outcomes.items() if o.kind in FAILURES],
    }  # fmt: skip


def _record(levels: Mapping[str, Any]) -> dict[str, Any]:
    packages = ("numpy", "onnx", "onnxruntime", "llvmlite")
    versions = {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in packages}}
    return {
        "how": "python -m tests.onnx_node_tests --json OUT",
        "date": str(datetime.datetime.now(datetime.UTC).date()), "versions": versions, "levels": levels,
    }  # fmt: skip


def _report(level: int, outcomes: Mapping[str, Outcome]) -> None:
    kinds = Counter(outcome.kind for outcome in outcomes.values())
    print(f"level {level}: " + ", ".join(f"{kinds[kind]} {kind.value}" for kind in Kind))
    refusals = Counter(o.reason for o in outcomes.values() if o.kind is Kind.REFUSED)
    print("".join(f"  {count:5} refused: {reason}\n" for reason, count in refusals.most_common()), end="")
    for name, outcome in outcomes.items():
        if outcome.kind in FAILURES:
            print(f"  {outcome.kind.value} {name}: {outcome.message}")


if __name__ == "__main__":
    main()
