"""Files of every kind, by extension: ``.onnx``, ``.gk`` (text IR), ``.json`` and ``.info`` (composite kernels).

The text IR names large constants by their digest. ``save`` puts their content beside it, ``model.gk`` with
``model.gk.npz``, and ``load`` reads both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from graphkernel.errors import FrontendError, ParseError
from graphkernel.frontends.onnx import load_onnx
from graphkernel.handoff import load_composite
from graphkernel.hooks import write_atomically
from graphkernel.ir.graph import ConstantData, Graph
from graphkernel.ir.literals import INLINE_LIMIT
from graphkernel.ir.text import parse as parse_with
from graphkernel.ir.text import show
from graphkernel.ops import OPS

EXTENSIONS = (".onnx", ".gk", ".json", ".info")


def load(path: str | os.PathLike[str]) -> Graph:
    """The graph in a file. Raises ``FrontendError`` (or ``ParseError``, with line and column) saying what is wrong where."""
    file = Path(path)
    if not file.is_file():
        raise FrontendError(f"{file}: {'not a file' if file.exists() else 'there is no such file'}")
    match file.suffix:
        case ".onnx":
            return load_onnx(file)
        case ".gk":
            return _load_text(file)
        case ".json" | ".info":
            return load_composite(file)
        case other:
            raise FrontendError(f"{file}: the extension {other or '(none)'} is none of {', '.join(EXTENSIONS)}")


def _load_text(file: Path) -> Graph:
    try:
        return parse(file.read_text(encoding="utf-8"), _weights_beside(file))
    except ParseError as error:
        raise ParseError(error.message, error.line, error.column, str(file)) from error
    except UnicodeDecodeError as error:
        raise FrontendError(f"{file}: not a text in UTF-8: {error}") from error


def parse(text: str, weights: Mapping[str, np.ndarray] | None = None) -> Graph:
    """The graph of a text; ``weights`` holds the content of large constants by digest. The inverse of ``str(graph)``."""
    return parse_with(text, OPS, weights or {})


def save(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Writes a graph as text IR, and its large constants beside it. Files appear whole or not at all."""
    file = Path(path)
    if file.suffix != ".gk":
        raise FrontendError(f"{file}: graphs are written as .gk, not {file.suffix or 'without an extension'}")
    if not file.parent.is_dir():
        raise FrontendError(f"{file}: there is no folder {file.parent}")
    large = {data.digest: data.array for data in _large_constants(graph) if data.array is not None}
    if large:
        beside = _beside(file)
        unfinished = beside.with_name(f".{beside.name}.{os.getpid()}.npz")
        np.savez(unfinished, **large)  # pyright: ignore[reportArgumentType]  # numpy's keywords take any array
        unfinished.replace(beside)
    write_atomically(file, show(graph))


def _large_constants(graph: Graph) -> Iterator[ConstantData]:
    for node in graph.nodes:
        if node.body is not None:
            yield from _large_constants(node.body)
        elif node.data is not None and node.data.array is not None and node.data.array.size > INLINE_LIMIT:
            yield node.data


def _weights_beside(file: Path) -> dict[str, np.ndarray]:
    """The constants beside a text file, by digest; each is checked against its digest."""
    if not _beside(file).is_file():
        return {}
    with np.load(_beside(file), allow_pickle=False) as found:
        weights = {digest: found[digest] for digest in found.files}
    for digest, array in weights.items():
        if ConstantData.of(array).digest != digest:
            raise FrontendError(
                f"{_beside(file)}: the content of {digest} does not fit its digest; save the graph again"
            )
    return weights


def _beside(file: Path) -> Path:
    return file.with_name(f"{file.name}.npz")
