"""From compiled kernels and plans to the entries of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphkernel.ops.library.host import operator_name, runner
from graphkernel.report.page.story import Came, Story, StoryStep
from graphkernel.report.report import Fallback, HostEntry, KernelEntry
from graphkernel.runtime.cuda.cupy_host import CupyStep
from graphkernel.runtime.onnxruntime.regions import RegionStep
from graphkernel.runtime.plan.placement import PEERS
from graphkernel.runtime.plan.plan import Plan
from graphkernel.runtime.steps.collective import CollectiveStep
from graphkernel.runtime.steps.host import HostLibrary
from graphkernel.runtime.steps.steps import KernelStep, NumpyStep
from kernelgen.errors import BackendUnavailable, UnsupportedError
from kernelgen.system.faults import fault_line, fault_trace
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.inline import inline
from kernelgen.tensor.types import Dim

ADVICE: Mapping[str, str] = {
    "unsupported-op": "keep it out of kernels with disable_cluster_ops",
    "unsupported-dtype": "cast to float32 around it, or keep it out of kernels with disable_cluster_ops",
    "device": "nothing to do; a newer driver may take it",
    "host-numpy": "right, but slow where it is large; in float32 onnxruntime may have it",
    "host-onnxruntime": "right, but called for this operator alone",
    "host-onnx.reference": "slow: onnxruntime does not have it for these types, so the onnx package computes it",
}
FORESEEN = (UnsupportedError, BackendUnavailable, ModuleNotFoundError, MemoryError)
"""Why a compiler may give no kernel: all else is a fault of ours, of which the report keeps the traceback."""

INTERNAL = "internal"
REPORT_IT = "nothing to do; please report the kernel, its text is in the graph"


def kernel_entry(calls: Sequence[Node], kernel: Any, milliseconds: float) -> KernelEntry:  # any compiler's kernel
    """What a compiled ``kernel`` holds; ``calls`` are the fused nodes that run it. It took ``milliseconds`` to
    compile.
    """
    first = calls[0]
    body = first.body
    assert body is not None, "only fused nodes are compiled"
    return KernelEntry(
        body.name,
        tuple(node.op.name for node in body.operators),
        tuple(str(value.type) for value in body.inputs),
        tuple(str(value.type) for value in body.outputs),
        tuple(node.name for node in calls),
        bytes_moved((*first.args, *first.outs)),
        bytes_unfused(body),
        milliseconds,
        bool(getattr(kernel, "cached", False)),
        str(getattr(kernel, "proof", "")),
        int(getattr(kernel, "launches", 1)),
    )


def fallback(node: Node, error: Exception) -> Fallback:
    """A fused node that has no kernel: with the reason of the compiler, or with the traceback of its fault."""
    body = node.body
    assert body is not None, "only fused nodes are compiled"
    held = ", ".join(dict.fromkeys(inner.op.name for inner in body.operators))
    if not isinstance(error, FORESEEN):
        return Fallback(node.name, held, INTERNAL, fault_line(error), REPORT_IT, fault_trace(error))
    code = error.code if isinstance(error, UnsupportedError) else type(error).__name__
    return Fallback(node.name, held, code, str(error), ADVICE.get(code, REPORT_IT))


def left_to_numpy(node: Node, why: str) -> Fallback:
    """An operator that the host library did not take."""
    code = f"host-{runner(node)}"
    return Fallback(node.name, operator_name(node), code, why, ADVICE[code])


def host_entries(plan: Plan, library: HostLibrary) -> tuple[HostEntry, ...]:
    """The steps that are no kernels."""
    found: list[HostEntry] = []
    for step in plan.steps:
        if isinstance(step, RegionStep):
            found.append(HostEntry(step.name, library.name, tuple(map(operator_name, step.nodes))))
        elif isinstance(step, NumpyStep):
            found.append(HostEntry(step.name, runner(step.node), (operator_name(step.node),)))
        elif isinstance(step, CupyStep):
            found.append(HostEntry(step.name, library.name, (operator_name(step.node),)))
        elif isinstance(step, CollectiveStep):
            found.append(HostEntry(step.name, PEERS, (operator_name(step.node),)))
    return tuple(found)


def story_of(plan: Plan, library: HostLibrary, came: Came | None) -> Story:
    """What a page tells of a plan; of a graph that came with its kernels the operators in them are the beginning."""
    before = came.graph if came is not None else inline(plan.graph, lambda _: True)[0]
    kernels = {node.name: node for node in plan.graph.operators if node.body is not None}
    steps: list[StoryStep] = []
    sources: dict[str, str] = {}
    for step in plan.steps:
        if isinstance(step, KernelStep):
            steps.append(StoryStep(step.name, "kernel", (kernels[step.name],)))
            sources.setdefault(steps[-1].kernel, str(getattr(step.kernel, "source", "")))
        elif isinstance(step, RegionStep):
            steps.append(StoryStep(step.name, library.name, step.nodes))
        elif isinstance(step, NumpyStep | CupyStep):
            steps.append(
                StoryStep(step.name, library.name if isinstance(step, CupyStep) else runner(step.node), (step.node,))
            )
        elif isinstance(step, CollectiveStep):
            steps.append(StoryStep(step.name, PEERS, (step.node,)))
    return Story(before, plan.graph, tuple(steps), came.decisions if came is not None else (), sources)


def bytes_moved(values: Iterable[Value]) -> Dim:
    """The bytes of the values, each counted once; constants of one element cost nothing."""
    total: Dim = 0
    for value in dict.fromkeys(values):
        scalar = value.is_known and value.type.size == 1
        total = total + (0 if scalar else value.type.size * value.type.dtype.itemsize)
    return total


def bytes_unfused(body: Graph) -> Dim:
    """What the operators of a body would move one by one."""
    total: Dim = 0
    for node in body.operators:
        total = total + bytes_moved((*node.args, *node.outs))
    return total
