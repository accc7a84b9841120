"""What a page tells beside the entries of a report: the graphs before and after, what became of what, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from graphkernel.decisions import Decision
from graphkernel.ops.library.host import operator_name
from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.constant_data import ConstantData
from kernelgen.tensor.graph import Graph, Node, Value, keep
from kernelgen.tensor.origin import made_of


@dataclass(frozen=True)
class Came:
    """The graph as it came, and every decision that was taken on it."""

    graph: Graph
    decisions: tuple[Decision, ...]


def without_weights(graph: Graph) -> Graph:
    """The graph without the content of its constants: what is told of it must not hold its weights."""
    made: dict[Node, Node] = {}
    for node in graph.nodes:
        args = tuple(Value(made[arg.node], arg.index) for arg in node.args)
        data = node.data if node.data is None else ConstantData(node.data.digest, None)
        made[node] = keep(node, args) if data is None else replace(node, data=data)
    inputs, outputs = (tuple(Value(made[v.node], v.index) for v in values) for values in (graph.inputs, graph.outputs))
    return replace(graph, inputs=inputs, outputs=outputs)


@dataclass(frozen=True)
class StoryStep:
    """One step of a run: its name, the library or kernel that runs it, and the nodes that it stands for."""

    name: str
    runner: str
    nodes: tuple[Node, ...]

    @property
    def kernel(self) -> str:
        """The kernel's name; empty for a step of a library."""
        body = self.nodes[0].body if self.nodes else None
        return "" if body is None else body.name

    @cached_property
    def operators(self) -> tuple[Node, ...]:
        """The operators that it computes."""
        return tuple(inner for node in self.nodes for inner in (node.body.operators if node.body else (node,)))


@dataclass(frozen=True)
class Story:
    """The graph as it came, the one that runs, its steps in order, the decisions, and the source of each kernel by name."""

    before: Graph
    after: Graph
    steps: tuple[StoryStep, ...]
    decisions: tuple[Decision, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def titles(self) -> Mapping[Node, str]:
        """What every operator of the graph as it came is called in the model: ours is, where a node there became several."""
        made = Counter(self.before.origins.get(node.name) for node in self.before.operators)
        origins = {node: self.before.origins.get(node.name) for node in self.before.operators}
        return {
            node: origin.operator if origin is not None and made[origin] == 1 else operator_name(node)
            for node, origin in origins.items()
        }

    @cached_property
    def became(self) -> Mapping[Node, tuple[int, ...]]:
        """For every operator of the graph as it came the steps that compute what was made from it."""
        made = made_of(self.before, (operator for step in self.steps for operator in step.operators))
        found: dict[Node, dict[int, None]] = {node: {} for node in self.before.operators}
        for number, step in enumerate(self.steps):
            for operator in step.operators:
                for origin in made[operator]:
                    found[origin][number] = None
        return {node: tuple(steps) for node, steps in found.items()}

    @cached_property
    def came_from(self) -> Sequence[tuple[Node, ...]]:
        """For every step the operators of the graph as it came, in their order."""
        inside: list[list[Node]] = [[] for _ in self.steps]
        for node, steps in self.became.items():
            for number in steps:
                inside[number].append(node)
        return tuple(map(tuple, inside))

    @cached_property
    def reasons(self) -> Sequence[tuple[Decision, ...]]:
        """For every step the decisions about its operators, and about those that they came from."""
        about: dict[str, list[Decision]] = {}
        for decision in self.decisions:
            for label in dict.fromkeys(filter(None, (decision.subject, decision.other))):
                about.setdefault(label, []).append(decision)
        return tuple(
            tuple(dict.fromkeys(decision for label in self._labels(number) for decision in about.get(label, ())))
            for number in range(len(self.steps))
        )

    def _labels(self, number: int) -> Iterable[str]:
        step = self.steps[number]
        named = (*step.nodes, *step.operators, *self.came_from[number])
        return dict.fromkeys((step.name, step.kernel, *(node.name for node in named)))

    @cached_property
    def step_of(self) -> Mapping[Node, int]:
        """The step that each node of the graph that runs is in; views and arithmetic on shapes are in none."""
        return {node: number for number, step in enumerate(self.steps) for node in step.nodes}

    @cached_property
    def written(self) -> Sequence[tuple[Value, ...]]:
        """For every step the results that another step, or whoever calls, reads."""
        read = set(self.after.outputs)
        for node in self.after.operators:
            own = self.step_of.get(node, -1)
            read.update(arg for arg in node.args if self.step_of.get(arg.node) != own)
        results = ([out for node in step.nodes for out in node.outs] for step in self.steps)
        return tuple(tuple(filter(read.__contains__, outs)) for outs in results)

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Pairs of steps of which the second reads what the first makes; views and arithmetic on shapes lie between."""
        made: dict[Node, frozenset[int]] = {}
        found: dict[tuple[int, int], None] = {}
        for node in self.after.nodes:
            sources = frozenset[int]().union(*(made[arg.node] for arg in node.args))
            own = self.step_of.get(node)
            if own is not None:
                found.update(((source, own), None) for source in sorted(sources) if source != own)
            made[node] = sources if own is None else frozenset({own})
        return tuple(found)
