"""Groups of nodes become fused nodes, and fused nodes become their operators again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from graphlib import TopologicalSorter

from kernelgen.tensor.attrs import NONE
from kernelgen.tensor.graph import CONSTANT, FUSED, LEAVES, PARAMETER, Changed, Graph, Node, Value, become, keep

Naming = Callable[[Graph], Graph]


def extract(graph: Graph, groups: Iterable[Sequence[Node]], named: Naming) -> Graph:
    """The graph in which each group is one fused node over a body that ``named`` has given its name; other nodes stay.

    Groups are disjoint, in topological order inside, and acyclic as wholes (``graphlib.CycleError`` otherwise).
    Constants of one element stay inside the body, larger ones become operands.
    """
    units = in_order(graph, [tuple(group) for group in groups])
    needed = _needed_outside(graph, units)
    replaced: Changed = {value: value for node in graph.nodes if node.op in LEAVES for value in node.outs}
    for unit in units:
        if isinstance(unit, Node):
            node = keep(unit, tuple([replaced[arg] for arg in unit.args]))
            become(replaced, unit, node)
        else:
            results = tuple(value for node in unit for value in node.outs if value in needed)
            body, operands = body_of(unit, results)
            call = call_of(named(body), [replaced[value] for value in operands])
            replaced.update(zip(results, call.outs, strict=True))
    return with_unique_labels(graph.with_outputs(tuple(replaced[value] for value in graph.outputs)))


def in_order(graph: Graph, groups: Sequence[tuple[Node, ...]]) -> list[Node | tuple[Node, ...]]:
    """Groups and single nodes such that each comes after what it needs."""
    units: list[Node | tuple[Node, ...]] = list(groups)
    number = {node: index for index, group in enumerate(groups) for node in group}
    for node in graph.operators:
        if number.setdefault(node, len(units)) == len(units):
            units.append(node)
    sorter: TopologicalSorter[int] = TopologicalSorter()  # of numbers: the hash of a group looks at all its nodes
    for node in graph.operators:
        unit = number[node]
        producers = dict.fromkeys([number[arg.node] for arg in node.args if arg.node in number])
        sorter.add(unit, *(producer for producer in producers if producer != unit))
    return [units[index] for index in sorter.static_order()]


def _needed_outside(graph: Graph, units: Sequence[Node | tuple[Node, ...]]) -> Collection[Value]:
    """The values that graph outputs or other units use."""
    needed = dict.fromkeys(graph.outputs)
    for unit in units:
        members = (unit,) if isinstance(unit, Node) else unit
        inside = set(members)
        needed.update((arg, None) for node in members for arg in node.args if arg.node not in inside)
    return needed


def body_of(group: Sequence[Node], results: Sequence[Value]) -> tuple[Graph, tuple[Value, ...]]:
    """Nodes in topological order as a graph of their own, and the values that it takes as operands."""
    parameters: dict[Value, Value] = {}
    replaced: Changed = {}
    for node in group:
        for arg in node.args:
            if arg in replaced:
                continue
            if is_scalar_constant(arg):
                replaced[arg] = arg
            else:
                label = arg.node.name if len(arg.node.types) == 1 else f"{arg.node.name}_{arg.index}"
                parameters[arg] = replaced[arg] = Node(PARAMETER, (), NONE, (arg.type,), label).out
        moved = keep(node, tuple([replaced[arg] for arg in node.args]))
        become(replaced, node, moved)
    body = Graph("body", tuple(parameters.values()), tuple(replaced[value] for value in results))
    return with_unique_labels(body), tuple(parameters)


def call_of(body: Graph, operands: Iterable[Value]) -> Node:
    """The fused node that applies a body, labelled like the body's result when there is one, else like the body."""
    label = body.outputs[0].node.name if len(body.outputs) == 1 else body.name
    return Node(FUSED, tuple(operands), NONE, tuple(value.type for value in body.outputs), label, body)


def is_scalar_constant(value: Value) -> bool:
    """True for a constant of one element, which kernels hold inside."""
    return value.op is CONSTANT and value.type.size == 1


def splice(body: Graph, args: Sequence[Value]) -> tuple[Value, ...]:
    """The results of a body applied to operands."""
    replaced: Changed = dict(zip(body.inputs, args, strict=True))
    for node in body.nodes:
        if node.op is CONSTANT:
            replaced[node.out] = node.out
        elif node.op is not PARAMETER:
            moved = keep(node, tuple([replaced[arg] for arg in node.args]))
            become(replaced, node, moved)
    return tuple(replaced[value] for value in body.outputs)


def with_unique_labels(graph: Graph) -> Graph:
    """Numbers labels that occur twice; the same graph when none does."""
    if len({node.name for node in graph.nodes}) == len(graph.nodes):
        return graph
    taken = {node.name for node in graph.nodes if node.op is PARAMETER}
    counts: dict[str, int] = {}
    changed: Changed = {}
    for node in graph.nodes:
        label = node.name if node.op is PARAMETER else _free(node.name, taken, counts)
        taken.add(label)
        args = tuple([changed.get(arg, arg) for arg in node.args]) if changed else node.args
        if label != node.name or args != node.args:
            made = Node(node.op, args, node.attrs, node.types, label, node.body, node.data)
            become(changed, node, made)
    return graph.with_outputs(tuple([changed.get(value, value) for value in graph.outputs]))


def _free(wish: str, taken: Collection[str], counts: dict[str, int]) -> str:
    label = wish
    while label in taken:
        counts[wish] = counts.get(wish, 0) + 1
        label = f"{wish}_{counts[wish]}"
    return label
