"""The pass parallel_fusion: small kernels that do not wait for one another become one that computes them side by side.

Before and after::

    a = K(x); b = L(y); return a, b    ==>    a, b = KL(x, y); return a, b

A *stream* is a chain of kernels in which each feeds the next only. Streams that start at one value or end in one operator
form a group. In a group the first kernels of all streams compete: sorted by weight, heaviest first, each takes as many
of its followers as gains (at most seven in all). When no kernel finds company the heaviest leaves its stream; kernels that
found some leave theirs too, and the next ones compete. With ``parallel_ops_level`` above 0 the kernels that are left
and lie at one depth of the graph compete as well.

A kernel whose phases pass sums through shared memory fills its blocks by itself and stays alone on a gpu.

Source: MindSpore's parallel fusion with ``graph_parallel`` as its cost model (:mod:`graphkernel.cluster.parallel_cost`).
MindSpore sorts by weight with an unstable sort; here the order of the graph decides between equal weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from graphkernel.cluster.fuse_nodes import extract, splice, with_unique_labels
from graphkernel.cluster.liveness import is_view
from graphkernel.cluster.maximal_clusters import edges
from graphkernel.cluster.merge_dag import Reach
from graphkernel.cluster.naming import PARALLEL, Names
from graphkernel.cluster.parallel_cost import PARAMETERS, Load, gain, load_of
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import LEAVES, Graph, Node, Value, keep
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.types import Attrs

PASS_NAME = "parallel_fusion"
LARGEST = 7  # kernels in one, as MindSpore registers the pass
BLOCK_FUSION = "block_fusion"

Stream = tuple[Node, ...]


@graph_pass
def parallel_fusion(graph: Graph, context: Context) -> Graph:
    """Joins independent kernels where the cost model sees a gain; the node keeps who computes what, and in how many blocks."""
    refusals: dict[tuple[str, str], str] = {}
    while groups := (chooser := _Chooser(graph, context)).groups():
        graph = _merged(graph, groups, context.options.target)
        refusals.update(chooser.refusals)
    for (subject, other), message in (refusals | chooser.refusals).items():
        context.log.add(PASS_NAME, "not-fused-parallel", subject, other, message)
    return graph


def _merged(graph: Graph, groups: Sequence[tuple[Node, ...]], target: str) -> Graph:
    """The graph in which each group is one kernel, marked for the kernel generator."""
    names, marks = Names.beside(graph), dict[str, Attrs]()

    def named(calls: Graph) -> Graph:
        body = names.named(_flat(calls), PARALLEL)
        marks[body.name] = _marks(calls.outputs, calls.operators, target)
        return body

    merged = extract(graph, groups, named)

    def mark(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        attrs = marks.get(node.body.name) if node.body is not None else None
        return (keep(node, args) if attrs is None else replace(node, args=args, attrs=attrs)).outs

    return merged.rebuild(mark)


def _flat(calls: Graph) -> Graph:
    """The operators of several calls in one body."""

    def inline(node: Node, args: tuple[Value, ...]) -> Sequence[Value]:
        return keep(node, args).outs if node.body is None else splice(node.body, args)

    return with_unique_labels(calls.rebuild(inline))


def _marks(outputs: Iterable[Value], members: Sequence[Node], target: str) -> Attrs:
    """What the kernel generator is told: for each result the member that makes it, and that member's blocks."""
    info = tuple((members.index(value.node), _load(value.node, target).blocks) for value in outputs)
    return Attrs.of(composite_type=PASS_NAME, parallel_fusion_type=BLOCK_FUSION, parallel_dim_info=info)


def _load(node: Node, target: str) -> Load:
    load = load_of(node.body, target) if node.body is not None else None
    assert load is not None, "members have known extents"
    return load


@dataclass
class _Chooser:
    """Finds the groups; a kernel that was taken, or was passed over, does not compete again."""

    graph: Graph
    context: Context
    taken: set[Node] = field(default_factory=set[Node])
    chosen: list[tuple[Node, ...]] = field(default_factory=list[tuple[Node, ...]])
    refusals: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def __post_init__(self) -> None:
        nodes = self.graph.operators
        self.position = {node: number for number, node in enumerate(nodes)}
        self.reach = Reach(len(nodes), edges(nodes))
        self.owner = {number: number for number in range(len(nodes))}
        self.links = _Links(self.graph)
        self.loads = {node: load for node in nodes if (load := self._candidate(node)) is not None}

    def groups(self) -> tuple[tuple[Node, ...], ...]:
        """The kernels that become one each, in graph order."""
        for streams in self.links.stream_groups(self.loads):
            self._compete([stream for stream in streams if not self.taken.intersection(stream)])
        if self.context.options.parallel_ops_level > 0:
            for depth in self._depths():
                self._compete([(node,) for node in depth if node not in self.taken])
        return tuple(self.chosen)

    def _candidate(self, node: Node) -> Load | None:
        if node.body is None:
            return None
        if node.attrs.get("composite_type") == PASS_NAME:
            return None
        if node.body.aliases or (self.context.options.target == "gpu" and _is_stitched(node.body)):
            self.refusals[node.name, ""] = "it writes in place" if node.body.aliases else "its phases share memory"
            return None
        load = load_of(node.body, self.context.options.target)
        if load is None:
            self.refusals[node.name, ""] = "its extents are not known before it runs"
        return load

    def _depths(self) -> Iterator[tuple[Node, ...]]:
        """The kernels that are left, by the number of kernels before them on the longest path."""
        depth: dict[Node, int] = {}
        for node in self.graph.operators:
            before = max((depth[arg.node] for arg in node.args if arg.node in depth), default=0)
            depth[node] = before + (node.body is not None)
        left = [node for node in self.loads if node not in self.taken]
        for level in sorted({depth[node] for node in left}):
            yield tuple(node for node in left if depth[node] == level)

    def _compete(self, streams: Sequence[Stream]) -> None:
        waiting = list(streams)
        while len(waiting) > 1:
            heads = sorted((stream[0] for stream in waiting), key=lambda node: -self._total(node))
            done = self._join(heads) or {heads[0]}
            left = (stream[1:] if stream[0] in done else stream for stream in waiting)
            waiting = [stream for stream in left if stream]

    def _total(self, node: Node) -> float:
        return self.loads[node].block_weight * self.loads[node].blocks

    def _join(self, heads: Sequence[Node]) -> set[Node]:
        """Takes groups among the heads, from the heaviest on; the heads that found company."""
        joined: set[Node] = set()
        for index, head in enumerate(heads):
            if head in joined:
                continue
            others = self._independent(head, [node for node in heads[index + 1 :] if node not in joined])
            count = self._largest(head, others)
            if count:
                members = (head, *others[:count])
                self._merge(members)
                joined.update(members)
        return joined

    def _independent(self, head: Node, others: Sequence[Node]) -> list[Node]:
        """Those that can stand beside the head and each other: no path joins any two."""
        found: list[Node] = []
        for node in others:
            if len(found) < LARGEST - 1 and self._are_independent([head, *found, node]):
                found.append(node)
        return found

    def _are_independent(self, nodes: Sequence[Node]) -> bool:
        numbers = {self.owner[self.position[node]] for node in nodes}
        direct = any(numbers.intersection(self.reach.users(number)) for number in numbers)
        return len(numbers) == len(nodes) and not direct and self.reach.is_acyclic(numbers)

    def _largest(self, head: Node, others: Sequence[Node]) -> int:
        """The largest number of followers that gains, by bisection; 0 when none does."""
        low, high = 0, len(others)
        while low < high:
            middle = (low + high + 1) // 2
            refusal = self._objection([head, *others[:middle]])
            if refusal is None:
                low = middle
            else:
                high = middle - 1
        if others and low == 0:
            self.refusals[head.name, others[0].name] = self._objection([head, others[0]]) or ""
        return low

    def _objection(self, members: Sequence[Node]) -> str | None:
        parameters = len({arg for node in members for arg in node.args}) + sum(len(node.types) for node in members)
        if parameters >= PARAMETERS:
            return f"{parameters} parameters, a launch takes fewer than {PARAMETERS}"
        loads = [self.loads[node] for node in members]
        worth = gain(loads, self.context.options.target)
        return None if worth > 0 else f"{sum(load.blocks for load in loads)} blocks, the gain is {worth:.4g} bytes"

    def _merge(self, members: Sequence[Node]) -> None:
        loads = [self.loads[node] for node in members]
        worth = gain(loads, self.context.options.target)
        for other in members[1:]:
            message = f"{len(members)} kernels, {sum(load.blocks for load in loads)} blocks, gain {worth:.4g} bytes"
            self.context.log.add(PASS_NAME, "fused-parallel", members[0].name, other.name, message)
        numbers = {self.owner[self.position[node]] for node in members}
        merged = self.reach.merge(numbers)
        self.owner.update({number: merged for number, owner in self.owner.items() if owner in numbers})
        self.taken.update(members)
        self.chosen.append(tuple(sorted(members, key=self.position.__getitem__)))


@dataclass
class _Links:
    """Who feeds whom, seen through reshapes, which cost nothing outside of kernels."""

    graph: Graph

    def __post_init__(self) -> None:
        producers: dict[Node, dict[Node, None]] = {}
        users: dict[Node, dict[Node, None]] = {}
        for node in self._real_nodes():
            users.setdefault(node, {})
            producers[node] = {real: None for arg in node.args if (real := _behind_views(arg)).op not in LEAVES}
            for producer in producers[node]:
                users.setdefault(producer, {})[node] = None
        self.producers: Mapping[Node, tuple[Node, ...]] = {node: tuple(found) for node, found in producers.items()}
        self.users: Mapping[Node, tuple[Node, ...]] = {node: tuple(found) for node, found in users.items()}

    def _real_nodes(self) -> Iterator[Node]:
        return (node for node in self.graph.operators if not is_view(node))

    def stream_groups(self, kernels: Mapping[Node, Load]) -> Iterator[tuple[Stream, ...]]:
        """Streams that end in one operator or nowhere, then those that start at one or at none; groups of one are left out."""
        nodes = list(self._real_nodes())
        ends = [node for node in nodes if not self.users[node]]
        starts = [node for node in nodes if not self.producers[node]]
        groups = [
            *([self._backward(producer, kernels) for producer in self.producers[n]] for n in reversed(nodes)
              if len(self.producers[n]) > 1),
            [self._backward(node, kernels) for node in ends],
            *([self._forward(user, kernels) for user in self.users[n]] for n in nodes if len(self.users[n]) > 1),
            [self._forward(node, kernels) for node in starts],
        ]  # fmt: skip
        for group in groups:
            streams = tuple(dict.fromkeys(stream for stream in group if stream))
            if len(streams) > 1:
                yield streams

    def _backward(self, node: Node, kernels: Mapping[Node, Load]) -> Stream:
        """The chain of kernels that ends in the node and in which each feeds only the next, last first."""
        stream: list[Node] = []
        while node in kernels and len(self.users[node]) <= 1:
            stream.append(node)
            if len(self.producers[node]) != 1:
                break
            (node,) = self.producers[node]
        return tuple(stream)

    def _forward(self, node: Node, kernels: Mapping[Node, Load]) -> Stream:
        """The chain of kernels that starts with the node and in which each has one operator before it."""
        stream: list[Node] = []
        while node in kernels and len(self.producers[node]) <= 1:
            stream.append(node)
            if len(self.users[node]) != 1:
                break
            (node,) = self.users[node]
        return tuple(stream)


def _is_stitched(body: Graph) -> bool:
    """Whether later phases of a kernel read a reduction of an earlier one."""
    return any(node.op.kind is Kind.REDUCE and body.users[node] for node in body.operators)


def _behind_views(value: Value) -> Node:
    """The node that really computes a value."""
    node = value.node
    while is_view(node):
        node = node.args[0].node
    return node
