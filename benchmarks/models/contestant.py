"""``python -m benchmarks.models.contestant SIDE MODEL FOLDER``: one side on one model, in this process alone.

``draw`` has onnxruntime accept inputs and writes them and its results, with and without its graph optimizations, and those
of inputs and weights one unit in the last place away;
``onnxruntime`` and ``graphkernel`` load, compile and run once on the first set, then on every set, and print what it took as
one JSON object: seconds until the first result, and the peak of memory by then in KiB.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory import peak

Run = Callable[[dict[str, np.ndarray]], Sequence[Any]]


def draw(model: Path, folder: Path) -> None:
    """Writes the sets of inputs, and what onnxruntime computes for them."""
    from benchmarks.models.draw import accepted
    from benchmarks.models.nudge import nudged_arrays, nudged_model

    expected, unoptimized = _session(model, optimized=True), _session(model, optimized=False)
    moved = _session(nudged_model(model, folder), optimized=True)
    for number, arrays in enumerate(accepted(expected, 0, folder / "tried")):
        np.savez(folder / f"inputs{number}.npz", **arrays)  # pyright: ignore[reportArgumentType]
        _write(folder / f"expected{number}.npz", expected.run(None, arrays))
        _write(folder / f"unoptimized{number}.npz", unoptimized.run(None, arrays))
        _write(folder / f"nudged{number}.npz", moved.run(None, nudged_arrays(arrays)))


def measure(side: str, model: Path, folder: Path) -> dict[str, Any]:
    """What loading and the first run took; the results of every set are written."""
    start = time.perf_counter()
    run = _ours(model) if side == "graphkernel" else _theirs(model)
    sets = list(_sets(folder))
    results = run(sets[0])
    took, most = time.perf_counter() - start, round(peak() * 1024)
    threads = len(os.listdir("/proc/self/task"))
    _write(folder / f"{side}0.npz", results)
    for number, arrays in enumerate(sets[1:], 1):
        _write(folder / f"{side}{number}.npz", run(arrays))
    return {"seconds": round(took, 3), "peak_kib": most, "threads": threads}


def _ours(model: Path) -> Run:
    import graphkernel as gk

    executable = gk.compile(gk.load(model), opt_level=2)
    return lambda arrays: executable(*arrays.values())


def _theirs(model: Path) -> Run:
    session = _session(model, optimized=True)
    return lambda arrays: session.run(None, arrays)


def _session(model: Path, *, optimized: bool) -> Any:  # onnxruntime has no types
    import onnxruntime

    options = onnxruntime.SessionOptions()
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimized else level.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(os.fspath(model), options, providers=["CPUExecutionProvider"])


def _sets(folder: Path) -> Iterator[dict[str, np.ndarray]]:
    for path in sorted(folder.glob("inputs*.npz")):
        with np.load(path) as file:
            yield {name: file[name] for name in file.files}


def _write(path: Path, results: Sequence[Any]) -> None:
    """A list of results is its elements; texts are numpy's."""
    flat = {
        f"{position}.{part}": np.asarray(each, "U" if np.asarray(each).dtype == object else None)
        for position, result in enumerate(results)
        for part, each in enumerate(result if isinstance(result, list) else [result])
    }
    np.savez(path, **flat)  # pyright: ignore[reportArgumentType]


if __name__ == "__main__":
    chosen, path, place = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if chosen == "draw":
        draw(path, place)
    else:
        print(json.dumps(measure(chosen, path, place)))
