"""Which slots lie in one piece of memory, what may be written there, and how long each piece is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graphkernel.runtime.onnxruntime.region_step import RegionStep
from graphkernel.runtime.steps.program import Buffer, Output, Segment, memory_behind
from graphkernel.runtime.steps.steps import KernelStep, Step, ViewStep
from kernelgen.tensor.graph import Graph, Value


def protected(graph: Graph, steps: Sequence[Step], slots: Mapping[Value, int]) -> tuple[Step, ...]:
    """Kernels update operands in place where that memory is theirs to write and nobody reads the old content later.

    Memory is theirs when a step made it, or when it is an input that the graph says is written. Elsewhere the kernel is
    given a copy.
    """
    memory = _Memory.before(graph, steps, slots)
    found: list[Step] = []
    for number, step in enumerate(steps):
        if isinstance(step, KernelStep) and step.private:
            copied = (place for place in step.private if not memory.may_be_written(step, place, number))
            step = step._replace(private=frozenset(copied))
        memory.advance(step)
        found.append(step)
    return tuple(found)


@dataclass(frozen=True)
class _Memory:
    """The memory of a plan between two steps; every piece has the name of its first slot, its root.

    ``writable`` are the pieces that steps may write, ``last_read`` the number of the last step that reads a slot,
    ``roots`` whose memory a slot's is, ``holders`` the slots that have the content that a piece has now.
    """

    writable: set[int]
    last_read: Mapping[int, int]
    roots: dict[int, int] = field(default_factory=dict[int, int])
    holders: dict[int, set[int]] = field(default_factory=dict[int, "set[int]"])

    @staticmethod
    def before(graph: Graph, steps: Sequence[Step], slots: Mapping[Value, int]) -> _Memory:
        """Before the first step."""
        last_read = {slot: number for number, step in enumerate(steps) for slot in step.inputs}
        last_read.update((slots[value], len(steps)) for value in graph.outputs)
        return _Memory({slots[graph.inputs[alias.input]] for alias in graph.aliases}, last_read)

    def may_be_written(self, step: KernelStep, position: int, number: int) -> bool:
        """Whether this step may update that operand in place."""
        root = self._root(step.inputs[position])
        if root not in self.writable or self._is_read_twice(step, root):
            return False
        contents = {*self.holders.get(root, ()), root, step.inputs[position]}
        return all(self.last_read.get(slot, -1) <= number for slot in contents)

    def advance(self, step: Step) -> None:
        """Behind the step."""
        for slot, root in memory_behind(step, self.roots).items():
            self.roots[slot] = root
            if root == slot:
                self.writable.add(slot)
            held = self.holders.get(root, set[int]()) if isinstance(step, ViewStep) else set[int]()
            self.holders[root] = held | {slot}

    def _is_read_twice(self, step: KernelStep, root: int) -> bool:
        """Whether several operands lie in this memory."""
        return sum(self._root(slot) == root for slot in step.inputs) > 1

    def _root(self, slot: int) -> int:
        return self.roots.get(slot, slot)


def outputs_of(
    graph: Graph, steps: Sequence[Step], slots: Mapping[Value, int], roots: Mapping[int, int]
) -> tuple[Output, ...]:
    """Where the results of ``graph`` are, and which are copied: those in memory that no step made, or that an earlier
    one was given. One that the graph assigns to an input may lie there already; others are stored there behind all steps.

    ``steps`` are those of the plan, ``slots`` the number of each value, ``roots`` the slot in whose memory each lies.
    """
    made = {slot for step in steps for slot in step.outputs if roots[slot] == slot}  # not what follows from shapes
    assigned = {alias.output: slots[graph.inputs[alias.input]] for alias in graph.aliases}
    found: list[Output] = []
    for number, value in enumerate(graph.outputs):
        slot = slots[value]
        root = roots.get(slot, slot)
        found.append(Output(slot, root not in made and root != assigned.get(number)))
        if number not in assigned:
            made.discard(root)  # given away: the next output in this memory is copied
    return tuple(found)


def buffers_of(
    graph: Graph,
    steps: Sequence[Step],
    slots: Mapping[Value, int],
    roots: Mapping[int, int],
    segments: Sequence[Segment],
) -> tuple[Buffer, ...]:
    """The memory that buffered steps write into, with the life of all views of it.

    ``graph``, ``steps``, ``slots`` and ``roots`` as in :func:`outputs_of`; what crosses a border of ``segments`` has
    memory of its own.
    """
    values = {slot: value for value, slot in slots.items()}
    first = {slot: number for number, step in enumerate(steps) for slot in _buffered(step)}
    last = dict(first)
    for number, step in enumerate(steps):
        last.update({roots.get(slot, slot): number for slot in step.inputs})
    assigned = {alias.output for alias in graph.aliases}
    stored = {roots.get(slots[graph.outputs[number]]) for number in assigned}  # behind the last step
    last.update((slot, len(steps)) for slot in first if slot in stored)
    outside = {roots.get(slots[value]) for number, value in enumerate(graph.outputs) if number not in assigned}
    outside |= {slot for slot in first for each in segments if first[slot] < each.first <= last[slot]}
    kernels = {
        number
        for number, step in enumerate(steps)
        if isinstance(step, KernelStep) and not step.rows and outside.issuperset(step.made)
    }
    return tuple(
        Buffer(slot, values[slot].node.name, values[slot].type, number, last[slot], slot in outside, number in kernels)
        for slot, number in first.items()
    )


def _buffered(step: Step) -> tuple[int, ...]:
    """The slots that need an array before the step runs."""
    return step.made if isinstance(step, KernelStep | RegionStep) else step.outputs if step.buffered else ()
