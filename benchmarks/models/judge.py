"""Whether results agree with onnxruntime's: types and shapes equal, numbers as near as onnxruntime is to itself.

onnxruntime with and without its graph optimizations computes the same model by two roads, and inputs and weights one unit
in the last place away ask for almost the same; how far these results are apart says what rounding does to this model. A
quantized one turns a rounding error into a whole step where a number lies between two.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from graphkernel.report.difference import largest_difference

TOLERANCE = 1e-4
OF_ITS_OWN = 16.0
SMALLEST_SCALE = 1e-3
"""Results below this are what is left of larger numbers, a saturated sigmoid's say: they are compared on this scale."""


def verdict(folder: Path) -> dict[str, Any]:
    """How far ours and onnxruntime's own are apart over all sets, and what does not agree (nothing when all does)."""
    apart, own, wrong = 0.0, 0.0, list[str]()
    for path in sorted(folder.glob("expected*.npz")):
        number = path.stem.removeprefix("expected")
        expected, ours, *others = (
            _read(folder / f"{name}{number}.npz") for name in ("expected", "graphkernel", "unoptimized", "nudged")
        )
        if list(expected) != list(ours):
            wrong.append(f"results {list(ours)}, expected {list(expected)}")
            continue
        for name, array in expected.items():
            if (array.dtype, array.shape) != (ours[name].dtype, ours[name].shape):
                wrong.append(
                    f"result {name} is {ours[name].dtype}{list(ours[name].shape)}, expected {array.dtype}{list(array.shape)}"
                )
            else:
                apart = max(apart, _apart(ours[name], array))
                own = max(own, *(_apart(other[name], array) for other in others))
    if apart > max(TOLERANCE, OF_ITS_OWN * own):
        wrong.append(f"numbers are {apart:.1e} apart, onnxruntime's own {own:.1e}")
    return {"apart": apart, "own": own, "wrong": wrong}


def _apart(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference over the largest value; infinite where what is no number differs."""
    if found.shape != expected.shape or expected.dtype.kind not in "biufc":
        return 0.0 if np.array_equal(found, expected) else float("inf")
    apart = largest_difference(found, expected)
    scale = float(np.abs(expected.astype(np.float64)).max(initial=0.0, where=np.isfinite(expected)))
    return apart * min(1.0, scale / SMALLEST_SCALE) if scale else float(np.abs(found).max(initial=0.0)) / SMALLEST_SCALE


def _read(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}
