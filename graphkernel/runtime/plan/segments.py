"""Where a plan has to wait for extents: steps that are told symbols that earlier steps define.

A step is bound when all symbols that it is told are known. Those of the inputs are known at once, so most plans are one
segment. Behind operators that define symbols a further segment begins, which is bound when their results are there.
Regions of a library are never waited for: what they leave with such extents, the library allocates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from graphkernel.runtime.onnxruntime.region_step import RegionStep
from graphkernel.runtime.steps.program import Read, Segment
from graphkernel.runtime.steps.steps import Step
from kernelgen.tensor.definitions import Place, mentioned_by
from kernelgen.tensor.graph import Node, Value


def segments_of(
    steps: Sequence[Step], slots: Mapping[Value, int], told: Collection[str], places: Mapping[str, Place]
) -> tuple[Segment, ...]:
    """The segments of ``steps`` in order. ``told`` are the symbols of the inputs, ``places`` say where others are
    read; ``slots`` number the values.
    """
    if not places:
        return (Segment(0, len(steps)),)
    nodes = {slots[value]: value.node for value in slots}
    known, starts = set(told), [0]
    reads: list[list[Read]] = [[]]
    defined: list[str] = []
    for number, step in enumerate(steps):
        own = _nodes_of(step, nodes)
        if not known.issuperset(_needs(step, own)):
            starts.append(number)
            reads.append([(name, slots[places[name].value], places[name].axis) for name in defined])
            known.update(defined)
            defined = []
        names = (name for node in own for name in node.defines)
        defined += [name for name in names if slots[places[name].value] in step.outputs]
    ends = [*starts[1:], len(steps)]
    return tuple(map(Segment, starts, ends, map(tuple, reads)))


def _nodes_of(step: Step, nodes: Mapping[int, Node]) -> tuple[Node, ...]:
    return step.nodes if isinstance(step, RegionStep) else tuple(nodes[slot] for slot in step.outputs[:1])


def _needs(step: Step, nodes: Sequence[Node]) -> frozenset[str]:
    """The symbols without which a step cannot be bound."""
    if isinstance(step, RegionStep):
        return frozenset()
    return frozenset[str]().union(*(mentioned_by(node) - set(node.defines) for node in nodes))
