"""A package as an executable: what runs is read, graph and report wait until somebody asks for them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import graphkernel
from graphkernel.errors import GraphKernelError, PackageError
from graphkernel.packages.begun import begun_sessions
from graphkernel.packages.container import PackageReader
from graphkernel.packages.manifest import GRAPH, MANIFEST, REPORT, WEIGHTS, Manifest, read_manifest
from graphkernel.runtime.onnxruntime.environment import begin
from graphkernel.system.environment import check_threads
from kernelgen import options
from kernelgen.errors import KernelgenError
from kernelgen.system.meanwhile import Meanwhile

if TYPE_CHECKING:
    import numpy as np

    from graphkernel.communication.groups import Communicators
    from graphkernel.report.page.story import Story
    from graphkernel.report.report import Report
    from graphkernel.runtime.executable import Executable
    from graphkernel.runtime.plan.plan import Plan
    from graphkernel.runtime.steps.program import Program


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
    built: str | None = None,
) -> Executable:
    """The executable of a package, of which weights may lie ``elsewhere``, by digest; ``story`` is what its report tells.

    ``built`` is the text of the report of who has built it for this call: its times are told, not those of loading.
    Raises PackageError for a package that is damaged, or made for another machine or version.
    """
    start = time.perf_counter()
    try:
        package.check_sum(MANIFEST)
        manifest = read_manifest(bytes(package.view(MANIFEST)), graphkernel.__version__)
        wanted = threads or options.asked_threads()
        if manifest.regions:
            begin(wanted)  # onnxruntime and what follows load beside each other
        with (
            begun_sessions(package, manifest, wanted) as begun,
            Meanwhile(partial(package.check_sum, WEIGHTS)) as check,
        ):
            from graphkernel.packages.assemble import assembled  # all that runs
            from graphkernel.packages.lent import opening, weights_of  # numpy
            from graphkernel.runtime.executable import Executable

            weights = weights_of(package, elsewhere)
            with opening(package, manifest, weights, wanted, begun) as sessions:
                program = assembled(package, manifest, weights, sessions)
            graph = package.content(GRAPH, manifest.digests).decode()
            report = built or package.content(REPORT, manifest.digests).decode()
            check.result()
    except (KernelgenError, UnicodeDecodeError) as error:
        raise PackageError(f"{package.path}: {error}") from error
    except GraphKernelError as error:
        raise error if str(error).startswith(package.path) else PackageError(f"{package.path}: {error}") from error
    took = None if built else (time.perf_counter() - start) * 1e3
    found = Executable.of(
        program, partial(_plan, graph, manifest, program, weights), partial(_report, report, took, story)
    )
    found.packer, found.threads = _save, threads
    return found


def _plan(graph: str, manifest: Manifest, program: Program, weights: Mapping[str, np.ndarray]) -> Plan:
    from graphkernel.packages.planned import planned  # the graph's room and the planner, which running does without

    return planned(graph, manifest, program, weights)


def _report(text: str, load_ms: float | None, story: Callable[[], Story] | None) -> Report:
    from graphkernel.packages.reports import report_of  # nor does running need reports

    return report_of(text, load_ms, story)


def _save(executable: Executable, path: str | os.PathLike[str]) -> None:
    from graphkernel.packages.write import save_package  # nor what writes packages

    save_package(executable, path)
