"""``python -m benchmarks.whole_networks FOLDER --json OUT``: every ONNX network of a folder, ours beside the peers.

Inputs are those of ``NAME.npz`` beside ``NAME.onnx``, or are drawn until onnxruntime takes them. The record grows network by
network; one that is in it is not run again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe
from benchmarks.whole_networks.contestants import OURS, offers
from benchmarks.whole_networks.limits import limits
from benchmarks.whole_networks.race import race
from benchmarks.whole_networks.shares import shares
from benchmarks.whole_networks.start import starts

THREADS = (1, 2)
STARTS = 3


def main() -> None:
    """Parses the command line and runs what is not in the record yet."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.whole_networks", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, required=True, help="the record; it is gone on with where it is there")
    parser.add_argument("--only", default="", help="networks whose name has this in it, measured anew")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    record: dict[str, Any] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {"networks": {}}
    for path in sorted(arguments.folder.glob("*.onnx")):
        if arguments.only not in path.stem or (path.stem in record["networks"] and not arguments.only):
            continue
        found = record["networks"][path.stem] = measured(path, arguments.rounds)
        print(f"{path.stem}: {said(found)}", flush=True)
        record |= {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), "machine": describe()}
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


def measured(path: Path, rounds: int) -> dict[str, Any]:
    """The record of one network."""
    with tempfile.TemporaryDirectory() as folder:
        given = path.with_suffix(".npz")
        inputs = given if given.exists() else _drawn(path, Path(folder))
        with np.load(inputs) as file:
            arrays = [file[name] for name in file.files]
        load = os.getloadavg()[0]
        races = {str(threads): race(path, arrays, threads, rounds) for threads in THREADS}
        return {
            "bytes": path.stat().st_size,
            "races": races,
            "steps": shares(path, arrays, rounds),
            "limits": asdict(limits()),
            "starts": {name: starts(name, path, inputs, STARTS) for name, _ in offers(path, 1)},
            "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        }


def _drawn(path: Path, folder: Path) -> Path:
    import onnxruntime

    from benchmarks.models.draw import accepted

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    target = folder / "inputs.npz"
    np.savez(target, **accepted(session, 0, folder / "tried")[0])  # pyright: ignore[reportArgumentType]  # any array
    return target


def said(found: dict[str, Any]) -> str:
    """Our time and that of the best peer, for each number of threads."""
    return "; ".join(_of_race(threads, found["races"][threads]) for threads in found["races"])


def _of_race(threads: str, race: dict[str, Any]) -> str:
    if isinstance(race[OURS], str):
        return race[OURS]
    kind = "median" if threads == "1" else "least"
    times = {name: each[kind] for name, each in race.items() if not isinstance(each, str)}
    peer = min((name for name in times if name != OURS), key=lambda name: times[name])
    return f"{threads}: {times[OURS]:.2f} ms, {peer} {times[peer]:.2f}, {times[peer] / times[OURS]:.2f}x"


if __name__ == "__main__":
    main()
