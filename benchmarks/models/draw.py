"""Inputs of a model, drawn by what onnxruntime says of them alone: sizes and ranges are tried until it runs.

Nothing of ours is asked: an importer that misreads a model must not choose what it is tried on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]

EXTENTS = (8, 2, 1, 16, 64, 128, 80, 48, 224, 256, 320, 512, 3, 4000, 16000)
"""Of every open extent but the first axis, one after another."""
BATCHES = (2, 1)
INTEGERS = (2, 1, 100, 16001)
"""Integers are drawn below this; below 16001 they are 16000, which is what a sampling rate has to be."""
ELEMENT_TYPES: Mapping[str, str] = {
    "tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16", "tensor(int64)": "int64",
    "tensor(int32)": "int32", "tensor(int16)": "int16", "tensor(int8)": "int8", "tensor(uint8)": "uint8",
    "tensor(uint16)": "uint16", "tensor(uint32)": "uint32", "tensor(uint64)": "uint64", "tensor(bool)": "bool",
}  # fmt: skip
WANTED_SETS = 2
MOST_FAILURES = 300


def accepted(session: Any, seed: int, tried: Path) -> list[Arrays]:
    """Up to two sets of inputs of different sizes that the session takes; none when it takes nothing that is tried.

    The number of every set's extent is written to ``tried`` before it runs. What stands there was fatal: it is left out.
    """
    fatal = tried.read_text().split() if tried.exists() else list[str]()
    sets_of_an_extent = len(BATCHES) * len(INTEGERS) * 2
    found: list[Arrays] = []
    failures = 0
    for number, arrays in enumerate(candidates(session.get_inputs(), seed)):
        extent = str(number // sets_of_an_extent)
        if extent in fatal:
            continue
        tried.write_text(" ".join([*fatal, extent]))
        if found and _sizes(arrays) == _sizes(found[-1]):
            continue
        try:
            session.run(None, arrays)
        except Exception:  # onnxruntime raises many classes of its own; whatever it is, these inputs do not fit
            failures += 1
            if failures > MOST_FAILURES:
                break
            continue
        found.append(arrays)
        if len(found) == WANTED_SETS or not _is_open(session.get_inputs()):
            break
    return found


def candidates(inputs: Sequence[Any], seed: int) -> Iterator[Arrays]:
    """Sets of inputs, the likeliest first; extents of one name are equal.

    Open axes between the first and the last have the extent of the last, as in images, or that of the first, as in states.
    """
    for extent, batch, most, only_last in product(EXTENTS, BATCHES, INTEGERS, (False, True)):
        random = np.random.default_rng(seed)
        names: dict[str, int] = {}
        unnamed = count()

        def size(dim: object, axis: int, rank: int) -> int:
            if isinstance(dim, int):
                return dim
            name = str(dim) if dim else f"?{next(unnamed)}"  # noqa: B023  # used up within this round
            is_batch = axis == 0 or (only_last and axis < rank - 1)  # noqa: B023
            return names.setdefault(name, batch if is_batch else extent)  # noqa: B023

        yield {each.name: drawn(each, size, most, random) for each in inputs}


def drawn(each: Any, size: Any, most: int, random: np.random.Generator) -> np.ndarray:
    """An array for one input of a session."""
    shape = tuple(size(dim, axis, len(each.shape)) for axis, dim in enumerate(each.shape))
    name = ELEMENT_TYPES[each.type]
    if name.startswith("float"):
        return random.standard_normal(shape).astype(name)
    if name == "bool":
        return np.asarray(random.integers(0, 2, shape), np.bool_)
    return np.asarray(np.full(shape, 16000) if most > 16000 else random.integers(0, most, shape), name)


def _sizes(arrays: Arrays) -> list[tuple[int, ...]]:
    return [array.shape for array in arrays.values()]


def _is_open(inputs: Sequence[Any]) -> bool:
    return any(not isinstance(dim, int) for each in inputs for dim in each.shape)
