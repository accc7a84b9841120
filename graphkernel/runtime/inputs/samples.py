"""Input arrays for a graph: from a file, or random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path

import numpy as np

from graphkernel.errors import InputError, OptionError, nearest
from graphkernel.runtime.inputs.index_ranges import rows_of_tables
from graphkernel.system.array_files import read_arrays
from kernelgen.system.escape import line
from kernelgen.tensor.bind import bind_symbols, concrete_shape
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.names import meant
from kernelgen.tensor.types import TensorType, is_object, is_whole, symbols_of

DEFAULT_EXTENT = 8
DEFAULT_SIDE = 64  # of images, which networks halve again and again
IMAGE_RANK = 4
BYTE = 8  # bits: what images and quantized tensors are made of


def read_inputs(graph: Graph, path: Path) -> list[np.ndarray]:
    """The arrays of an .npz file that are called like the inputs.

    Raises ``InputError``, which names those that are not there.
    """
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    found = read_arrays(path, InputError)
    called = {name: spelling for name in graph.input_names if (spelling := meant(name, found)) is not None}
    missing = [name for name in graph.input_names if name not in called]
    if missing:
        raise InputError(f"{path} holds {', '.join(found)}; no array is called {', '.join(missing)}")
    return [found[called[name]] for name in graph.input_names]


def random_inputs(graph: Graph, extents: Mapping[str, int] | None = None, seed: int = 0) -> list[np.ndarray]:
    """Random arrays; symbols without an extent get 8, those of the sides of images 64.

    Floats are normal. Integers that are indices of tables take all of their rows, those of 8 bits all values; others are
    0 or 1 with a 1 at the beginning of each row, and booleans likewise: a mask that hides everything is no sample.

    Raises OptionError for an extent of a symbol that no input has.
    """
    names = symbols_of(dim for value in graph.inputs for dim in value.type.shape)
    for name in extents or {}:
        if name not in names:
            known = f"; symbols: {', '.join(names)}" if names else "; every extent is fixed"
            raise OptionError(f"no input has the symbol {name!r}{nearest(name, names)}{known}")
    sides = symbols_of(dim for value in graph.inputs for dim in value.type.shape[2:] if value.type.rank >= IMAGE_RANK)
    known = dict.fromkeys(names, DEFAULT_EXTENT) | dict.fromkeys(sides, DEFAULT_SIDE) | dict(extents or {})
    generator = np.random.default_rng(seed)
    rows = rows_of_tables(graph, known)
    return [
        _random(generator, value.type, concrete_shape(value.type.shape, known), rows.get(value))
        for value in graph.inputs
    ]


def told(graph: Graph, arrays: Sequence[np.ndarray]) -> list[str]:
    """What the inputs are, a line each: name, type, and what stands in it."""
    return [
        line(f"{name} {array.dtype}{list(array.shape)}: {_content(array)}")
        for name, array in zip(graph.input_names, arrays, strict=True)
    ]


def symbols_told(graph: Graph, arrays: Sequence[np.ndarray]) -> str:
    """``N=8, S=8``: the extents that the arrays give to the symbols; empty where there are none."""
    return ", ".join(f"{name}={extent}" for name, extent in sorted(bind_symbols(graph.inputs, arrays).items()))


def _random(generator: np.random.Generator, of: TensorType, shape: tuple[int, ...], rows: int | None) -> np.ndarray:
    if is_whole(of.dtype):
        raise InputError(f"no value of {of.dtype} can be drawn; call the executable from Python, with one of yours")
    if is_object(of.dtype):
        return np.array([f"text {number}" for number in range(prod(shape))], object).reshape(shape)
    if of.dtype.is_float or of.dtype.numpy.kind == "c":
        return generator.standard_normal(shape).astype(of.dtype.numpy)
    if rows is not None:
        return generator.integers(0, max(rows, 1), shape).astype(of.dtype.numpy)
    if of.dtype.is_integer and of.dtype.bits == BYTE:
        limits = np.iinfo(of.dtype.numpy)
        return generator.integers(limits.min, limits.max + 1, shape).astype(of.dtype.numpy)
    drawn = np.asarray(generator.integers(0, 2, shape))
    if drawn.ndim:
        drawn[..., :1] = 1
    return drawn.astype(of.dtype.numpy)


def _content(array: np.ndarray) -> str:
    """The range of what an array holds."""
    if array.size == 0:
        return "no elements"
    least, greatest = array.min(), array.max()
    return f"{least:.4g} to {greatest:.4g}" if array.dtype.kind == "f" else f"{least} to {greatest}"
