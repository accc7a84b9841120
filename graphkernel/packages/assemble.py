"""The parts of a package put together: kernels with their machine code, sessions over weights, and the program of both."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from graphkernel.errors import PackageError
from graphkernel.packages.container import PackageReader
from graphkernel.packages.manifest import CODE, MANIFEST, PROGRAM, WEIGHTS, Manifest, RegionRecord
from graphkernel.packages.programs import Parts, read_program
from graphkernel.packages.tensors import read_tensors
from graphkernel.runtime.onnxruntime.sessions import RegionModel, Session, opened
from graphkernel.runtime.steps.program import Program
from kernelgen.native.call import NativeKernel
from kernelgen.native.records import read_code, read_kernel
from kernelgen.native.team import team_of
from kernelgen.native.wrapper import caller_of


def assembled(
    package: PackageReader, manifest: Manifest, elsewhere: Mapping[str, np.ndarray], threads: int | None
) -> tuple[Program, Mapping[str, np.ndarray]]:
    """The program of a package, whose sessions run on ``threads``, and its weights, of which some may lie ``elsewhere``.

    Raises PackageError for parts that do not belong together.
    """
    weights = ChainMap(dict(_tensors(package)), elsewhere)  # pyright: ignore[reportArgumentType]  # nobody writes it
    open_it = partial(opened, threads=threads, is_optimized=True)
    sessions = [
        Session(_region(package, manifest, record, weights), partial(open_it, record.model))
        for record in manifest.regions
    ]
    parts = Parts(_kernels(package, manifest), sessions, weights, dict(manifest.operators))
    return read_program(package.content(PROGRAM, manifest.digests).decode(), parts), weights


def _tensors(package: PackageReader) -> Mapping[str, np.ndarray]:
    """The weights in a package: as they lie in a file, or else in memory that is read faster."""
    found = read_tensors(package.view(WEIGHTS))
    if package.is_mapped:
        return found
    from kernelgen.native.lines import moved_to_lines  # files need it not

    return {name: moved_to_lines(array) for name, array in found.items()}


def _kernels(package: PackageReader, manifest: Manifest) -> Sequence[NativeKernel]:
    if not manifest.kernels:
        return ()
    content, flags = package.sound(CODE, manifest.digests), manifest.machine.flags
    if manifest.caller is None:
        raise PackageError("a package without code for its kernels")
    try:
        caller = caller_of(read_code(manifest.caller, content))
        team = None if manifest.team is None else team_of(read_code(manifest.team, content))
        return [read_kernel(given, content, caller, team, flags) for given in manifest.kernels]
    except (KeyError, TypeError, ValueError) as error:
        raise PackageError(f"{MANIFEST}: {error}") from error


def _region(
    package: PackageReader, manifest: Manifest, record: RegionRecord, weights: Mapping[str, np.ndarray]
) -> RegionModel:
    for _, digest in record.weights:
        if digest not in weights:
            raise PackageError(f"a package without the weights {digest}")
    named = {name: weights[digest] for name, digest in record.weights}
    return RegionModel(package.content(record.model, manifest.digests), named, record.has_objects)
