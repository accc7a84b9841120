"""The invariants of plans, numbered. The planner must keep them; nothing here asks it how.

The memory of a call is followed step by step: which piece a slot lies in, and whose content the piece has. The graph says
what each step must read and which operands a kernel writes over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from graphkernel.errors import VerifyError
from graphkernel.runtime.onnxruntime.region_step import RegionStep
from graphkernel.runtime.plan.buffers import Array
from graphkernel.runtime.plan.plan import Plan
from graphkernel.runtime.steps.collective import CollectiveStep, WaitStep
from graphkernel.runtime.steps.program import Buffer
from graphkernel.runtime.steps.steps import KernelStep, Step, ViewStep
from kernelgen.tensor.definitions import mentioned_by
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.creation import SHAPE
from kernelgen.tensor.types import sym

INVARIANTS: dict[str, str] = {
    "P1": "each value has a slot of its own; inputs and constants of the plan are those of the graph",
    "P2": "what a step reads was written before",
    "P3": "each slot is written once, and none of an input or a constant",
    "P4": "a step reads and writes the values of its operators; a kernel may read prepared arrays in place of constants",
    "P5": "a view has as many elements as what it shows, and their type",
    "P6": "a kernel writes over operands only where that memory was made in this call or the graph assigns to it",
    "P7": "nobody reads what was written over; a kernel that writes over an operand reads that memory once",
    "P8": "results that the graph puts into an operand lie in its memory, or in that of its copy",
    "P9": "each array that a step writes into is there, once, from that step to the last that reads its memory",
    "P10": "memory of outputs is not reused",
    "P11": "outputs are written, each in memory that is no input's, no constant's and no other output's, or copied; one that "
    "the graph assigns to an input may lie there",
    "P12": "arrays that live at one time share no byte",
    "P13": "what is computed before a call needs shapes, constants and what was computed before it only",
    "P14": "segments follow each other; what their steps are told is known from the inputs or read off what is there before",
    "P15": "an array whose extents are found in a call is allocated by its step or in its segment; none that a later segment "
    "reads lies in an arena",
    "P16": "what is started is waited for once, before its result is read and before its operand is written over",
    "P17": "a kernel that is run when the sum of its rows is started is told of by that sum, before anybody reads them, and "
    "what it reads stays as it is until that was waited for",
}


def verify_plan(plan: Plan) -> None:
    """Raises :class:`~graphkernel.errors.VerifyError` with the number of the first broken invariant."""
    for number, message in broken(plan):
        raise VerifyError(number, f"{message} in the plan of {plan.graph.name!r} ({INVARIANTS[number]})")


def verify_places(buffers: Iterable[Buffer], slots: Sequence[Array | None]) -> None:
    """The same for where the buffers of a plan lie in one frame. ``slots`` are the arrays by slot.

    Raises VerifyError where two that live at a time overlap.
    """
    taken: list[tuple[Buffer, int, int]] = []
    for buffer in buffers:
        array = slots[buffer.slot]
        if array is None or array.nbytes == 0:
            continue
        start, end = np.lib.array_utils.byte_bounds(array)
        for other, begin, stop in taken:
            if start < stop and begin < end and buffer.first <= other.last and other.first <= buffer.last:
                raise VerifyError("P12", f"{buffer.name} and {other.name} overlap in a plan ({INVARIANTS['P12']})")
        taken.append((buffer, start, end))


def broken(plan: Plan) -> Iterator[tuple[str, str]]:
    """All broken invariants with what breaks them, but those that depend on sizes (P12)."""
    wrong_slots = list(_broken_slots(plan))
    if wrong_slots:  # nothing can be followed then
        yield from wrong_slots
        return
    yield from _broken_segments(plan)
    run = _Run(plan)
    for number, step in enumerate(plan.steps):
        yield from run.take(number, step)
    yield from run.broken_outputs()
    yield from run.broken_buffers()


def _broken_slots(plan: Plan) -> Iterator[tuple[str, str]]:
    graph = plan.graph
    values = {value for node in graph.nodes for value in node.outs}
    if set(plan.slots) != values or len(set(plan.slots.values())) != len(values):
        yield "P1", "the slots are not one for each value"
    if plan.inputs != tuple(plan.slots.get(value, -1) for value in graph.inputs):
        yield "P1", "the slots of the inputs are not those of the graph's"
    if set(plan.constants) != {node.out for node in graph.nodes if node.data is not None}:
        yield "P1", "the constants are not those of the graph"
    known = set(plan.constants)
    for node in plan.numbers:
        if node.op is not SHAPE and not known.issuperset(node.args):
            yield "P13", f"{node.name} reads what a step computes"
        known.update(node.outs)


@dataclass
class _Memory:
    """A piece of memory: may a kernel write over it, did this call make it, which slots show what it holds now."""

    writable: bool
    made: bool
    last_read: int = -1
    is_given: bool = False
    fresh: set[int] = field(default_factory=set[int])


class _Run:
    """The state after some steps: the memory of every slot that is written."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.values: Mapping[int, Value] = {slot: value for value, slot in plan.slots.items()}
        self.memory: dict[int, _Memory] = {}
        self.under_way: dict[int, CollectiveStep] = {}
        self.ahead: dict[int, KernelStep] = {}
        assigned = {alias.input for alias in plan.graph.aliases}
        self.assigned: dict[int, _Memory] = {}
        for position, slot in enumerate(plan.inputs):
            self._put(slot, _Memory(writable=position in assigned, made=False))
        for alias in plan.graph.aliases:
            self.assigned[alias.output] = self.memory[plan.inputs[alias.input]]
        for value in plan.constants:
            self._put(plan.slots.get(value, -1), _Memory(writable=False, made=False))
        for held in plan.prepared:
            self._put(held.slot, _Memory(writable=False, made=False))
        for node in plan.numbers:
            for value in node.outs:
                self._put(plan.slots.get(value, -1), _Memory(writable=False, made=False))

    def take(self, number: int, step: Step) -> Iterator[tuple[str, str]]:
        """Follows one step and yields what it breaks."""
        yield from _broken_operands(step, self.plan, self.values)
        yield from self._broken_waits(step)
        yield from self._broken_ahead(step)
        for slot in step.inputs:
            if slot not in self.memory:
                yield "P2", f"{step.name} reads {self._name(slot)}, which nobody wrote"
            elif slot not in self.memory[slot].fresh:
                yield "P7", f"{step.name} reads {self._name(slot)} after it was written over"
        for slot in step.outputs:
            if slot in self.memory:
                yield "P3", f"{step.name} writes {self._name(slot)}, which is there already"
        if all(slot in self.memory for slot in step.inputs) and not any(slot in self.memory for slot in step.outputs):
            yield from self._written(number, step)

    def _broken_waits(self, step: Step) -> Iterator[tuple[str, str]]:
        """Follows what is under way, by the slot of its token."""
        if isinstance(step, WaitStep):
            started = self.under_way.pop(step.inputs[0], None)
            if started is None or not {*started.data, started.outputs[0]}.issubset(step.inputs):
                yield "P16", f"{step.name} waits for nothing that was started, or is not told of all that it uses"
            return
        for started in self.under_way.values():
            needed = step.data if isinstance(step, CollectiveStep) else step.inputs
            if isinstance(step, KernelStep) and step.awaited == started.outputs[-1]:
                continue  # it waits for rows itself
            if len(started.outputs) > 1 and started.outputs[0] in needed:
                yield "P16", f"{step.name} reads {started.name} before it was waited for"
            yield from self._broken_operands_under_way(step, started)
        if isinstance(step, CollectiveStep):
            self.under_way[step.outputs[-1]] = step

    def _broken_ahead(self, step: Step) -> Iterator[tuple[str, str]]:
        """Follows the kernels that were not run when their turn came, by the token of the sum that runs them."""
        if isinstance(step, WaitStep):
            kernel = self.ahead.pop(step.inputs[0], None)
            if kernel is not None and not set(kernel.inputs).issubset(step.inputs):
                yield "P17", f"{step.name} is not told of what {kernel.name} reads"
            return
        kernel = self.ahead.get(step.outputs[-1]) if isinstance(step, CollectiveStep) else None
        takes_rows = isinstance(step, CollectiveStep) and step.takes_rows
        if takes_rows != (kernel is not None and kernel.outputs == step.inputs[:1]):
            yield "P17", f"{step.name} takes rows of no kernel, or leaves one that was not run"
        for other in self.ahead.values():
            if other is not kernel and self._is_not_run(other) and set(other.outputs) & set(step.inputs):
                yield "P17", f"{step.name} reads what {other.name} has not computed"
        if isinstance(step, KernelStep) and step.ahead is not None:
            self.ahead[step.ahead] = step

    def _is_not_run(self, kernel: KernelStep) -> bool:
        return kernel.ahead not in self.under_way

    def _broken_operands_under_way(self, step: Step, started: CollectiveStep) -> Iterator[tuple[str, str]]:
        if not isinstance(step, KernelStep):
            return
        for slot, position in step.stored:
            over = self.memory.get(step.inputs[position])
            if position not in step.private and any(self.memory.get(used) is over for used in started.data):
                yield (
                    "P16",
                    f"{step.name} writes {self._name(slot)} over an operand of {started.name}, which is under way",
                )

    def _written(self, number: int, step: Step) -> Iterator[tuple[str, str]]:
        for slot in step.inputs:
            self.memory[slot].last_read = number
        if isinstance(step, ViewStep):
            yield from self._viewed(step)
            return
        shared: dict[int, _Memory] = {}
        if isinstance(step, KernelStep):
            yield from self._updated(step, shared)
        for slot in step.outputs:
            memory = shared.get(slot)
            self._put(slot, _Memory(writable=True, made=True, last_read=number) if memory is None else memory)

    def _viewed(self, step: ViewStep) -> Iterator[tuple[str, str]]:
        (source,), (result,) = step.inputs, step.outputs
        base, view = self.values[source].type, self.values[result].type
        if view.size != base.size or view.dtype != base.dtype or step.shape != view.shape:
            yield "P5", f"{step.name} shows {base} as {view.dtype.short}{list(step.shape)}"
        self._put(result, self.memory[source])

    def _updated(self, step: KernelStep, shared: dict[int, _Memory]) -> Iterator[tuple[str, str]]:
        """What a kernel writes over; ``shared`` takes the memory of each result that lies there."""
        body = self.values[step.outputs[0]].node.body
        wanted = {alias.output: alias.input for alias in body.aliases} if body is not None else {}
        if dict(step.stored) != {step.outputs[output]: position for output, position in wanted.items()}:
            yield "P8", f"{step.name} keeps its results elsewhere than the graph says"
        for position in wanted.values():
            if position in step.private:
                continue
            memory = self.memory[step.inputs[position]]
            if not memory.writable:
                yield "P6", f"{step.name} writes over {self._name(step.inputs[position])}"
            if sum(self.memory[slot] is memory for slot in step.inputs) > 1:
                yield "P7", f"{step.name} reads {self._name(step.inputs[position])} twice and writes over it"
            memory.fresh.clear()
        for slot, position in step.stored:
            if position < len(step.inputs) and position not in step.private:
                shared[slot] = self.memory[step.inputs[position]]

    def broken_outputs(self) -> Iterator[tuple[str, str]]:
        """What is wrong with what the call gives back."""
        for started in self.under_way.values():
            yield "P16", f"{started.name} is not waited for"
        for kernel in self.ahead.values():
            yield "P17", f"{kernel.name} is not run"
        wanted = tuple(self.plan.slots.get(value, -1) for value in self.plan.graph.outputs)
        if tuple(output.slot for output in self.plan.outputs) != wanted:
            yield "P11", "the outputs are not those of the graph"
        for number, output in enumerate(self.plan.outputs):
            memory, target = self.memory.get(output.slot), self.assigned.get(number)
            if memory is None:
                yield "P11", f"output {self._name(output.slot)} is never written"
                continue
            if output.slot not in memory.fresh:
                yield "P7", f"output {self._name(output.slot)} was written over"
            taken = memory.is_given and target is None
            if not output.copy and memory is not target and (not memory.made or taken):
                yield "P11", f"output {self._name(output.slot)} lies in memory of somebody else"
            if target is None:
                memory.is_given = True
            else:  # it is stored behind the last step
                memory.last_read = len(self.plan.steps)

    def broken_buffers(self) -> Iterator[tuple[str, str]]:
        """What is wrong with the arrays that steps write into."""
        needed = {slot: number for number, step in enumerate(self.plan.steps) for slot in _written_into(step)}
        if sorted(needed) != sorted(buffer.slot for buffer in self.plan.buffers):
            yield "P9", "the buffers are not those that the steps write into"
            return
        for buffer in self.plan.buffers:
            memory, name = self.memory.get(buffer.slot), self._name(buffer.slot)
            value = self.values.get(buffer.slot)
            if value is None or (buffer.name, buffer.type) != (value.node.name, value.type):
                yield "P9", f"the buffer of {name} is one for {buffer.name}"
            if memory is None:  # its step was told of
                continue
            if buffer.first > needed[buffer.slot] or buffer.last < memory.last_read:
                yield "P9", f"{name} lives from step {buffer.first} to {buffer.last}, too short"
            if memory.is_given and not buffer.escapes:
                yield "P10", f"an output lies in {name}, whose memory is reused"
        yield from self._broken_kernel_made()

    def _broken_kernel_made(self) -> Iterator[tuple[str, str]]:
        """Arrays that a kernel makes itself: it makes all of them or none."""
        left = {buffer.slot for buffer in self.plan.buffers if buffer.made_by_kernel}
        for step in self.plan.steps:
            mine = left.intersection(_written_into(step))
            if mine and not (isinstance(step, KernelStep) and mine == set(step.made)):
                yield "P9", f"{step.name} is to make some of its results, not all"
            if any(not buffer.escapes for buffer in self.plan.buffers if buffer.slot in mine):
                yield "P9", f"{step.name} makes arrays that are to lie among the buffers"

    def _put(self, slot: int, memory: _Memory) -> None:
        self.memory[slot] = memory
        memory.fresh.add(slot)

    def _name(self, slot: int) -> str:
        return self.values[slot].node.name if slot in self.values else f"slot {slot}"


def _broken_operands(step: Step, plan: Plan, values: Mapping[int, Value]) -> Iterator[tuple[str, str]]:
    if isinstance(step, WaitStep):  # it has no operator
        return
    slots = plan.slots
    nodes = step.nodes if isinstance(step, RegionStep) else _node_of(step, values)
    inside = {value for node in nodes for value in node.outs}
    needed = [slots.get(arg, -1) for node in nodes for arg in node.args if arg not in inside]
    if isinstance(step, RegionStep):  # constants are in its model
        constants = {slots[arg] for node in nodes for arg in node.args if arg.is_known and arg in slots}
        fits = set(needed) - constants <= set(step.inputs) <= set(needed)
        made = set(step.outputs) <= {slots[value] for value in inside if value in slots}
    else:
        fits, made = (
            step.inputs == tuple(needed) or _is_prepared(step, needed, plan),
            step.outputs == tuple(slots.get(v, -1) for n in nodes for v in n.outs),
        )
    if not (fits and made):
        yield "P4", f"{step.name} has other operands or results than its operators"


def _is_prepared(step: Step, needed: Sequence[int], plan: Plan) -> bool:
    """Whether a kernel reads prepared arrays behind its operands, of which only constants are left out."""
    prepared = {held.slot for held in plan.prepared}
    own = tuple(slot for slot in step.inputs if slot not in prepared)
    constants = {plan.slots[value] for value in plan.constants}
    left = [slot for slot in needed if slot not in constants or slot in own]
    behind = step.inputs[len(own) :]
    return isinstance(step, KernelStep) and own == tuple(left) and bool(behind) and prepared.issuperset(behind)


def _broken_segments(plan: Plan) -> Iterator[tuple[str, str]]:
    values = {slot: value for value, slot in plan.slots.items()}
    known = {name for value in plan.graph.inputs for name in value.type.symbols}
    known.update(entry.name for entry in plan.graph.derived)
    written: set[int] = set()
    end = 0
    for part in plan.segments:
        if part.first != end or part.last < end:
            yield "P14", f"a segment starts at step {part.first}, the one before ends at {end}"
        end = part.last
        for name, slot, axis in part.reads:
            value = values.get(slot)
            if slot not in written or value is None or value.type.shape[axis : axis + 1] != (sym(name),):
                yield "P14", f"{name} is read off slot {slot}, axis {axis}"
            known.add(name)
        for step in plan.steps[part.first : part.last]:
            yield from _broken_extents(step, values, known)
            written.update(step.outputs)
    if end != len(plan.steps):
        yield "P14", f"the segments end at step {end} of {len(plan.steps)}"
    for buffer in plan.buffers:
        crossed = any(buffer.first < part.first <= buffer.last for part in plan.segments)
        if crossed and not buffer.escapes:
            yield "P15", f"{buffer.name} is read in a later segment"


def _broken_extents(step: Step, values: Mapping[int, Value], known: set[str]) -> Iterator[tuple[str, str]]:
    for slot in _written_into(step):
        if slot in values and not known.issuperset(values[slot].type.symbols):
            yield "P15", f"{step.name} writes {values[slot].type}, of which only {', '.join(sorted(known))} are known"
    nodes = () if isinstance(step, RegionStep) else _node_of(step, values)
    for node in nodes:
        for name in sorted(mentioned_by(node) - known - set(node.defines)):
            yield "P14", f"{step.name} is told {name}, which nobody read"


def _node_of(step: Step, values: Mapping[int, Value]) -> tuple[Node, ...]:
    found = values.get(step.outputs[0]) if step.outputs else None
    return () if found is None else (found.node,)


def _written_into(step: Step) -> tuple[int, ...]:
    """The slots that must hold an array when the step starts."""
    if isinstance(step, KernelStep):
        elsewhere = {slot for slot, _ in step.stored}
        return tuple(slot for slot in step.outputs if slot not in elsewhere)
    if isinstance(step, RegionStep):
        return tuple(slot for slot in step.outputs if slot not in step.unsized)
    return step.outputs if step.buffered else ()
