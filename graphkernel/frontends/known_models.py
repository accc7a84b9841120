"""Models that were loaded before: load takes their graph from the cache, without onnx, while the file is the same.

The key is what the system says of the file (place, number, size, both times), which changes whenever it is written or
replaced. What is kept is the graph as text, and where the file has which weights; large ones lie beside it
(:mod:`graphkernel.packages.kept_weights`), other constants are kept with it. A model whose data lies in other files is
loaded each time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from graphkernel.elsewhere import ModelFile
from graphkernel.errors import FrontendError, PackageError
from graphkernel.packages.container import PackageReader
from graphkernel.packages.kept_weights import Weight, WeightsOnDemand, keep_weights, kept_weights, lying_weights
from graphkernel.packages.manifest import GRAPH, MANIFEST, WEIGHTS
from graphkernel.packages.tensors import most_bytes, read_tensors, write_tensors
from graphkernel.packages.unread import Content, UnreadGraph, from_file
from graphkernel.recall import is_kept, surroundings
from graphkernel.system.environment import Environment
from graphkernel.system.paths import path_text
from kernelgen import options
from kernelgen.system.bounded_io import json_value
from kernelgen.system.digest import digest
from kernelgen.system.json_parts import items, whole, wholes
from kernelgen.system.json_parts import text as as_text
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.system.object_cache import cache_key, read_entry, write_entry
from kernelgen.tensor.constant_data import ConstantData
from kernelgen.tensor.graph import Graph, Origin
from kernelgen.tensor.printer import large_constants, show
from kernelgen.tensor.types import dtype

if TYPE_CHECKING:
    from graphkernel.declarations import Catalogue

ROOM = "models"
"""The folder of the cache that loaded models are kept in."""
PIECE = 1 << 20


class Place(NamedTuple):
    """Where the file has the elements of a constant, in the order that they have in memory."""

    digest: str
    offset: int
    dtype: str
    shape: tuple[int, ...]

    @property
    def weight(self) -> Weight:
        """What is there."""
        return Weight(self.digest, self.dtype, self.shape)


class Known(NamedTuple):
    """What is kept beside text and constants: digest of the text, operators with their files, origins of nodes, weights."""

    graph_digest: str
    operators: tuple[tuple[str, str], ...]
    origins: tuple[tuple[str, str, str], ...]
    places: tuple[Place, ...]

    @staticmethod
    def read(content: str) -> Known:
        """From the JSON of its tuples."""
        graph_digest, operators, origins, places = items(json_value(content, PackageError))
        return Known(
            as_text(graph_digest),
            tuple((as_text(name), as_text(file)) for name, file in operators),
            tuple((as_text(label), as_text(operator), as_text(node)) for label, operator, node in origins),
            tuple(
                Place(as_text(name), whole(offset), as_text(of), wholes(shape)) for name, offset, of, shape in places
            ),
        )


def load(
    path: str | os.PathLike[str], dims: Mapping[str, int] | None = None, catalogue: Catalogue | None = None
) -> Graph:
    """The graph in a file, see :func:`graphkernel.frontends.load.load`; from the cache where it was loaded before.

    With a ``catalogue``, whose declarations may be anything, the file ``path`` is read each time, with its ``dims``.
    """
    file, folder = path_text(path, "load", FrontendError), options.cache_dir()
    if catalogue is not None:
        return _loaded(file, dims, catalogue)
    stamp = _stamp(file) if file.endswith(".onnx") and is_kept("", Environment()) else ""
    if folder is None or not stamp:
        return _loaded(file, dims)
    key = cache_key(stamp, repr(sorted((dims or {}).items())), surroundings())
    model = ModelFile(os.path.abspath(file), dims)
    found = _found(key, file, folder)
    if found is None:
        model.load()
        found = _found(key, file, folder)
    if found is not None:
        return from_file(found, model)
    graph = _loaded(file, dims)
    with suppress(PackageError):  # what no package can hold is loaded each time
        if (kept := _kept(graph, file, folder)) and _stamp(file) == stamp:
            content, again = kept
            write_entry(folder, ROOM, key, content)
            return from_file(again, model)
    return graph


def _found(key: str, file: str, folder: str) -> Graph | None:
    stored = read_entry(folder, ROOM, key)
    if stored is not None:
        with suppress(Exception):  # whatever is wrong with what is kept: the model can be loaded
            return _known(PackageReader(key, lambda: stored), file, folder)
    return None


def _loaded(file: str | os.PathLike[str], dims: Mapping[str, int] | None, catalogue: Catalogue | None = None) -> Graph:
    from graphkernel.frontends import load as files  # onnx and all rules, when a model is new

    return files.load(file, dims, catalogue)


def _stamp(file: str) -> str:
    """What tells a file from what it was and from others; empty for one that cannot be looked at."""
    try:
        found, place = os.stat(file), os.path.realpath(file)
    except (OSError, ValueError):
        return ""
    times = found.st_mtime_ns, found.st_ctime_ns
    return f"{place!r} {found.st_dev} {found.st_ino} {found.st_size} {times}"


def _kept(graph: Graph, file: str, folder: str) -> tuple[bytes, Graph] | None:
    """What is kept of a loaded model, and the graph over the weights that are kept beside it.

    None where its weights lie elsewhere, or the text does not say all of the graph.
    """
    from graphkernel.frontends.onnx.weights import places_of_weights  # known to whoever has just loaded a model
    from graphkernel.packages.write import operators_of

    spans = places_of_weights(file)
    if spans is None:
        return None
    constants = {data.digest: data for data in large_constants(graph)}
    arrays = {digest: data.array for digest, data in constants.items() if data.array is not None}
    places = tuple(_places(constants.values(), file, spans))
    weights = tuple(place.weight for place in places)
    keep_weights(folder, weights, arrays)
    constants |= {data.digest: data for data in kept_weights(folder, weights)}
    text, operators = show(graph), operators_of(graph)
    origins = tuple((label, origin.operator, origin.node) for label, origin in sorted(graph.origins.items()))
    known = Known(digest(text.encode()), operators, origins, places)
    again = _graph(text, known, constants)
    if again != graph or again.derived != graph.derived or _labels(again) != _labels(graph):
        return None
    elsewhere = {weight.digest for weight in weights}
    return _packed(known, text, {digest: array for digest, array in arrays.items() if digest not in elsewhere}), again


def _packed(known: Known, text: str, arrays: Mapping[str, np.ndarray]) -> bytes:
    from graphkernel.packages.container_writer import PackageWriter

    stream = BytesIO()
    package = PackageWriter(stream)
    with package.entry(WEIGHTS, most_bytes(arrays)) as (write, place):
        write_tensors(arrays, write, place)
    package.write(MANIFEST, json.dumps(known).encode())
    package.write(GRAPH, text.encode())
    package.close()
    return stream.getvalue()


def _labels(graph: Graph) -> list[str]:
    """What nodes are called; a scalar stands in the text where it is used, without a name."""
    return [node.name for node in graph.nodes if node.data is None]


def _places(constants: Iterable[ConstantData], file: str, spans: Iterable[tuple[int, int]]) -> Iterator[Place]:
    """The constants whose bytes stand in the file."""
    starts: dict[int, list[int]] = {}
    for start, stop in spans:
        starts.setdefault(stop - start, []).append(start)
    with open(file, "rb") as stream:
        for data in constants:
            if data.array is None or data.array.dtype == object:
                continue
            for start in starts.get(data.array.nbytes, ()):
                if _stands_at(start, _bytes(data.array).data, stream):
                    yield Place(data.digest, start, dtype(data.array.dtype).name, data.array.shape)
                    break


def _stands_at(start: int, content: memoryview, stream: BinaryIO) -> bool:
    """Whether the file has these bytes there; looked at in pieces, since both may be as large as memory."""
    stream.seek(start)
    pieces = (content[at : at + PIECE] for at in range(0, len(content), PIECE))
    return all(memoryview(stream.read(len(piece))) == piece for piece in pieces)


def _known(package: PackageReader, file: str, folder: str) -> Graph:
    """The graph that is kept, with its weights."""
    known = Known.read(bytes(package.view(MANIFEST)).decode())
    text = package.content(GRAPH, {GRAPH: known.graph_digest}).decode()
    lying = dict(lying_weights(folder, [place.weight for place in known.places]))
    places = {place.digest: place for place in known.places}
    with open(file, "rb") as stream:
        small = {digest: _read(stream, place) for digest, place in places.items() if digest not in lying}
    arrays = WeightsOnDemand(
        {**read_tensors(package.view(WEIGHTS)), **small}, lying, places, lambda digest: _unchanged(file, places[digest])
    )
    return UnreadGraph(Content(text, arrays), lambda: _graph(text, known, _checked(arrays)))


def _checked(arrays: Mapping[str, np.ndarray]) -> Mapping[str, ConstantData]:
    return {digest: ConstantData(digest, array) for digest, array in arrays.items()}


def _graph(text: str, known: Known, constants: Mapping[str, ConstantData]) -> Graph:
    from graphkernel.packages.operators import operators_called  # a graph that was compiled before is never looked at
    from kernelgen.tensor.text import parse

    origins = {label: Origin(operator, node) for label, operator, node in known.origins}
    return replace(parse(text, operators_called(known.operators), constants), origins=origins)


def _read(stream: BinaryIO, place: Place) -> np.ndarray:
    """The elements at a place in memory of their own: in the file they lie at any address."""
    array = np.empty(place.shape, dtype(place.dtype).numpy)
    stream.seek(place.offset)
    if stream.readinto(_bytes(array).data) != array.nbytes:  # pyright: ignore[reportAttributeAccessIssue]  # files have it
        raise PackageError("a model that is shorter than it was")
    array.setflags(write=False)
    return array


def _unchanged(file: str, place: Place) -> np.ndarray:
    """The same, when the graph was loaded before and the file may be another one by now. Raises PackageError where it is."""
    with open(file, "rb") as stream:
        array = _read(stream, place)
    if ConstantData.of(array).digest != place.digest:
        raise PackageError(
            f"{file}: changed after it was loaded, and its weights in the cache are damaged; load it again"
        )
    return array


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)
