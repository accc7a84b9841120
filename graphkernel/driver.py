"""The story in three functions: a graph is optimized, explained, or compiled and planned.

The compiler and the host library are values: optimizing needs neither islpy nor llvmlite, and tests use stand-ins.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

from graphkernel.building import Build, Compiler, build_kernels
from graphkernel.decisions import DecisionLog
from graphkernel.declarations import Catalogue, builtin_catalogue
from graphkernel.errors import FrontendError, OptionError, RuntimeFailure, nearest
from graphkernel.handoff import tunings_of, with_plans
from graphkernel.onnx_writing.writer import DEFAULT_OPSET, OLDEST_OPSET
from graphkernel.ops.library.conv_gradients import CONV2D_BACKPROP_FILTER, CONV2D_BACKPROP_INPUT
from graphkernel.ops.library.host import ONNX
from graphkernel.options import Environment, Options, requested
from graphkernel.packages.write import save_package
from graphkernel.passes.base import Hook, run_steps
from graphkernel.pipeline import steps_for
from graphkernel.report.entries import host_entries, left_to_numpy, story_of
from graphkernel.report.explain import Explanation
from graphkernel.report.page.story import Came, without_weights
from graphkernel.report.report import Report
from graphkernel.runtime.cuda.cublas import find_cublas
from graphkernel.runtime.cuda.cupy_host import CupyHost
from graphkernel.runtime.cuda.device import Device, DeviceMemory, NoDevice, Refusals, find_device
from graphkernel.runtime.cuda.device_executable import DeviceExecutable, Replan, check_values
from graphkernel.runtime.executable import Executable
from graphkernel.runtime.memory import HOST
from graphkernel.runtime.onnxruntime.regions import OnnxRuntimeHost, available
from graphkernel.runtime.plan.make_steps import CompiledKernel
from graphkernel.runtime.plan.plan import Plan, make_plan
from graphkernel.runtime.plan.verify_plan import verify_plan
from graphkernel.runtime.poison import POISONED
from graphkernel.runtime.steps.host import HostLibrary, NumpyHost
from graphkernel.runtime.verify_table import verify_tables
from graphkernel.step_hooks import Advance, Progress, Verify, dumps_for
from graphkernel.system.environment import check_threads
from graphkernel.system.logs import follow
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.inline import inline
from kernelgen.tensor.operators.indexing import GATHER
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.operators.pool import AVG_POOL, MAX_POOL
from kernelgen.tensor.operators.scan import CUM_PROD, CUM_SUM
from kernelgen.tensor.operators.shape import BROADCAST_TO
from kernelgen.tensor.origin import model_operators
from kernelgen.tensor.verify import Checked

if TYPE_CHECKING:
    from kernelgen.tuning.database import Tunings

LOGGER = logging.getLogger(__name__)

Flags = str | Mapping[str, object] | None
Tuned: TypeAlias = "Tunings | str | PathLike[str] | None"
"""What tuning found out: a file that ``graphkernel tune`` wrote, or what was read from one."""
NUMPYS_OWN = frozenset({BROADCAST_TO, CUM_PROD, CUM_SUM})
"""What numpy does element by element in its own loops, as fast as a library does."""
LIBRARY_OPS = frozenset({
    MATMUL, BATCH_MATMUL, CONV2D, CONV2D_BACKPROP_INPUT, CONV2D_BACKPROP_FILTER, MAX_POOL, AVG_POOL, GATHER, ONNX
})  # fmt: skip
"""Operators for which onnxruntime is worth a region when it is installed; a graph without them runs on numpy."""


def optimize(
    graph: Graph,
    opt_level: int = 2,
    target: str = "cpu",
    flags: Flags = None,
    *,
    catalogue: Catalogue | None = None,
    hooks: Iterable[Hook] = (),
    log: DecisionLog | None = None,
    progress: Progress | None = None,
    tuned: Tuned = None,
) -> Graph:
    """The graph with its operators fused into kernels: a new graph; the same object when nothing changed.

    ``target`` is ``cpu``, ``gpu`` or ``ascend``.
    ``opt_level``: 0 off, 1 basic fusion, 2 all stable passes, 3 also experimental ones. ``flags`` are MindSpore's graph
    kernel flags, as text or mapping; ``MS_DEV_GRAPH_KERNEL_FLAGS`` replaces them when set. ``catalogue`` adds operators,
    rules and passes of other packages, ``hooks`` are called after every step, ``log`` takes the decisions, ``progress``
    is told how far it is. Kernels that stand in ``tuned``, a file of ``graphkernel tune``, carry the plans found there.
    Raises ``OptionError`` for flags that do not exist and ``PassError`` when a pass fails.
    """
    options = _options(opt_level, target, flags)
    return _planned_as(
        _optimized(graph, options, catalogue or builtin_catalogue(), hooks, log, progress), options.target, tuned
    )


def explain(
    graph: Graph, opt_level: int = 2, target: str = "cpu", flags: Flags = None, *, progress: Progress | None = None
) -> Explanation:
    """Every decision that :func:`optimize` takes on the graph, with its reason. Prints as text.

    ``opt_level``, ``target``, ``flags`` and ``progress`` are those of :func:`optimize`.
    """
    log = DecisionLog()
    return Explanation(graph, optimize(graph, opt_level, target, flags, log=log, progress=progress), tuple(log))


def compile(  # the public name
    graph: Graph,
    opt_level: int | None = None,
    target: str = "cpu",
    flags: Flags = None,
    *,
    compiler: Compiler | None = None,
    host: str | HostLibrary = "auto",
    strict: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    tuned: Tuned = None,
) -> Executable:
    """The callable of a graph, optimized before as by :func:`optimize`: to level 2 unless ``opt_level`` says otherwise.

    A graph that has kernels was optimized by somebody: without ``opt_level`` and ``flags`` it is compiled as it stands.
    Every fused node becomes a kernel (equal ones are compiled once); the rest runs on the host library: ``"numpy"``,
    ``"onnxruntime"``, or ``"auto"``, which is onnxruntime when it is installed and the graph has operators worth it.
    With ``target="gpu"`` and a CUDA device all of it runs there, the rest on cupy; without one, kernels are interpreted.
    What cannot be compiled, or what a device refuses at the first call, runs there too and stands in
    ``exe.report.fallbacks``; ``strict=True`` raises ``RuntimeFailure`` instead.
    ``threads`` is how many threads a call may use, at most and by default what ``OMP_NUM_THREADS`` or else the processors
    of the process say. Operators on onnxruntime have one pool in a process, as large as the first one asks for; with
    ``threads=1`` they run on the thread that calls. ``tuned`` is as in :func:`optimize`; nothing is measured here.
    """
    check_threads(threads)
    start = time.perf_counter()
    if opt_level is None and flags is None and any(node.body for node in _graph(graph).operators):
        return compile_as_is(
            _planned_as(graph, target, tuned), target,
            compiler=compiler, host=host, strict=strict, threads=threads, progress=progress,
        )  # fmt: skip
    options = _options(2 if opt_level is None else opt_level, target, flags)
    log = DecisionLog()
    fused = _optimized(graph, options, builtin_catalogue(), log=log, progress=progress)
    fused = _planned_as(fused, options.target, tuned)
    took = (time.perf_counter() - start) * 1e3
    came = Came(without_weights(graph), tuple(log))
    request = _Request(
        options.target,
        compiler,
        host,
        strict,
        options.enable_debug_mode,
        options.opt_level,
        took,
        progress,
        came,
        threads,
    )
    return _compiled(fused, request)


def compile_as_is(
    graph: Graph,
    target: str = "cpu",
    *,
    compiler: Compiler | None = None,
    host: str | HostLibrary = "auto",
    strict: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Executable:
    """The callable of a graph with the kernels that it has, whatever the environment asks for.

    ``target``, ``compiler``, ``host``, ``strict``, ``threads`` and ``progress`` are those of :func:`compile`.
    """
    target = Options.parse({"target": target}).target
    return _compiled(
        _graph(graph), _Request(target, compiler, host, strict, progress=progress, threads=check_threads(threads))
    )


@dataclass(frozen=True)
class _Request:
    """How a graph is to be compiled, and how it was optimized: to no level where it is taken as it is."""

    target: str
    compiler: Compiler | None
    host: str | HostLibrary
    strict: bool
    is_checked: bool = False
    opt_level: int | None = None
    optimize_ms: float = 0.0
    progress: Progress | None = None
    came: Came | None = None
    threads: int | None = None


def _compiled(given: Graph, request: _Request) -> Executable:
    start = time.perf_counter()
    device = _device(request)
    if isinstance(device, Device):
        check_values(given)
    library = _host_library(request, given, device)
    fused, _ = inline(given, lambda node: library.absorbs(given, node))
    return _planned(
        fused, request, build_kernels(fused, request.target, request.compiler, request.progress), device, start
    )


def _device(request: _Request) -> Device | NoDevice:
    return find_device() if request.target == "gpu" else NoDevice("")


def _planned(fused: Graph, request: _Request, build: Build, device: Device | NoDevice, start: float) -> Executable:
    """The callable of a graph whose kernels are made; ``start`` is when that began, in seconds."""
    runnable, kernels = _inlined(fused, build)
    library = _host_library(request, runnable, device)  # operators whose kernel failed may be worth another one
    plan = make_plan(runnable, kernels, library)
    slow = {node: why for node, why in plan.left_to_numpy.items() if node.op not in NUMPYS_OWN}
    left = (left_to_numpy(node, why) for node, why in slow.items() if library.regions)
    fallbacks = (*build.fallbacks, *left)
    if request.strict and fallbacks:
        raise RuntimeFailure("strict: " + "\n".join(map(str, fallbacks)))
    took = (time.perf_counter() - start) * 1e3
    report = Report(
        fused.name, request.target, request.opt_level, library.name, tuple(build.entries), host_entries(plan, library),
        fallbacks, request.optimize_ms, took, model_operators(fused if request.came is None else request.came.graph),
        partial(story_of, plan, library, request.came),
    )  # fmt: skip

    def replan(refusals: Refusals) -> Executable:
        return _planned(fused, request, build.without(refusals), device, time.perf_counter())

    made = _executable(plan, report, device, replan, is_checked=request.is_checked)
    made.threads = request.threads
    made.again, made.packer = partial(_compiled, fused, replace(request, progress=None)), save_package
    return made


def _executable(
    plan: Plan, report: Report, device: Device | NoDevice, replan: Replan, *, is_checked: bool
) -> Executable:
    """The callable of a plan; ``is_checked``: a verified plan, in memory that shows mistakes."""
    if is_checked:
        verify_plan(plan)
    if is_checked and isinstance(device, NoDevice):
        verify_tables(plan.program)
    if isinstance(device, NoDevice):
        return Executable(plan, report, POISONED if is_checked else HOST)
    memory = DeviceMemory(device, is_checked)
    return DeviceExecutable(plan, report, memory, replan)


def check_options(opt_level: int, target: str, flags: Flags) -> None:
    """Raises ``OptionError`` for an ``opt_level``, a ``target`` or ``flags`` that :func:`optimize` would refuse,
    whatever the environment says; runs nothing.
    """
    steps_for(Options.parse(flags or {}, requested(opt_level, target)))


def _options(opt_level: int, target: str, flags: Flags) -> Options:
    environment = Environment.read()
    follow(environment.log_level)
    return Options.resolve(flags, environment=environment, base=requested(opt_level, target))


def _optimized(
    graph: Graph,
    options: Options,
    catalogue: Catalogue,
    hooks: Iterable[Hook] = (),
    log: DecisionLog | None = None,
    progress: Progress | None = None,
) -> Graph:
    steps = steps_for(options, catalogue)
    context = catalogue.context(options, log, steps)
    seen = Environment.read()
    watchers = (
        Verify(Checked(inferred=context.inferred)),
        *dumps_for(options, bool(seen.dump_dir or seen.dump_ir)),
        *hooks,
        *Advance.over(steps, progress),
    )
    return run_steps(_graph(graph), steps, context, watchers)


def _planned_as(graph: Graph, target: str, tuned: Tuned) -> Graph:
    tunings = tunings_of(tuned)
    return graph if tunings is None else with_plans(graph, tunings, target)


def _graph(given: object) -> Graph:
    """The argument, when it is a graph: functions and paths are easily given instead."""
    if isinstance(given, Graph):
        return given
    raise FrontendError(
        f"a Graph is needed, got {type(given).__name__}: "
        "gk.trace(function, gk.spec(...)), gk.load(path) and gk.parse(text) make one"
    )


def _inlined(graph: Graph, build: Build) -> tuple[Graph, Mapping[Node, CompiledKernel]]:
    """The graph in which fused nodes without a kernel are ordinary operators again, and the kernels of its others."""
    if not build.fallbacks:
        return graph, build.compiled
    runnable, kept = inline(graph, lambda node: node not in build.compiled)
    return runnable, {kept[node]: kernel for node, kernel in build.compiled.items()}


def _host_library(request: _Request, graph: Graph, device: Device | NoDevice) -> HostLibrary:
    wanted = request.host
    if not isinstance(wanted, str):
        return wanted
    if isinstance(device, Device) and wanted == "auto":
        return CupyHost(device.cupy, find_cublas(device.cupy))
    choices = ("auto", "numpy", "onnxruntime")
    if wanted not in choices:
        raise OptionError(f"host {wanted!r} is none of {', '.join(choices)}{nearest(wanted, choices)}")
    if wanted == "onnxruntime" and not available():
        raise RuntimeFailure("host='onnxruntime' needs the packages onnx and onnxruntime: pip install onnx onnxruntime")
    worth_it = any(node.op in LIBRARY_OPS for node in graph.operators)
    if wanted == "numpy" or (wanted == "auto" and not (worth_it and available())):
        return NumpyHost()
    threads = request.threads or Environment.read().threads
    runs_all = all(node.body is None for node in graph.operators)
    return OnnxRuntimeHost(threads=threads, opset=_model_opset(graph), runs_all=runs_all)


def _model_opset(graph: Graph) -> int:
    """The opset of the graph's ONNX operators, so that they and ours can stand in one model."""
    given = {
        node.attrs.int("opset") for node in graph.operators if node.op is ONNX and not node.attrs.str("domain", "")
    }
    oldest = 0 if all(node.op is ONNX for node in graph.operators) else OLDEST_OPSET
    return max((opset for opset in given if opset >= oldest), default=DEFAULT_OPSET)
