"""What a package lends to onnxruntime: its weights, and sessions over them that open while the rest of it is loaded.

Making a session takes none of Python's lock, and as long as everything else that is left to do when numpy is there.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from graphkernel.errors import PackageError
from graphkernel.packages.container import PackageReader
from graphkernel.packages.manifest import WEIGHTS, Manifest, RegionRecord
from graphkernel.packages.tensors import read_tensors
from graphkernel.runtime.onnxruntime.c_interface import SharedSession
from graphkernel.runtime.onnxruntime.sessions import RegionModel, Session, opened, settle, threads_for
from graphkernel.system.freed_memory import MUCH, return_freed_memory
from kernelgen.system.meanwhile import Meanwhile

Weights = Mapping[str, np.ndarray]


def weights_of(package: PackageReader, elsewhere: Weights) -> Weights:
    """The weights of a package by digest, of which some may lie ``elsewhere``."""
    return ChainMap(dict(_tensors(package)), elsewhere)  # pyright: ignore[reportArgumentType]  # nobody writes it


def opening(
    package: PackageReader,
    manifest: Manifest,
    weights: Weights,
    threads: int | None,
    begun: Meanwhile[Mapping[str, SharedSession]],
) -> Meanwhile[Sequence[Session]]:
    """The sessions of a package's regions by its ``manifest``, on ``threads`` when they run, as they are opened on a thread;
    those that have ``begun`` are taken from there.

    The result raises PackageError for regions whose models or weights are missing or damaged, and RuntimeFailure where
    onnxruntime declines.
    """

    def open_all() -> Sequence[Session]:
        models = [_region(package, manifest, record, weights) for record in manifest.regions]
        made = begun.result()
        sessions = [
            Session(
                model,
                partial(opened, r.model, threads=threads_for(r.group, threads), is_optimized=True),
                made.get(r.model),
            )
            for model, r in zip(models, manifest.regions, strict=True)
        ]
        for model, record in zip(models, manifest.regions, strict=True):
            if record.model in made:
                settle(model)
        small = [model.weight_bytes for model in models if model.weight_bytes <= MUCH]
        if sum(small) > MUCH:  # none of which was worth it by itself
            return_freed_memory()
        return sessions

    return Meanwhile(open_all)


def _tensors(package: PackageReader) -> Weights:
    """The weights in a package: as they lie in a file, or else in memory that is read faster."""
    found = read_tensors(package.view(WEIGHTS))
    if package.is_mapped:
        return found
    from kernelgen.native.lines import moved_to_lines  # files need it not

    return {name: moved_to_lines(array) for name, array in found.items()}


def _region(package: PackageReader, manifest: Manifest, record: RegionRecord, weights: Weights) -> RegionModel:
    for _, digest in record.weights:
        if digest not in weights:
            raise PackageError(f"a package without the weights {digest}")
    named = {name: weights[digest] for name, digest in record.weights}
    return RegionModel(package.content(record.model, manifest.digests), named, record.has_objects)
