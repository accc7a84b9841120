"""Host libraries: who computes what no kernel computes. Here numpy; ``regions`` has onnxruntime, ``cupy_host`` cupy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from graphkernel.runtime.steps.steps import NumpyStep, ShapeStep, Step
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.operators.creation import SHAPE


class HostLibrary(Protocol):
    """Runs ordinary operators, one at a time or a whole region at once."""

    @property
    def name(self) -> str:
        """What the report calls it."""
        ...

    @property
    def regions(self) -> bool:
        """Whether it takes regions at all; if so, an operator that it does not take is a fallback."""
        ...

    def group(self, node: Node) -> str | None:
        """Nodes of one group may share a step; None when the library cannot run the node."""
        ...

    def why_not(self, node: Node) -> str:
        """Why ``group`` said None."""
        ...

    def absorbs(self, graph: Graph, kernel: Node) -> bool:
        """Whether it computes a fused node at no cost within the operator before it, so that no kernel is wanted."""
        ...

    def region(self, name: str, nodes: Sequence[Node], slots: Mapping[Value, int], outputs: Sequence[Value]) -> Step:
        """One step that runs the nodes (in topological order) and leaves ``outputs`` in their slots.

        Raises NotImplementedError.
        """
        ...

    def single(self, node: Node, slots: Mapping[Value, int]) -> Step:
        """A step for one operator that is in no region."""
        ...


@dataclass(frozen=True)
class NumpyHost:
    """No regions: every operator by its numpy meaning."""

    name: str = "numpy"
    regions: bool = False

    def group(self, node: Node) -> str | None:
        """None: numpy is what is left when no library takes a node."""
        return None

    def why_not(self, node: Node) -> str:
        """Nothing to explain: this is the choice."""
        return "the host library is numpy"

    def absorbs(self, graph: Graph, kernel: Node) -> bool:
        """False: every operator is computed by itself."""
        return False

    def region(self, name: str, nodes: Sequence[Node], slots: Mapping[Value, int], outputs: Sequence[Value]) -> Step:
        """Never asked for, because no node is in a group. Raises NotImplementedError."""
        raise NotImplementedError("numpy runs single operators")

    def single(self, node: Node, slots: Mapping[Value, int]) -> Step:
        """By its numpy meaning."""
        return numpy_step(node, slots)


def numpy_step(node: Node, slots: Mapping[Value, int]) -> NumpyStep | ShapeStep:
    """One operator by its numpy meaning."""
    border = tuple(slots[arg] for arg in node.args), tuple(slots[value] for value in node.outs)
    return ShapeStep(node.name, *border) if node.op is SHAPE else NumpyStep(node, *border)
