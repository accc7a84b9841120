"""Input arrays for a graph: from a file, or random."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from graphkernel.array_files import read_arrays
from graphkernel.errors import InputError, OptionError, nearest
from graphkernel.ir.bind import concrete_shape
from graphkernel.ir.graph import Graph
from graphkernel.ir.names import meant
from graphkernel.ir.types import TensorType, symbols_of

DEFAULT_EXTENT = 8


def read_inputs(graph: Graph, path: Path) -> list[np.ndarray]:
    """The arrays of an .npz file that are called like the inputs; ``InputError`` names those that are not there."""
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    found = read_arrays(path, InputError)
    called = {name: spelling for name in graph.input_names if (spelling := meant(name, found)) is not None}
    missing = [name for name in graph.input_names if name not in called]
    if missing:
        raise InputError(f"{path} holds {', '.join(found)}; no array is called {', '.join(missing)}")
    return [found[called[name]] for name in graph.input_names]


def random_inputs(graph: Graph, extents: Mapping[str, int] | None = None, seed: int = 0) -> list[np.ndarray]:
    """Random arrays; symbols without an extent get 8.

    Floats are normal; integers and booleans are 0 or 1, which suits masks and is an index that always exists.
    """
    names = symbols_of(dim for value in graph.inputs for dim in value.type.shape)
    for name in extents or {}:
        if name not in names:
            known = f"; symbols: {', '.join(names)}" if names else "; every extent is fixed"
            raise OptionError(f"no input has the symbol {name!r}{nearest(name, names)}{known}")
    known = dict.fromkeys(names, DEFAULT_EXTENT) | dict(extents or {})
    generator = np.random.default_rng(seed)
    return [_random(generator, value.type, concrete_shape(value.type.shape, known)) for value in graph.inputs]


def _random(generator: np.random.Generator, of: TensorType, shape: tuple[int, ...]) -> np.ndarray:
    drawn = generator.standard_normal(shape) if of.dtype.is_float else generator.integers(0, 2, shape)
    return drawn.astype(of.dtype.numpy)
