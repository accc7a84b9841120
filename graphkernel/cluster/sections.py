"""Sections of a cluster's body that grow apart, so that equal ones grow once.

    h = Relu(MatMul(x, w));  y = MatMul(h, v) + x        with products of ours: MatMul, Relu | MatMul, Add

A kernel of ours for a product with weights takes in what follows it, and nothing that makes its operands but a reshape: they
are computed before; but for pixels, which are made as an image is read. Whatever reaches a user only through such a product
as well (the sum of a residual) would close a cycle there. So no pattern joins across either, and a body that is a whole
network falls into sections, many of them equal.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Sequence

from graphkernel.cluster.attention import is_of_inputs
from graphkernel.cluster.own_products import IMAGE, is_own
from graphkernel.cluster.partition import NEAREST
from kernelgen.disjoint_sets import DisjointSets, components
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.operators.shape import TRANSPOSE

Section = tuple[Node, ...]
"""Operators in the order of their body."""


class Sections:
    """The operators of a body in sections, which become fewer where areas of two turn out to be siblings."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self._nodes = graph, graph.operators
        self._position = {node: number for number, node in enumerate(self._nodes)}
        self._producers = [
            dict.fromkeys([self._position[arg.node] for arg in node.args if arg.node in self._position])
            for node in self._nodes
        ]
        self._before, self._barred = _paths(self._nodes, self._producers)
        self._joined: DisjointSets[int] = DisjointSets()
        for number, makers in enumerate(self._producers):
            self._join((maker, number) for maker in makers if not self._barred[number] >> maker & 1)

    def _join(self, pairs: Iterable[tuple[int, int]]) -> None:
        for other, number in pairs:
            self._joined.join(other, number)

    def found(self) -> list[Section]:
        """The sections, each after those that it needs; sections that need each other are one."""
        makers: dict[int, dict[int, None]] = {}
        for number, producers in enumerate(self._producers):
            makers.setdefault(self._joined.of(number), {}).update(dict.fromkeys(map(self._joined.of, producers)))
        members: dict[int, list[Node]] = {}
        for component in components(makers):
            self._join((component[0], other) for other in component)
            members[self._joined.of(component[0])] = []
        for number, node in enumerate(self._nodes):
            members[self._joined.of(number)].append(node)
        return [tuple(section) for section in members.values()]

    def join_siblings(self, areas: Iterable[Sequence[Node]]) -> bool:
        """Makes sections one in which ``areas`` have grown that read a tensor alike; True where there are some.

        Areas with operators of unknown dependence have no siblings, nor have those of which one needs the other.
        """
        home = {node: area for area in areas if not any(node.op.kind is Kind.OPAQUE for node in area) for node in area}
        pairs = [
            (other, number)
            for other, number in self._readers_alike()
            if (left := home.get(self._nodes[other])) and (right := home.get(self._nodes[number]))
            if not self._is_before(left, right) and not self._is_before(right, left)
        ]
        self._join(pairs)
        return bool(pairs)

    def _is_before(self, area: Sequence[Node], other: Sequence[Node]) -> bool:
        """Whether an operator of one area needs one of another."""
        inside = sum(1 << self._position[node] for node in area)
        return any(self._before[self._position[node]] & inside for node in other)

    def _readers_alike(self) -> Iterator[tuple[int, int]]:
        """Operators of two sections that read a tensor element by element, ``NEAREST`` before each."""
        readers: dict[Value, list[int]] = {}
        for number, node in enumerate(self._nodes):
            for value in node.args:
                if len(self._graph.users[value.node]) > 1 and _reads(node, value):
                    others = readers.setdefault(value, [])
                    yield from [
                        (other, number)
                        for other in others[-NEAREST:]
                        if self._joined.of(other) != self._joined.of(number) and not self._barred[number] >> other & 1
                    ]
                    others.append(number)


def has_sections(graph: Graph) -> bool:
    """Whether an operator of a body stands at the beginning of a section."""
    return any(map(_is_closed, graph.operators))


def _is_closed(node: Node) -> bool:
    """Whether its kernel takes in nothing that makes its operands: all products of ours but those of attentions."""
    return is_own(node) and not is_of_inputs(node)


def _paths(nodes: Sequence[Node], producers: Sequence[Iterable[int]]) -> tuple[list[int], list[int]]:
    """For each operator, as bit sets: it and all before it, and those before it on a path with an operand of a closed one."""
    before: list[int] = []
    barred: list[int] = []
    for number, (node, makers) in enumerate(zip(nodes, producers, strict=True)):
        every, far, closed = 1 << number, 0, _is_closed(node)
        for maker in makers:
            every |= before[maker]
            far |= before[maker] if closed and not _may_be_taken(nodes[maker], node) else barred[maker]
        before.append(every)
        barred.append(far)
    return before, barred


def _may_be_taken(maker: Node, closed: Node) -> bool:
    """Whether the kernel of a closed operator may take in what makes an operand: a reshape, or the pixels that it reads."""
    if maker.op.kind is Kind.RESHAPE:
        return True
    if closed.types[0].rank != IMAGE or closed.args[0].node is not maker:
        return False
    return maker.op is TRANSPOSE if closed.op is CONV2D else maker.op.kind <= Kind.BROADCAST


def _reads(node: Node, value: Value) -> bool:
    """Whether an operator may read a tensor element by element, as areas side by side do."""
    if node.op.kind is Kind.OPAQUE or value.type.size == 1:
        return False
    return node.op.kind not in (Kind.ELEMWISE, Kind.BROADCAST) or value.type.size == node.types[0].size


def likeness(graph: Graph, section: Section) -> Hashable:
    """Equal for sections that grow alike: the same operators on the same operands, with results needed outside alike."""
    position = {node: number for number, node in enumerate(section)}
    outside: dict[Value, int] = {}

    def operand(value: Value) -> Hashable:
        number = position.get(value.node)
        if number is not None:
            return number, value.index
        return outside.setdefault(value, len(outside)), value.type, value.node.data

    def of_node(node: Node) -> Hashable:
        needed = tuple([is_needed_outside(graph, value, position) for value in node.outs])
        return node.op.name, tuple(map(operand, node.args)), node.attrs, node.types, needed

    return tuple(map(of_node, section))


def is_needed_outside(graph: Graph, value: Value, inside: Container[Node]) -> bool:
    """Whether a ``value`` is a result of the ``graph``, or an operator that is not ``inside`` uses it."""
    node = value.node
    if len(node.types) == 1:
        return node in graph.output_nodes or any(user not in inside for user in graph.users[node])
    return value in graph.outputs or any(value in user.args for user in graph.users[node] if user not in inside)
