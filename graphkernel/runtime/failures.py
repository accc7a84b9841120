"""What a failed step tells the caller: the operator, its name, and what the library said."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from graphkernel.errors import GraphKernelError, RuntimeFailure, said_by
from graphkernel.runtime.onnxruntime.region_step import RegionStep
from graphkernel.runtime.steps.steps import Step
from kernelgen.errors import BackendUnavailable

if TYPE_CHECKING:
    from kernelgen.tensor.graph import Node

PASSED_ON = (GraphKernelError, BackendUnavailable, MemoryError)
"""What says enough by itself: errors of ours, a tool that is missing, no memory."""

MOST_NAMES = 4


def step_failure(step: Step, error: Exception) -> RuntimeFailure:
    """The error of a step in words of the graph; of a region onnxruntime's message tells which of its operators."""
    return RuntimeFailure(f"{_subject(step, str(error))} fails: {said_by(error)}")


def _subject(step: Step, message: str) -> str:
    if isinstance(step, RegionStep):
        named = re.search(r"Name:'(\d+)\.", message)
        nodes = (step.nodes[int(named[1])],) if named and int(named[1]) < len(step.nodes) else step.nodes
        more = f" and {len(nodes) - MOST_NAMES} more" if len(nodes) > MOST_NAMES else ""
        return ", ".join(map(_named, nodes[:MOST_NAMES])) + more
    node: Node | None = getattr(step, "node", None)
    return step.name if node is None else _named(node)


def _named(node: Node) -> str:
    from graphkernel.ops.library.host import operator_name  # nothing else here needs operators

    return f"{operator_name(node)} {node.name}"
