"""A package as an executable: the graph is read, the plan is made of it anew, kernels and regions are there already."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import numpy as np

import graphkernel
from graphkernel.errors import GraphKernelError, PackageError
from graphkernel.ir.graph import ConstantData, Graph, Node
from graphkernel.ir.opdef import OpDef
from graphkernel.ir.text import parse
from graphkernel.packages.container import PackageReader
from graphkernel.packages.host import PackagedHost
from graphkernel.packages.manifest import CODE, GRAPH, MANIFEST, REPORT, WEIGHTS, Manifest, read_manifest
from graphkernel.packages.reports import report_of
from graphkernel.packages.tensors import read_tensors
from graphkernel.packages.write import save_package
from graphkernel.runtime.executable import Executable
from graphkernel.runtime.host import HostLibrary, NumpyHost
from graphkernel.runtime.plan import CompiledKernel, Plan, make_plan
from graphkernel.runtime.regions import OnnxRuntimeHost
from kernelgen import options
from kernelgen.errors import KernelgenError
from kernelgen.native.team import team_of


def load_compiled(path: str | os.PathLike[str]) -> Executable:
    """The executable of a package, written by ``exe.save(path)`` or ``graphkernel build``. No compiler is needed or loaded.

    Weights stay in the file, which is mapped: it must not be changed while the executable lives. A package holds machine
    code, which is run: load what you would run as a program. Raises ``PackageError``, in one sentence, for a file that is
    damaged, of another format or version, or for another machine.
    """
    package = PackageReader.mapped(path)
    found = read_package(package, {})
    found.again = partial(load_compiled, package.path)
    return found


def read_package(
    package: PackageReader, elsewhere: Mapping[str, ConstantData], threads: int | None = None
) -> Executable:
    """The executable of a package, of which weights may lie ``elsewhere``, by digest."""
    start = time.perf_counter()
    try:
        package.check_sum(MANIFEST)
        manifest = read_manifest(bytes(package.view(MANIFEST)).decode(), graphkernel.__version__)
        check = _Meanwhile(partial(package.check_sum, WEIGHTS))
        plan = _plan(package, manifest, elsewhere, threads)
        report = package.content(REPORT, manifest.report_sha256).decode()
        check.done()
    except (KernelgenError, UnicodeDecodeError) as error:
        raise PackageError(f"{package.path}: {error}") from error
    except GraphKernelError as error:
        raise error if str(error).startswith(package.path) else PackageError(f"{package.path}: {error}") from error
    took = (time.perf_counter() - start) * 1e3
    return Executable(plan, report_of(report, took), packer=save_package, threads=threads)


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


def operators_called(named: Iterable[tuple[str, str]]) -> Mapping[str, OpDef]:
    """Operators by name, each with its file in :mod:`graphkernel.ops`, without loading all others."""
    found: dict[str, OpDef] = {}
    for name, file in named:
        if not file.isidentifier() or find_spec(f"graphkernel.ops.{file}") is None:
            raise PackageError(f"there is no file of operators called {file!r}")
        declared = vars(import_module(f"graphkernel.ops.{file}")).values()
        found.update({op.name: op for op in declared if isinstance(op, OpDef) and op.name == name})
    return found


def _plan(
    package: PackageReader, manifest: Manifest, elsewhere: Mapping[str, ConstantData], threads: int | None
) -> Plan:
    held = {digest: ConstantData(digest, array) for digest, array in read_tensors(package.view(WEIGHTS)).items()}
    constants = {**elsewhere, **held}
    weights = {digest: data.array for digest, data in constants.items() if data.array is not None}
    graph = parse(
        package.content(GRAPH, manifest.graph_sha256).decode(), operators_called(manifest.operators), constants
    )
    kernels = _kernels(package, manifest, graph)
    return make_plan(graph, kernels, _library(package, manifest, graph, weights, threads))


def _kernels(package: PackageReader, manifest: Manifest, graph: Graph) -> Mapping[Node, CompiledKernel]:
    """The kernel of every fused operator."""
    fused = [node for node in graph.operators if node.body is not None]
    if not len(fused) == len(manifest.calls) == len(manifest.untold):
        raise PackageError("a package with kernels of another graph")
    if not fused:
        return {}
    content = package.view(CODE)
    if manifest.caller is None or not all(0 <= number < len(manifest.kernels) for number in manifest.calls):
        raise PackageError("a package without code for its kernels")
    caller = manifest.caller.code(content)
    team = None if manifest.team is None else team_of(manifest.team.code(content))
    loaded = [record.kernel(content, caller, team, manifest.machine.flags) for record in manifest.kernels]
    return {
        node: CompiledKernel(loaded[number], loaded[number].signature.updated_inputs, untold)
        for node, number, untold in zip(fused, manifest.calls, manifest.untold, strict=True)
    }


def _library(
    package: PackageReader,
    manifest: Manifest,
    graph: Graph,
    weights: Mapping[str, np.ndarray],
    threads: int | None,
) -> HostLibrary:
    if not manifest.regions:
        return NumpyHost()
    library = OnnxRuntimeHost(threads=threads or options.asked_threads(), name=manifest.library)
    return PackagedHost.of(
        library, graph.operators, manifest.regions, lambda record: package.content(record.model, record.sha256), weights
    )
