"""``python -m benchmarks.whole_networks FOLDER --json OUT``: every ONNX network of a folder, ours beside the peers.

Inputs are those of ``NAME.npz`` beside ``NAME.onnx``, or are drawn until onnxruntime takes them. The record grows network by
network; one that is in it is not run again. A start of torch.compile takes a minute: ``--races`` measures races alone anew.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe
from benchmarks.whole_networks.contestants import OURS, offers
from benchmarks.whole_networks.limits import limits
from benchmarks.whole_networks.race import Arrays, race
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
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--races", action="store_true", help="only races, all anew; what else the record has stays")
    arguments = parser.parse_args()
    record: dict[str, Any] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {"networks": {}}
    for path in sorted(arguments.folder.glob("*.onnx")):
        again = arguments.only or arguments.races
        if arguments.only not in path.stem or (path.stem in record["networks"] and not again):
            continue
        found = raced(path, arguments.rounds) if arguments.races else measured(path, arguments.rounds)
        record["networks"][path.stem] = record["networks"].get(path.stem, {}) | found
        print(f"{path.stem}: {said(found)}", flush=True)
        record |= {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), "machine": describe()}
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


def measured(path: Path, rounds: int) -> dict[str, Any]:
    """The record of one network."""
    with _inputs(path) as inputs:
        found = _raced(path, _arrays(inputs), rounds)
        return found | {
            "steps": shares(path, _arrays(inputs), rounds),
            "limits": asdict(limits()),
            "starts": {name: starts(name, path, inputs, STARTS) for name, _ in offers(path, 1)},
        }


def raced(path: Path, rounds: int) -> dict[str, Any]:
    """That part of the record of one network which its races make."""
    with _inputs(path) as inputs:
        return _raced(path, _arrays(inputs), rounds)


def _raced(path: Path, arrays: Arrays, rounds: int) -> dict[str, Any]:
    load = os.getloadavg()[0]
    races = {str(threads): race(path, arrays, threads, rounds) for threads in THREADS}
    return {"bytes": path.stat().st_size, "races": races, "load": [round(load, 1), round(os.getloadavg()[0], 1)]}


@contextmanager
def _inputs(path: Path) -> Generator[Path]:
    """The file of a network's inputs; drawn ones are gone in the end."""
    given = path.with_suffix(".npz")
    with tempfile.TemporaryDirectory() as folder:
        yield given if given.exists() else _drawn(path, Path(folder))


def _arrays(inputs: Path) -> Arrays:
    with np.load(inputs) as file:
        return [file[name] for name in file.files]


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
