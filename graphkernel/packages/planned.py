"""Graph and plan of what was loaded, made when somebody asks: kernels and regions are there already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphkernel.errors import PackageError
from graphkernel.packages.manifest import Manifest, RegionRecord
from graphkernel.packages.operators import operators_called
from graphkernel.runtime.onnxruntime.region_step import RegionStep, operands_of, region_step
from graphkernel.runtime.plan.make_steps import CompiledKernel, Preparation
from graphkernel.runtime.plan.plan import Plan, make_plan
from graphkernel.runtime.steps.host import HostLibrary, NumpyHost, numpy_step
from graphkernel.runtime.steps.program import Program
from graphkernel.runtime.steps.steps import KernelStep, Step
from kernelgen.tensor.constant_data import ConstantData
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.text import parse


def planned(text: str, manifest: Manifest, program: Program, weights: Mapping[str, np.ndarray]) -> Plan:
    """The plan whose ``program`` runs, of the text of its graph. Raises PackageError where the two do not belong together."""
    constants = {digest: ConstantData(digest, array) for digest, array in weights.items()}
    graph = parse(text, operators_called(manifest.operators), constants)
    return make_plan(graph, _kernels(graph, program), _library(graph, manifest, program))


def _kernels(graph: Graph, program: Program) -> Mapping[Node, CompiledKernel]:
    """The kernel of every fused operator, which its step is called after.

    Slots would not do: a number that several operators read is written at each of them.
    """
    steps = {step.name: step for step in program.steps if isinstance(step, KernelStep)}
    fused = [(node, steps.get(node.name)) for node in graph.operators if node.body is not None]
    arrays = {held.slot: held.array for held in program.constants}
    found = {
        node: CompiledKernel(step.kernel, _updated(step), step.untold, _preparation(node, step, arrays))
        for node, step in fused
        if step is not None
    }
    if not len(found) == len(fused) == len(steps):
        raise PackageError("a package with kernels of another graph")
    return found


def _preparation(node: Node, step: KernelStep, arrays: Mapping[int, np.ndarray | None]) -> Preparation | None:
    """What gives the arrays that the step reads in place of constants: they are in the package.

    Raises PackageError where its other operands are not those of the node.
    """
    if not step.prepared:
        return None
    plain, prepared = step.inputs[: step.told_at], step.inputs[step.told_at :]
    read = [array for slot in plain if (array := arrays.get(slot)) is not None]
    taken = tuple(position for position, value in enumerate(node.args) if _is_taken(value, read))
    if len(taken) != len(plain):
        raise PackageError(f"kernel {step.name} takes other operands than those of its node")
    own = tuple(arrays[slot] for slot in prepared)
    return Preparation(lambda: own, (), taken)


def _is_taken(value: Value, read: Iterable[np.ndarray]) -> bool:
    """Whether a step that reads these constants takes the value: all but constants of several elements that it has laid out."""
    data = value.node.data
    if data is None or value.type.size == 1:
        return True
    return data.array is not None and any(_is_same(each, data.array) for each in read)


def _is_same(array: np.ndarray, other: np.ndarray) -> bool:
    """Small constants stand in the text of the graph as well."""
    is_alike = (array.shape, array.dtype) == (other.shape, other.dtype)
    return array is other or (is_alike and array.tobytes() == other.tobytes())


def _updated(step: KernelStep) -> tuple[int, ...]:
    """The operands that its kernel, a native one, writes in place."""
    return step.kernel.signature.updated_inputs  # pyright: ignore[reportAttributeAccessIssue]


def _library(graph: Graph, manifest: Manifest, program: Program) -> HostLibrary:
    if not manifest.regions:
        return NumpyHost()
    steps = [step for step in program.steps if isinstance(step, RegionStep)]
    if len(steps) != len(manifest.regions):
        raise PackageError("a package with regions of another graph")
    by_number = {
        number: (record, step)
        for record, step in zip(manifest.regions, steps, strict=True)
        for number in record.operators
    }
    numbers = {node: number for number, node in enumerate(graph.operators)}
    return PackagedHost(numbers, by_number, manifest.library)


@dataclass(frozen=True)
class PackagedHost:
    """Takes the operators of each record as one region, whose session is there; others run on numpy.

    ``numbers`` are the operators of the graph by number.
    """

    numbers: Mapping[Node, int]
    regions_by_number: Mapping[int, tuple[RegionRecord, RegionStep]]
    name: str
    regions: bool = True

    def group(self, node: Node) -> str | None:
        """The group that it was in; None for what was in no region."""
        found = self.regions_by_number.get(self.numbers[node])
        return None if found is None else found[0].group

    def why_not(self, node: Node) -> str:
        """The report of the package says why."""
        return "" if node in self.numbers else "unknown"

    def absorbs(self, graph: Graph, kernel: Node) -> bool:
        """False: what it absorbs is no kernel in the graph of a package any more."""
        return False

    def region(
        self, name: str, nodes: Sequence[Node], slots: Mapping[Value, int], outputs: Sequence[Value]
    ) -> RegionStep:
        """The step of a region's session. Raises PackageError where the package's regions are not those of its graph."""
        record, step = self.regions_by_number[self.numbers[nodes[0]]]
        if tuple(self.numbers[node] for node in nodes) != record.operators:
            raise PackageError("a package whose regions are not those of its graph")
        inputs = operands_of(nodes)
        if (len(inputs), len(outputs)) != (len(step.input_names), len(step.output_names)):
            raise PackageError(f"region {record.model} takes other values than those of its operators")
        names = dict(zip((*inputs, *outputs), (*step.input_names, *step.output_names), strict=True))
        return region_step(name, step.session, nodes, names, inputs, outputs, slots)

    def single(self, node: Node, slots: Mapping[Value, int]) -> Step:
        """By its numpy meaning."""
        return numpy_step(node, slots)
