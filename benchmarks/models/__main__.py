"""``python -m benchmarks.models FOLDER --json OUT``: every ONNX model below a folder, ours beside onnxruntime.

Per model: whether onnxruntime runs it, whether ours loads and agrees on two sizes of its open extents, seconds to the first
result (with an empty cache of kernels and with a warm one) and the peak of memory, each in a process of its own. The record
grows model by model; one that is in it is not run again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from benchmarks.models.children import child, draw
from benchmarks.models.judge import verdict


def main() -> None:
    """Parses the command line and runs what is not in the record yet."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, required=True, help="the record; it is gone on with where it is there")
    parser.add_argument("--only", default="", help="models whose name has this in it, taken anew")
    arguments = parser.parse_args()
    record: dict[str, Any] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {"models": {}}
    for path in sorted(arguments.folder.rglob("*.onnx")):
        name = str(path.relative_to(arguments.folder))
        if arguments.only not in name or (name in record["models"] and not arguments.only):
            continue
        found = record["models"][name] = contest(path)
        print(f"{name}: {said(found)}", flush=True)
        load = [*record.get("load", ()), round(os.getloadavg()[0], 1)]
        record |= {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), "machine": describe()}
        record["load"] = [min(load), max(load)]  # memory is the same under any, seconds are not
        arguments.json.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    passed = sum(is_good(found) for found in record["models"].values())
    print(f"{passed} passed, {len(record['models']) - passed} failed")


def contest(path: Path) -> dict[str, Any]:
    """The record of one model."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
        refused = draw(path, folder)
        if refused:
            return {"bytes": path.stat().st_size, "onnxruntime": refused}
        environment, sets = {"GRAPHKERNEL_CACHE_DIR": cache}, len(list(Path(folder).glob("inputs*.npz")))
        theirs = child("onnxruntime", path, folder, environment)
        runs, judged = dict[str, Any](), list[dict[str, Any]]()
        for side in ("cold", "warm"):  # what is compiled, then what the cache gives back: each is held to the results
            runs[side] = child("graphkernel", path, folder, environment)
            judged += [verdict(Path(folder))] if isinstance(runs[side], dict) else []
        both = len(judged) == len(runs)
        worst = max(judged, key=lambda each: (len(each["wrong"]), each["apart"])) if both else {}
        return {"bytes": path.stat().st_size, "sets": sets, "onnxruntime": theirs, **runs, **worst}


def is_good(found: dict[str, Any]) -> bool:
    """Whether ours does what onnxruntime does; where that takes nothing, nothing is asked of us."""
    return isinstance(found.get("onnxruntime"), str) or found.get("wrong") == []


def said(found: dict[str, Any]) -> str:
    """One line."""
    if isinstance(found["onnxruntime"], str):
        return f"onnxruntime: {found['onnxruntime']}"
    if isinstance(found["cold"], str) or isinstance(found["warm"], str):
        return f"FAILED: {found['cold'] if isinstance(found['cold'], str) else found['warm']}"
    state = "FAILED: " + "; ".join(found["wrong"]) if found["wrong"] else f"agrees to {found['apart']:.0e}"
    cold, warm = (f"{of_theirs(found, side, 'peak_kib'):.2f}" for side in ("cold", "warm"))
    return f"{state}; memory {cold}, warm {warm}, warm start {of_theirs(found, 'warm', 'seconds'):.2f} of onnxruntime's"


def of_theirs(found: dict[str, Any], side: str, what: str) -> float:
    """What one of our runs took, as a share of what onnxruntime took."""
    return found[side][what] / found["onnxruntime"][what]


if __name__ == "__main__":
    main()
