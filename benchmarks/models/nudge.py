"""Inputs and weights one unit in the last place away: what becomes of the results then says how rounding matters to a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np

FLOATS = {1: np.float32, 10: np.float16, 11: np.float64}
"""By ONNX's numbers of data types."""


def nudged_arrays(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Floats one unit in the last place larger."""
    return {
        name: np.nextafter(array, array.dtype.type(np.inf)) if array.dtype.kind == "f" else array
        for name, array in arrays.items()
    }


def nudged_model(path: Path, folder: Path) -> Path:
    """A copy of the model whose float weights are one unit in the last place larger, smaller, or the same, at random."""
    import onnx
    from onnx import numpy_helper

    model, random = onnx.load(path), np.random.default_rng(0)
    for tensor in model.graph.initializer:
        if tensor.data_type in FLOATS:
            array = numpy_helper.to_array(tensor)
            sides = random.integers(-1, 2, array.shape)
            larger, smaller = (np.nextafter(array, array.dtype.type(side)) for side in (np.inf, -np.inf))
            moved = np.where(sides > 0, larger, np.where(sides < 0, smaller, array))
            tensor.CopyFrom(numpy_helper.from_array(moved.astype(array.dtype), tensor.name))
    made = folder / "nudged.onnx"
    onnx.save(model, made)
    return made
