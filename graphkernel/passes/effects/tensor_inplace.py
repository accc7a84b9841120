"""The pass tensor_inplace: an element-wise kernel writes its result over an operand that nobody reads afterwards.

Before and after::

    kernel K(a, y) { t = Mul(a, y); return t }    a = L(x); return K(a, y)
        ==>
    kernel K(a, y) { t = Mul(a, y); return t -> a }    a = L(x); return K(a, y)

The alias of the body says where the result lies; inside, all stays pure. An operand is taken when a kernel or an operator
made it, its type is that of a float32 result, the kernel reads it element by element only, and everybody else reads it
earlier. Inputs and constants of the graph and what it returns are never taken. The plan shares the memory of values whose
lives do not overlap anyway; in place, also operand and result of one kernel share it. Where the host library needs another
order than the graph's, the plan gives the kernel a copy.

Source: MindSpore's TensorInplace, which takes element-wise and broadcast kernels and those with one simple reduction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from graphkernel.cluster.cost import byte_size, human
from graphkernel.cluster.iteration_space import spread_of_operand
from graphkernel.cluster.liveness import is_view, memories
from graphkernel.cluster.naming import Names, suffix_of
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import LEAVES, Alias, Graph, Node, Value, keep
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.effects import ASSIGN
from kernelgen.tensor.types import dtype

PASS_NAME = "tensor_inplace"
FLOAT = dtype("float32")


@graph_pass
def tensor_inplace(graph: Graph, context: Context) -> Graph:
    """Marks the results that take the memory of an operand; does nothing on ascend, where kernels have no such form."""
    if context.options.target == "ascend":
        return graph
    safe = _Ends(graph)
    names = Names.beside(graph)
    changed: dict[Node, Graph] = {}
    for node in graph.operators:
        if node.body is None or node.body.aliases:
            continue
        aliases = tuple(_aliases(node, node.body, safe))
        if not aliases:
            context.log.add(PASS_NAME, "not-in-place", node.name, message=_why_not(node.body))
            continue
        changed[node] = names.named(replace(node.body, aliases=aliases), suffix_of(node.body))
        for alias in aliases:
            operand = node.args[alias.input]
            message = f"result {alias.output}, {human(byte_size(operand))}"
            context.log.add(PASS_NAME, "in-place", node.name, operand.node.name, message)
    if not changed:
        return graph

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        body = changed.get(node)
        return (keep(node, args) if body is None else replace(node, args=args, body=body)).outs

    return graph.rebuild(rewrite)


class _Ends:
    """Where the memory of values is read last."""

    def __init__(self, graph: Graph) -> None:
        self._memory = memories(graph)
        self._returned = {self._memory[value] for value in graph.outputs}
        self._last: dict[Value, Node] = {}
        for node in graph.operators:
            if not is_view(node):
                self._last.update((self._memory[arg], node) for arg in node.args)

    def free(self, node: Node) -> list[int]:
        """The operands whose memory is free once the node has run: an operator made it, and nobody reads it later."""
        held = [self._memory[arg] for arg in node.args]
        return [
            position
            for position, memory in enumerate(held)
            if memory.op not in LEAVES
            and memory not in self._returned
            and self._last.get(memory) is node
            and held.count(memory) == 1
        ]


def _aliases(node: Node, body: Graph, ends: _Ends) -> Iterator[Alias]:
    """Pairs of a result and the operand that it can take, each in one pair at most."""
    if not _is_simple(body):
        return
    free = ends.free(node)
    taken: set[int] = set()
    for output, value in enumerate(body.outputs):
        if (
            value.op in LEAVES
            or value.op.kind is Kind.REDUCE
            or value.type.dtype != FLOAT
            or value in body.outputs[:output]
        ):
            continue
        fits = (i for i in free if i not in taken and node.args[i].type == value.type and is_read_evenly(body, i))
        position = next(fits, None)
        if position is not None:
            taken.add(position)
            yield Alias(output, position)


def _is_simple(body: Graph) -> bool:
    """Element-wise operators and broadcasts only, and one reduction at most."""
    kinds = [node.op.kind for node in body.operators]
    return all(kind in (Kind.VIRTUAL, Kind.ELEMWISE, Kind.BROADCAST, Kind.REDUCE) for kind in kinds) and (
        kinds.count(Kind.REDUCE) <= 1
    )


def is_read_evenly(body: Graph, position: int) -> bool:
    """Whether every operator reads the operand at the point that it computes, so that a written element is not read again.

    An Assign reads nothing of its target.
    """
    operand = body.inputs[position]
    readers = body.users.get(operand.node, ())
    return operand not in body.outputs and all(
        reader.op.kind is Kind.ELEMWISE and spread_of_operand(reader, index) is None
        for reader in readers
        for index, arg in enumerate(reader.args)
        if arg == operand and not (reader.op is ASSIGN and index == 0)
    )


def _why_not(body: Graph) -> str:
    if not _is_simple(body):
        return "it holds more than element-wise operators and one reduction"
    return "no operand of a float32 result's type ends here"
