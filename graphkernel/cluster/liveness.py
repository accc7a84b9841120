"""Live bytes: how much memory the values between operators need, step by step, in the order of a graph."""

from __future__ import annotations

from collections.abc import Mapping

from kernelgen.tensor.graph import LEAVES, Graph, Node, Value
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.types import Sym


def is_view(node: Node) -> bool:
    """True for a reshape: outside kernels it is the memory of its operand."""
    return node.op.kind is Kind.RESHAPE and len(node.args) == 1


def memories(graph: Graph) -> Mapping[Value, Value]:
    """For each value the one in whose memory it lies: a view's operand, or the operand that a kernel wrote it over.

    A kernel that is told to write over an input or a constant is given a copy, so its result has memory of its own.
    """
    found: dict[Value, Value] = {}
    for node in graph.nodes:
        found.update((value, value) for value in node.outs)
        if is_view(node):
            found[node.out] = found[node.args[0]]
        for alias in node.body.aliases if node.body is not None else ():
            memory = found[node.args[alias.input]]
            if memory.op not in LEAVES:
                found[node.outs[alias.output]] = memory
    return found


def static_bytes(value: Value) -> int | None:
    """Bytes of a tensor, None when its extents are not known. Inputs and constants are there anyway and cost nothing."""
    if value.op in LEAVES:
        return 0
    size = value.type.size
    return None if isinstance(size, Sym) else size * value.type.dtype.itemsize


def peak_bytes(graph: Graph) -> int | None:
    """The most bytes that are alive at one step; None when extents are not known.

    A value lives from its operator to its last reader, one that the graph returns to the end. While an operator runs, its
    operands and its results are alive.
    """
    memory = memories(graph)
    nodes = [node for node in graph.operators if not is_view(node)]
    sizes = {value: static_bytes(value) for node in nodes for value in node.outs if memory[value] == value}
    if any(size is None for size in sizes.values()):
        return None
    last = {memory[arg]: step for step, node in enumerate(nodes) for arg in node.args}
    last.update((memory[value], len(nodes)) for value in graph.outputs)
    dying: dict[int, list[Value]] = {}
    for value, step in last.items():
        dying.setdefault(step, []).append(value)
    alive = peak = 0
    for step, node in enumerate(nodes):
        alive += sum(sizes.get(value) or 0 for value in node.outs)
        peak = max(peak, alive)
        unread = (value for value in node.outs if value not in last)
        alive -= sum(sizes.get(value) or 0 for value in (*dying.get(step, ()), *unread))
    return peak
