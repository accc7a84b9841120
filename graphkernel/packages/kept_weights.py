"""Weights of models in files of the cache, which are mapped: their pages can go, and come back when they are read.

A model's own file has them at any address, so that they are read into memory of their own; and onnxruntime packs most
weights into another form, after which nobody reads the first one. A file here holds the weights of a model, or a part of
them, one behind the other, and is named by their digests: versions of a model share it. Each weight is held against its
digest before it is used. What compilation made of weights is kept in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelgen.system.mapped import MUCH
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.system.object_cache import CONTENT, cache_key, map_entry, read_entry, write_entry
from kernelgen.system.private_folder import FilePath
from kernelgen.tensor.constant_data import ConstantData
from kernelgen.tensor.types import dtype

if TYPE_CHECKING:
    from kernelgen.system.shared_cache import SharedCache

ROOM = "weights"
"""The folder of the cache that weights are kept in."""

LARGE = MUCH
"""Bytes of a weight from which on it is kept here: pages of smaller ones are not worth letting go."""

FILE_BYTES = 64 << 20
"""A file is not larger, but for one that a single weight fills, which the cache takes up to ``LIMITS.object_bytes``."""

_ALIGNMENT = 64


class Weight(NamedTuple):
    """The digest, type and shape of an array."""

    digest: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def numpy(self) -> np.dtype[Any]:
        """The type of its elements."""
        return dtype(self.dtype).numpy

    @property
    def size(self) -> int:
        """Bytes."""
        return self.numpy.itemsize * prod(self.shape)


def keep_weights(
    folder: FilePath | None,
    weights: Sequence[Weight],
    arrays: Mapping[str, np.ndarray],
    shared: SharedCache | None = None,
) -> None:
    """Writes the files of those of the ``weights`` that are large into ``folder``, and into a ``shared`` cache; ``arrays`` by
    digest.
    """
    for group in _files(weights):
        parts, end = list[bytes | memoryview](), CONTENT
        for start, weight in _places(group):
            parts += [bytes(start - end), arrays[weight.digest].reshape(-1).view(np.uint8).data]
            end = start + weight.size
        write_entry(folder, ROOM, _key(group), *parts, shared=shared)


def kept_weights(
    folder: FilePath, weights: Sequence[Weight], shared: SharedCache | None = None
) -> Iterator[ConstantData]:
    """Those of the ``weights`` that are kept in ``folder``, as they lie in their files: none that is damaged. What only a
    ``shared`` cache has comes here.
    """
    for digest, array in lying_weights(folder, weights, shared):
        data = ConstantData.of(array)
        if data.digest == digest:
            yield data


def lying_weights(
    folder: FilePath, weights: Sequence[Weight], shared: SharedCache | None = None
) -> Iterator[tuple[str, np.ndarray]]:
    """The same of which nobody knows whether they are damaged, each with the digest that it should have."""
    for group in _files(weights):
        mapping = map_entry(folder, ROOM, _key(group))
        if mapping is None and shared is not None and read_entry(folder, ROOM, _key(group), shared) is not None:
            mapping = map_entry(folder, ROOM, _key(group))
        for start, weight in _places(group):
            if mapping is None or len(mapping) < start + weight.size:
                break
            array = np.frombuffer(mapping, weight.numpy, prod(weight.shape), start).reshape(weight.shape)
            yield weight.digest, array


class WeightsOnDemand(Mapping[str, np.ndarray]):
    """Arrays by digest, each held against it when somebody first asks for it: most that kernels take packed nobody reads.

    ``known`` are those that need it not, ``lying`` those that do. ``again`` reads one of ``digests`` where it is missing or
    damaged.
    """

    def __init__(
        self,
        known: Mapping[str, np.ndarray],
        lying: Mapping[str, np.ndarray],
        digests: Iterable[str],
        again: Callable[[str], np.ndarray],
    ) -> None:
        self._known, self._lying, self._again = dict(known), lying, again
        self._digests = dict.fromkeys((*known, *digests))

    def __getitem__(self, digest: str) -> np.ndarray:
        if digest not in self._known:
            if digest not in self._digests:
                raise KeyError(digest)
            self._known[digest] = self._checked(digest)
        return self._known[digest]

    def __contains__(self, digest: object) -> bool:
        return digest in self._digests

    def __iter__(self) -> Iterator[str]:
        return iter(self._digests)

    def __len__(self) -> int:
        return len(self._digests)

    def _checked(self, digest: str) -> np.ndarray:
        if digest in self._lying:
            data = ConstantData.of(self._lying[digest])
            if data.digest == digest and data.array is not None:
                return data.array
        return self._again(digest)


def _files(weights: Iterable[Weight]) -> Iterator[tuple[Weight, ...]]:
    """The large ones, by the file that they lie in."""
    group, size = list[Weight](), 0
    for weight in weights:
        if weight.size < LARGE:
            continue
        if group and size + weight.size > FILE_BYTES:
            yield tuple(group)
            group, size = [], 0
        group.append(weight)
        size += weight.size
    if group:
        yield tuple(group)


def _places(group: Iterable[Weight]) -> Iterator[tuple[int, Weight]]:
    """Where in the file each begins."""
    end = CONTENT
    for weight in group:
        start = end + -end % _ALIGNMENT
        yield start, weight
        end = start + weight.size


def _key(group: Iterable[Weight]) -> str:
    return cache_key(*(weight.digest for weight in group))
