"""Measures all functions in all data types, prints the table, and writes it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.machine import describe
from tests.accuracy.functions import BY_NAME
from tests.accuracy.measure import measured

COUNTS = {False: {"float32": 1 << 19, "float64": 1 << 14}, True: {"float32": 1 << 23, "float64": 1 << 17}}
"""Arguments of each function, usually and densely; of the half types all."""
KINDS = ("float16", "bfloat16", "float32", "float64")


def main() -> int:
    """1 when a bound does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy", description=__doc__)
    parser.add_argument(
        "--dense", action="store_true", help="sixteen times as many float32, eight times as many float64"
    )
    parser.add_argument("--only", nargs="+", choices=BY_NAME, default=list(BY_NAME), help="these functions")
    parser.add_argument("--json", metavar="OUT", type=Path, help="where the record goes")
    given = parser.parse_args()
    records: dict[str, dict[str, object]] = {}
    held = True
    for name in given.only:
        function = BY_NAME[name]
        results = {kind: measured(function, kind, COUNTS[given.dense].get(kind, 0)) for kind in KINDS}
        held &= all(one.over_bound <= 1 and not one.special for one in results.values())
        print(
            f"{name:12}",
            *(f"{one.worst:9.3g} ({one.over_bound:4.2f}) {one.special}" for one in results.values()),
            flush=True,
        )
        records[name] = {
            kind: one.record() | {"bound": function.bound(kind), "tail": function.tail} for kind, one in results.items()
        }
    if given.json:
        text = json.dumps(
            {"machine": describe(), "dense": given.dense, "functions": records}, indent=1, allow_nan=False
        )
        given.json.write_text(text + "\n")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
