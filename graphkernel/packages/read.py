"""A package as an executable: what runs is read, graph and report wait until somebody asks for them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import graphkernel
from graphkernel.errors import GraphKernelError, PackageError
from graphkernel.packages.container import PackageReader
from graphkernel.packages.manifest import (
    CODE,
    GRAPH,
    MANIFEST,
    PROGRAM,
    REPORT,
    WEIGHTS,
    Manifest,
    RegionRecord,
    read_manifest,
)
from graphkernel.packages.programs import Parts, read_program
from graphkernel.packages.tensors import read_tensors
from graphkernel.runtime.executable import Executable
from graphkernel.runtime.onnxruntime.sessions import RegionModel, Session, opened
from graphkernel.runtime.steps.program import Program
from graphkernel.system.environment import check_threads
from kernelgen import options
from kernelgen.errors import KernelgenError
from kernelgen.native.call import NativeKernel
from kernelgen.native.team import team_of

if TYPE_CHECKING:
    from graphkernel.communication.groups import Communicators
    from graphkernel.report.page.story import Story
    from graphkernel.report.report import Report
    from graphkernel.runtime.plan.plan import Plan


def load_compiled(
    path: str | os.PathLike[str], threads: int | None = None, *, communicator: Communicators = None
) -> Executable:
    """The executable of a package, written by ``exe.save(path)`` or ``graphkernel build``. No compiler is needed or loaded.

    Weights stay in the file, which is mapped: it must not be changed while the executable lives. A package holds machine
    code, which is run: load what you would run as a program. ``threads`` is how many threads a call may use, see
    :func:`graphkernel.compile`, and so is ``communicator``.
    Raises ``PackageError``, in one sentence, for a file that is damaged, of another format or
    version, or for another machine, and ``OptionError`` for a number of threads below 1.
    """
    package = PackageReader.mapped(path)
    found = read_package(package, {}, check_threads(threads))
    found.again = partial(load_compiled, package.path, threads)
    return found if communicator is None else found.over(communicator)


def read_package(
    package: PackageReader,
    elsewhere: Mapping[str, np.ndarray],
    threads: int | None = None,
    story: Callable[[], Story] | None = None,
) -> Executable:
    """The executable of a package, of which weights may lie ``elsewhere``, by digest; ``story`` is what its report tells.

    Raises PackageError for a package that is damaged, or made for another machine or version.
    """
    start = time.perf_counter()
    try:
        package.check_sum(MANIFEST)
        manifest = read_manifest(bytes(package.view(MANIFEST)).decode(), graphkernel.__version__)
        check = _Meanwhile(partial(package.check_sum, WEIGHTS))
        weights = {**elsewhere, **read_tensors(package.view(WEIGHTS))}
        program = _program(package, manifest, weights, threads)
        graph = package.content(GRAPH, manifest.graph_sha256).decode()
        report = package.content(REPORT, manifest.report_sha256).decode()
        check.done()
    except (KernelgenError, UnicodeDecodeError) as error:
        raise PackageError(f"{package.path}: {error}") from error
    except GraphKernelError as error:
        raise error if str(error).startswith(package.path) else PackageError(f"{package.path}: {error}") from error
    took = (time.perf_counter() - start) * 1e3
    found = Executable.of(
        program, partial(_plan, graph, manifest, program, weights), partial(_report, report, took, story)
    )
    found.packer, found.threads = _save, threads
    return found


def _plan(graph: str, manifest: Manifest, program: Program, weights: Mapping[str, np.ndarray]) -> Plan:
    from graphkernel.packages.planned import planned  # the graph's room and the planner, which running does without

    return planned(graph, manifest, program, weights)


def _report(text: str, load_ms: float, story: Callable[[], Story] | None) -> Report:
    from graphkernel.packages.reports import report_of  # nor does running need reports

    return report_of(text, load_ms, story)


def _save(executable: Executable, path: str | os.PathLike[str]) -> None:
    from graphkernel.packages.write import save_package  # nor what writes packages

    save_package(executable, path)


class _Meanwhile(threading.Thread):
    """Does something beside the calling thread. A pool of one thread would take longer to import than the thread saves."""

    def __init__(self, action: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._action, self._error = action, None
        self.start()

    def run(self) -> None:
        """Keeps what was raised."""
        try:
            self._action()
        except PackageError as error:
            self._error = error

    def done(self) -> None:
        """Waits, and raises it."""
        self.join()
        if self._error is not None:
            raise self._error


def _program(
    package: PackageReader, manifest: Manifest, weights: Mapping[str, np.ndarray], threads: int | None
) -> Program:
    open_it = partial(opened, threads=threads or options.asked_threads(), is_optimized=True)
    sessions = [
        Session(_region(package, record, weights), partial(open_it, record.model)) for record in manifest.regions
    ]
    parts = Parts(_kernels(package, manifest), sessions, weights, dict(manifest.operators))
    return read_program(package.content(PROGRAM, manifest.program_sha256).decode(), parts)


def _kernels(package: PackageReader, manifest: Manifest) -> Sequence[NativeKernel]:
    if not manifest.kernels:
        return ()
    content = package.view(CODE)
    if manifest.caller is None:
        raise PackageError("a package without code for its kernels")
    caller = manifest.caller.code(content)
    team = None if manifest.team is None else team_of(manifest.team.code(content))
    return [record.kernel(content, caller, team, manifest.machine.flags) for record in manifest.kernels]


def _region(package: PackageReader, record: RegionRecord, weights: Mapping[str, np.ndarray]) -> RegionModel:
    for _, digest in record.weights:
        if digest not in weights:
            raise PackageError(f"a package without the weights {digest}")
    named = {name: weights[digest] for name, digest in record.weights}
    return RegionModel(package.content(record.model, record.sha256), named, record.has_objects)
