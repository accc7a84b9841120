"""Files of every kind, by extension: ``.onnx``, ``.gk`` (text IR), ``.json`` and ``.info`` (composite kernels).

The text IR names large constants by their digest. ``save`` puts their content beside it, ``model.gk`` with
``model.gk.npz``, and ``load`` reads both.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphkernel.catalogue import collect
from graphkernel.errors import FrontendError, ParseError
from graphkernel.frontends.fixed_extents import with_extents
from graphkernel.frontends.onnx.importer import load_onnx
from graphkernel.frontends.onnx.rules.base import OnnxRule
from graphkernel.frontends.onnx.symbols import check_given, symbol_name
from graphkernel.handoff import load_composite
from graphkernel.ops import OPS
from graphkernel.system.array_files import read_arrays
from kernelgen.system.bounded_io import read_text, write_whole, writing
from kernelgen.tensor.constant_data import ConstantData
from kernelgen.tensor.derived import Derived
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.literals import INLINE_LIMIT
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.text import parse as parse_with
from kernelgen.tensor.text import show

if TYPE_CHECKING:
    from graphkernel.declarations import Catalogue

EXTENSIONS = (".onnx", ".gk", ".json", ".info")
WRITTEN = (".gk", ".onnx")


def load(
    path: str | os.PathLike[str], dims: Mapping[str, int] | None = None, catalogue: Catalogue | None = None
) -> Graph:
    """The graph in the file ``path``. ``dims`` fixes extents of inputs that have a name: ``dims={"height": 320}``.

    ``catalogue`` holds the operators of your packages, and the rules by which these are found in ONNX files; without one,
    those of installed plugins are known.
    Raises ``FrontendError`` (or ``ParseError``, with line and column) saying what is wrong where.
    """
    file = Path(path)
    _require_file(file)
    match file.suffix:
        case ".onnx":
            return load_onnx(file, dims, partial(_further_rule, catalogue))
        case ".gk":
            return _fixed(_load_text(file, catalogue), dims)
        case ".json" | ".info":
            return _fixed(load_composite(file, _operators(catalogue)), dims)
        case ".gkx":
            raise FrontendError(f"{file}: a package, which is compiled already: gk.load_compiled(path) runs it")
        case other:
            raise FrontendError(f"{file}: the extension {other or '(none)'} is none of {', '.join(EXTENSIONS)}")


def _require_file(file: Path) -> None:
    try:
        found = stat.S_ISREG(file.stat().st_mode)
    except FileNotFoundError:
        raise FrontendError(f"{file}: there is no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise FrontendError(f"{file}: cannot be read: {error}") from error
    if not found:
        raise FrontendError(f"{file}: not a file")


def _fixed(graph: Graph, dims: Mapping[str, int] | None) -> Graph:
    if not dims:
        return graph
    check_given(dims, [value.type for value in graph.inputs])
    given = {symbol_name(name): extent for name, extent in dims.items()}
    fixed = with_extents(graph, given)
    return replace(fixed, derived=(*starmap(Derived.given, given.items()), *fixed.derived))


def _operators(catalogue: Catalogue | None) -> tuple[Operator, ...]:
    return () if catalogue is None else catalogue.ops


def _further_rule(catalogue: Catalogue | None, name: str) -> OnnxRule | None:
    """The rule of an operator that is none of ONNX's, in the packages of a catalogue or in installed plugins."""
    if catalogue is None:
        from graphkernel.declarations import plugins  # no model of ONNX's operators alone has need of them

        packages: Iterable[str] = [entry.module for entry in plugins()]
    else:
        packages = catalogue.foreign_packages
    found = (rule for package in packages for rule in collect(package, OnnxRule) if rule.name == name)
    return next(found, None)


def _load_text(file: Path, catalogue: Catalogue | None) -> Graph:
    try:
        known = {**OPS, **{operator.name: operator for operator in _operators(catalogue)}}
        return parse_with(read_text(file, FrontendError), known, _weights_beside(file) or {})
    except ParseError as error:
        raise ParseError(error.message, error.line, error.column, str(file)) from error


def parse(text: str, weights: Mapping[str, np.ndarray] | None = None) -> Graph:
    """The graph of a text; ``weights`` holds the content of large constants by digest. The inverse of ``str(graph)``."""
    return parse_with(text, OPS, weights or {})


def save(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Writes a graph as text IR (``.gk``), its large constants beside it, or as a model (``.onnx``) with kernels as functions.

    Files appear whole or not at all. Raises ``FrontendError`` for another extension or what the disk refuses, and
    ``OptionError`` for an operator that ONNX has no form for.
    """
    file = Path(path)
    if file.suffix not in WRITTEN:
        wrong = file.suffix or "without an extension"
        raise FrontendError(f"{file}: graphs are written as {' or '.join(WRITTEN)}, not {wrong}")
    if not file.parent.is_dir():
        raise FrontendError(f"{file}: there is no folder {file.parent}")
    if file.suffix == ".onnx":
        from graphkernel.export.onnx_file import save_onnx  # declarations and onnx load when a model is written

        save_onnx(graph, file)
        return
    large = {data.digest: data.array for data in _large_constants(graph) if data.array is not None}
    if large:
        with writing(_beside(file), FrontendError) as stream:
            np.savez(stream, **large)  # pyright: ignore[reportArgumentType]  # numpy's keywords take any array
    write_whole(file, show(graph), FrontendError)


def _large_constants(graph: Graph) -> Iterator[ConstantData]:
    for node in graph.nodes:
        if node.body is not None:
            yield from _large_constants(node.body)
        elif node.data is not None and node.data.array is not None and node.data.array.size > INLINE_LIMIT:
            yield node.data


def _weights_beside(file: Path) -> dict[str, np.ndarray]:
    """The constants beside a text file, by digest; each is checked against its digest."""
    beside = _beside(file)
    if not beside.exists():
        return {}
    weights = read_arrays(beside, FrontendError)
    for digest, array in weights.items():
        if ConstantData.of(array).digest != digest:
            raise FrontendError(f"{beside}: the content of {digest} does not fit its digest; save the graph again")
    return weights


def _beside(file: Path) -> Path:
    return file.with_name(f"{file.name}.npz")
