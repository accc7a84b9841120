"""From a graph to a plan: steps in order over numbered slots, and how long each buffer lives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from graphkernel.passes.shape.shape_values import extents_in
from graphkernel.runtime.plan.late_writes import with_late_writes
from graphkernel.runtime.plan.make_steps import CompiledKernel, StepMaker
from graphkernel.runtime.plan.segments import segments_of
from graphkernel.runtime.plan.storage import buffers_of, outputs_of, protected
from graphkernel.runtime.plan.waits import with_waits
from graphkernel.runtime.steps.host import HostLibrary
from graphkernel.runtime.steps.program import (
    Buffer,
    Extents,
    Held,
    Named,
    Number,
    Output,
    Program,
    Segment,
    memory_roots,
)
from graphkernel.runtime.steps.steps import Step
from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.order import results_of
from kernelgen.tensor.types import Sym


@dataclass(frozen=True, eq=False)
class Plan:
    """Steps in order, where inputs, constants and outputs are, the buffers in between, and what went to numpy and why.

    ``numbers`` are operators without a step: they compute a few numbers from shapes, once for each set of input shapes.
    ``differences`` are extents that some values of the symbols would make negative, each with the name of a node.
    ``segments`` are the steps that are bound together. ``prepared`` are what kernels take in place of constants.
    """

    graph: Graph
    steps: tuple[Step, ...]
    slots: Mapping[Value, int]
    inputs: tuple[int, ...]
    constants: tuple[Value, ...]
    numbers: tuple[Node, ...]
    outputs: tuple[Output, ...]
    buffers: tuple[Buffer, ...]
    left_to_numpy: Mapping[Node, str]
    differences: Mapping[Sym, str]
    segments: tuple[Segment, ...]
    prepared: tuple[Held, ...] = ()

    @cached_property
    def program(self) -> Program:
        """What running needs of it."""
        graph, slots = self.graph, self.slots
        ends = results_of(graph)
        read = {slot for each in (*self.steps, *self.outputs[: len(ends)]) for slot in _read(each)}
        extents = {found.slot: found for node in self.numbers for found in _extents(node, slots)}
        left = [node for node in self.numbers if not all(slots[value] in extents for value in node.outs)]
        numbers = tuple(_number(node, slots) for node in left)
        read |= {slot for number in numbers for slot, _ in number.operands}  # regions hold their constants themselves
        given = tuple(
            Held(value.node.name, slots[value], value.constant) for value in self.constants if slots[value] in read
        )
        return Program(
            len(slots) + len(self.prepared), self.steps, _named(graph.input_names, graph.inputs, slots),
            self.outputs[: len(ends)], _named(graph.output_names[: len(ends)], ends, slots),
            tuple((alias.input, alias.output) for alias in graph.aliases), graph.derived,
            (*given, *self.prepared), tuple(entry for slot, entry in extents.items() if slot in read), numbers,
            self.buffers, self.differences, self.segments,
        )  # fmt: skip


def _named(names: Sequence[str], values: Sequence[Value], slots: Mapping[Value, int]) -> tuple[Named, ...]:
    return tuple(Named(name, value.type, slots[value]) for name, value in zip(names, values, strict=True))


def _read(reader: Step | Output) -> tuple[int, ...]:
    return (reader.slot,) if isinstance(reader, Output) else reader.inputs


def _extents(node: Node, slots: Mapping[Value, int]) -> Iterator[Extents]:
    """The results of an operator that are known as dims."""
    for value in node.outs:
        dims = extents_in(value)
        if dims is not None:
            yield Extents(slots[value], value.type, tuple(dims.reshape(-1).tolist()))


def _number(node: Node, slots: Mapping[Value, int]) -> Number:
    operands = tuple((slots[value], value.type) for value in node.args)
    return Number(node, operands, tuple(slots[value] for value in node.outs))


def slots_of(graph: Graph) -> Mapping[Value, int]:
    """The slot of each value; what kernels take in place of constants is behind them."""
    return {value: index for index, value in enumerate(value for node in graph.nodes for value in node.outs)}


def make_plan(graph: Graph, kernels: Mapping[Node, CompiledKernel], library: HostLibrary) -> Plan:
    """The plan of a graph. ``kernels`` holds the compiled kernel of every fused node.

    What the library declines when it is handed a region is left out, and regions are made anew around it.
    """
    slots = slots_of(graph)
    maker = StepMaker(graph, kernels, library, slots)
    steps = maker.steps()
    while maker.is_stale:
        steps = maker.steps()
    steps = with_late_writes(steps, {slots[value] for value in graph.inputs})
    steps = protected(graph, with_waits(steps), slots)
    roots = memory_roots(steps)
    segments = segments_of(steps, slots, maker.told, maker.places)
    return Plan(
        graph,
        steps,
        slots,
        tuple(slots[value] for value in graph.inputs),
        tuple(node.out for node in graph.nodes if node.data is not None),
        tuple(node for node in graph.operators if node in maker.numbers),
        outputs_of(graph, steps, slots, roots),
        buffers_of(graph, steps, slots, roots, segments),
        maker.refused,
        _differences(graph),
        segments,
        tuple(maker.prepared.held),
    )


def _differences(graph: Graph) -> dict[Sym, str]:
    """The extents that some values of their symbols would make negative, each with a node that has it."""
    found: dict[Sym, str] = {}
    for node in graph.nodes:
        for type_ in node.types:
            found.update((dim, node.name) for dim in type_.shape if isinstance(dim, Sym) and _subtracts(dim))
    return found


def _subtracts(dim: Sym) -> bool:
    return any(factor < 0 for _, factor in dim.terms)
