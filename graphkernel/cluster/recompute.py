"""Cheap values that two kernels need are computed in both, when that moves fewer bytes.

    c = Cast(x); kernel_1(c); kernel_2(c)    ==>    kernel_1(Cast(x)); kernel_2(Cast(x))

The cast value is then neither stored nor read; the operand is read once more, in the smaller type. Source: the recompute
fusion of MindSpore's GPU split model, which copies chains of at most ten operators when what they read is no larger than
what they make.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from graphkernel.cluster.cost import byte_size, human, is_cheap, is_greater
from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.cluster.iteration_space import spread_of_operand
from graphkernel.cluster.sections import is_needed_outside
from kernelgen.tensor.dims import total
from kernelgen.tensor.graph import Changed, Graph, Node, Value, keep
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.types import Dim

LONGEST = 10
"""Most operators that are computed again for one value."""


@dataclass(frozen=True)
class Copy:
    """A value, the operators that make it from outside its area, and the users in another area that get a copy."""

    value: Value
    region: tuple[Node, ...]
    users: tuple[Node, ...]
    message: str


def copies(graph: Graph, groups: Sequence[Sequence[Node]]) -> tuple[Copy, ...]:
    """What to compute again, at most one value for each group of operators that uses it.

    The ``groups`` hold each operator of the graph once and come producers before users.
    """
    home = {node: number for number, group in enumerate(groups) for node in group}
    kernels = {number for number, group in enumerate(groups) if any(node.op.kind > Kind.RESHAPE for node in group)}
    found: dict[int, Copy] = {}
    for number in sorted(kernels):
        users = dict.fromkeys(home[user] for node in groups[number] for user in graph.users[node])
        users.pop(number, None)
        if len(users) > 1 or not graph.output_nodes.isdisjoint(groups[number]):
            for user in users:
                if user in kernels and user not in found:
                    found.update((user, copy) for copy in _between(graph, groups[number], groups[user]))
    return tuple(found.values())


def _between(graph: Graph, producer: Sequence[Node], user: Sequence[Node]) -> Iterator[Copy]:
    """The copy of the first of the values that pass between two groups which is worth it."""
    inside = frozenset(producer)
    homes = inside.union(user)
    for value in dict.fromkeys(arg for node in user for arg in node.args if arg.node in inside):
        region = _region(value, producer)
        if not region:
            continue
        cost, size = _bytes_read(graph, region, inside, frozenset(user)), byte_size(value)
        needed = value.node in graph.output_nodes or any(node not in homes for node in graph.users[value.node])
        saved = size if needed else size * 2
        if is_greater(saved, cost):
            users = tuple(node for node in user if value in node.args)
            message = f"computing {len(region)} operators again moves {human(cost)} instead of {human(saved)}"
            yield Copy(value, region, users, message)
            return


def _region(value: Value, producer: Sequence[Node]) -> tuple[Node, ...]:
    """The cheap operators of a group that make a value, operands first; what is dear among its makers stays outside."""
    inside = frozenset(producer)
    found: set[Node] = set()
    pending = [value.node]
    while pending and len(found) < LONGEST:
        node = pending.pop()
        if node in inside and is_cheap(node):
            found.add(node)
            pending.extend(arg.node for arg in node.args)
    return tuple(node for node in producer if node in found)


def _bytes_read(graph: Graph, region: Sequence[Node], makers: frozenset[Node], user: frozenset[Node]) -> Dim:
    """Bytes that the copy makes the user read, and the producer store, that they did not before."""
    inside = frozenset(region)
    operands = dict.fromkeys(
        arg for node in region for arg in node.args if arg.node not in inside and arg.type.size != 1
    )
    read: Dim = 0
    for value in operands:
        if not any(_reads(node, value) for node in graph.users[value.node] if node in user):
            is_new = value.node in makers and not is_needed_outside(graph, value, makers)
            read = read + byte_size(value) * (1 + is_new)
    return read


def _reads(node: Node, value: Value) -> bool:
    """Whether an operator reads a tensor element by element."""
    places = (place for place, arg in enumerate(node.args) if arg == value)
    return any(spread_of_operand(node, place) is None for place in places)


def moved_bytes(graph: Graph, groups: Iterable[Sequence[Node]]) -> Dim:
    """Bytes that groups of operators read and store when each is a kernel."""
    return total([byte_size(value) for group in groups for value in _boundary(graph, group)])


def _boundary(graph: Graph, group: Sequence[Node]) -> Iterator[Value]:
    """The values that a group reads, and those that others read of it."""
    inside = frozenset(group)
    yield from {arg for node in group for arg in node.args if arg.node not in inside}
    yield from [value for node in group for value in node.outs if is_needed_outside(graph, value, inside)]


def with_copies(graph: Graph, wanted: Sequence[Copy]) -> Graph:
    """The graph in which each copy's users read operators of their own."""
    copy_for = {node: copy for copy in wanted for node in copy.users}
    replaced: Changed = {}
    made: dict[Copy, Value] = {}

    def copied(copy: Copy) -> Value:
        """The copy's value, made when its first user is reached: its operands are there by then."""
        if copy not in made:
            own: dict[Value, Value] = {}
            for node in copy.region:
                operands = tuple(own.get(arg, replaced.get(arg, arg)) for arg in node.args)
                own[node.out] = replace(node, args=operands).out
            made[copy] = own[copy.value]
        return made[copy]

    def rewrite(node: Node, args: tuple[Value, ...]) -> Sequence[Value]:
        copy = copy_for[node]
        own = copied(copy)
        return keep(
            node, tuple(own if old == copy.value else new for old, new in zip(node.args, args, strict=True))
        ).outs

    return with_unique_labels(graph.rebuild(rewrite, copy_for, replaced))
