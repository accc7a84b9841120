"""The first call: what a user waits for in a fresh process, with an empty and with a filled kernel cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Spread

PARTS = ("import", "compile")
ColdTimes = dict[str, dict[str, Spread]]


def cold_times(case: str, contender: str, processes: int) -> ColdTimes:
    """Milliseconds of ``import`` and ``compile`` with an ``empty`` and a ``filled`` cache, over so many fresh processes.

    ``contender`` is "ours" or "torch"; see ``benchmarks.fresh`` for what the parts are.
    """
    runs: dict[str, list[dict[str, float]]] = {"empty": [], "filled": []}
    for _ in range(processes):
        with tempfile.TemporaryDirectory() as folder:
            for records in runs.values():  # the first process fills the cache of the second
                records.append(_fresh_process(case, contender, Path(folder)))
    return {
        state: {part: Spread.of([record[part] for record in records]) for part in PARTS}
        for state, records in runs.items()
    }


def _fresh_process(case: str, contender: str, cache: Path) -> dict[str, float]:
    caches = {"GRAPHKERNEL_CACHE_DIR": str(cache / "kernels"), "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor")}
    command = [sys.executable, "-m", "benchmarks.fresh", case, contender]
    done = subprocess.run(command, env=os.environ | caches, capture_output=True, text=True, check=True, timeout=600)
    return json.loads(done.stdout.splitlines()[-1])
