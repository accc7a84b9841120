"""``python -m benchmarks.corpus RAW --json OUT``: what ``kernelgen verify --json RAW`` wrote of many files, made short.

A record is [file, status, reason, ms of compiling, bytes at its own size, {bytes of a run: features seen there first}];
features are numbers of the list ``features``, which has each word once.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

HOW = (
    "python -m kernelgen verify ../shared/akg_corpus --target {} --json RAW; python -m benchmarks.corpus RAW --json OUT"
)


def reduced(document: Mapping[str, Any], date: str) -> dict[str, Any]:
    """The document to keep: counts, the words of all features, a row a file."""
    records: Sequence[Mapping[str, Any]] = document["records"]
    words = sorted({word for record in records for word in record["features"]})
    number = {word: place for place, word in enumerate(words)}
    ran = [record for record in records if record["argument_bytes"]]
    own = [record for record in ran if record["own_bytes"] in record["argument_bytes"]]
    times = [record["times"]["compile"] for record in ran]
    return {
        "how": HOW.format(document["target"]),
        "date": date,
        "target": document["target"],
        "versions": document["versions"],
        **{status: sum(record["status"] == status for record in records) for status in ("passed", "failed", "skipped")},
        "at_own_size": len(own),
        "of_these_by_sample_of_blocks": sum(bool(record["sampled"]) for record in own),
        "at_other_sizes_only": len(ran) - len(own),
        "compile_ms": {
            "median": round(float(np.median(times)), 2),
            "p95": round(float(np.percentile(times, 95)), 2),
            "max": round(max(times), 2),
        },
        "features": words,
        "records": [_row(record, number) for record in records],
    }


def _row(record: Mapping[str, Any], number: Mapping[str, int]) -> list[Any]:
    seen: dict[str, list[int]] = {str(size): [] for size in record["argument_bytes"]}
    for word, size in record["features"].items():
        seen.setdefault(str(size), []).append(number[word])
    times = round(record["times"].get("compile", 0.0), 2)
    return [record["name"], record["status"], record["reason"], times, record["own_bytes"], seen]


def text(document: Mapping[str, Any]) -> str:
    """JSON with a line a record."""
    rows = ",\n".join(f"  {json.dumps(row)}" for row in document["records"])
    head = json.dumps({key: value for key, value in document.items() if key != "records"}, indent=1)
    return f'{head[:-2]},\n "records": [\n{rows}\n ]\n}}\n'


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus")
    parser.add_argument("raw", type=Path)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    document = reduced(json.loads(arguments.raw.read_text()), datetime.date.today().isoformat())
    arguments.json.write_text(text(document))
    statuses = Counter(row[1] for row in document["records"])
    print(", ".join(f"{count} {status}" for status, count in statuses.items()))


if __name__ == "__main__":
    main()
