"""From the arguments of a command to a graph and the arrays that it runs on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from graphkernel.cli.base import say
from graphkernel.errors import OptionError
from graphkernel.frontends.known_models import load
from graphkernel.runtime.inputs.samples import random_inputs, read_inputs, symbols_told, told
from graphkernel.step_hooks import Progress
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.types import symbols_of


def graph_of(model: Path, dims: Iterable[str] | None, tell: Progress) -> Graph:
    """The ``model``, with the extents that ``--dim`` fixes (``dims``, such as ``batch=8``); ``tell`` is told how far
    it is.
    """
    tell(f"reading {model.name}", 0, 0)
    return load(model, extents(dims or ()))


def arrays_for(graph: Graph, inputs: Path | None, seed: int) -> list[np.ndarray]:
    """The arrays of the file ``inputs`` for a ``graph``, else random ones of this ``seed``; says on stderr what they
    are.
    """
    arrays = random_inputs(graph, seed=seed) if inputs is None else read_inputs(graph, inputs)
    symbols = symbols_told(graph, arrays)
    free = inputs is None and bool(symbols_of(dim for value in graph.inputs for dim in value.type.shape))
    source = f"inputs of {inputs}" if inputs else f"inputs drawn with seed {seed}"
    said = f"{source}{symbols and f', {symbols}'}{' (--dim NAME=EXTENT sets others)' if free else ''}"
    say("\n  ".join([f"{said}:", *told(graph, arrays)]) if arrays else "the model takes no inputs", err=True)
    return arrays


def extents(dims: Iterable[str]) -> dict[str, int]:
    """``N=8`` entries as a mapping. Raises OptionError for an entry of another form."""
    pairs = [(entry, *entry.rpartition("=")[::2]) for entry in dims]
    for entry, name, extent in pairs:
        if not (name and re.fullmatch("[0-9]{1,18}", extent)):
            raise OptionError(f"--dim {entry}: write NAME=EXTENT, such as N=8")
    return {name: int(extent) for _, name, extent in pairs}
