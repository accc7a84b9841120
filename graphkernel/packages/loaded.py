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
from graphkernel.packages.manifest import GRAPH, MANIFEST, REPORT, Manifest, read_manifest
from kernelgen.errors import KernelgenError

if TYPE_CHECKING:
    import numpy as np

    from graphkernel.report.page.story import Story
    from graphkernel.report.report import Report
    from graphkernel.runtime.executable import Executable
    from graphkernel.runtime.plan.plan import Plan
    from graphkernel.runtime.steps.program import Program


def loaded(
    package: PackageReader,
    elsewhere: Mapping[str, np.ndarray],
    threads: int | None,
    story: Callable[[], Story] | None,
    built: str | None,
    since: float,
) -> Executable:
    """The executable of a ``package``: with the weights that lie ``elsewhere``, sessions on ``threads``, the ``story`` of its
    report, and the report as text where it was just ``built``, or else the time that loading took ``since`` this moment of
    ``time.perf_counter``. Raises what :func:`graphkernel.packages.read.read_package` says.
    """
    try:
        package.check_sum(MANIFEST)
        manifest = read_manifest(bytes(package.view(MANIFEST)), graphkernel.__version__)
        with begun_sessions(package, manifest, threads) as begun:
            from graphkernel.packages.assemble import assembled  # all that runs
            from graphkernel.packages.lent import opening, weights_of  # numpy
            from graphkernel.runtime.executable import Executable

            weights = weights_of(package, elsewhere)
            with opening(package, manifest, weights, threads, begun) as sessions:
                program = assembled(package, manifest, weights, sessions)
            graph = package.content(GRAPH, manifest.digests).decode()
            report = built or package.content(REPORT, manifest.digests).decode()
    except (KernelgenError, UnicodeDecodeError) as error:
        raise PackageError(f"{package.path}: {error}") from error
    except GraphKernelError as error:
        raise error if str(error).startswith(package.path) else PackageError(f"{package.path}: {error}") from error
    took = None if built else (time.perf_counter() - since) * 1e3
    found = Executable.of(
        program, partial(_plan, graph, manifest, program, weights), partial(_report, report, took, story)
    )
    found.packer = _save
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
