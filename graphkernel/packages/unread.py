"""A graph whose text nobody has read yet: who only asks for it by its text, as a cache does, never reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphkernel.elsewhere import ModelFile
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.printer import large_constants, show


class Content(NamedTuple):
    """The text of a graph, and its large constants by digest."""

    text: str
    constants: Mapping[str, np.ndarray]


class UnreadGraph(Graph):
    """Reads its text when somebody looks at anything of it, and is a graph like any other from then on.

    ``read`` gives the graph of ``content``.
    """

    def __init__(self, content: Content, read: Callable[[], Graph]) -> None:
        vars_of(self).update(content=content, read=read)

    def __getattribute__(self, name: str) -> Any:
        own = vars_of(self)
        own.update(vars(own["read"]()))  # two threads read the same
        object.__setattr__(self, "__class__", Graph)
        return getattr(self, name)


def content_of(graph: Graph) -> Content:
    """Of any graph; one that is not read yet stays so."""
    known = vars_of(graph).get("content")
    if known is not None:
        return known
    constants = {data.digest: data.array for data in large_constants(graph) if data.array is not None}
    return Content(show(graph), constants)


def from_file(graph: Graph, model: ModelFile) -> Graph:
    """The ``graph``, which is that of the ``model``."""
    vars_of(graph).update(model=model)
    return graph


def file_of(graph: Graph) -> ModelFile | None:
    """The file that the graph was loaded from, where that is known."""
    return vars_of(graph).get("model")


def vars_of(graph: Graph) -> dict[str, Any]:
    """The attributes that it has so far."""
    return object.__getattribute__(graph, "__dict__")
