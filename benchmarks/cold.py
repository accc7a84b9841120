"""The first call: what a user waits for in a fresh process, with an empty and with a filled kernel cache.

``python -m benchmarks.cold CASE ours|torch`` prints one JSON object. ``import`` is loading the libraries, ``compile`` the
first call, with all that leads to it, less a later call; both in milliseconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from benchmarks.case import named
from benchmarks.cases import CASES
from benchmarks.measure import Spread

CONTENDERS: Mapping[str, tuple[str, ...]] = {
    "ours": ("graphkernel", "kernelgen.driver"),
    "torch": ("torch", "torch._inductor.compile_fx"),
}


def cold_times(case: str, contender: str, processes: int) -> dict[str, dict[str, Spread]]:
    """``import`` and ``compile`` times with an ``empty`` and a ``filled`` cache, over several fresh processes."""
    runs: dict[str, list[dict[str, float]]] = {"empty": [], "filled": []}
    for _ in range(processes):
        with tempfile.TemporaryDirectory() as folder:
            for records in runs.values():  # the first process fills the cache of the second
                records.append(_fresh_process(case, contender, Path(folder)))
    return {
        state: {key: Spread.of([record[key] for record in records]) for key in ("import", "compile")}
        for state, records in runs.items()
    }


def _fresh_process(case: str, contender: str, cache: Path) -> dict[str, float]:
    environment = os.environ | {
        "GRAPHKERNEL_CACHE_DIR": str(cache / "kernels"),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
    }
    command = [sys.executable, "-m", "benchmarks.cold", case, contender]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=600)
    return json.loads(done.stdout.splitlines()[-1])


def _milliseconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3


def main(case: str, contender: str) -> None:
    """Measures in this process, which must be a fresh one."""
    problem = named(CASES, [case])[0].at(tiny=False)
    assert problem.truth.size
    loading = _milliseconds(lambda: [import_module(name) for name in CONTENDERS[contender]])
    from benchmarks import contestants

    start = time.perf_counter()
    first = next(getattr(contestants, contender)(problem))
    first.run()
    until_first = (time.perf_counter() - start) * 1e3
    later = min(_milliseconds(first.run) for _ in range(3))
    print(json.dumps({"import": loading, "compile": until_first - later}))


if __name__ == "__main__":
    main(*sys.argv[1:])
