"""The loop that grows areas: a pattern proposes, the engine checks cycles, limits and cost, and merges.

Patterns run in the order of the split model; when all have run and something merged, they run again, until a whole
round merges nothing (MindSpore's model visits each pattern once). Every merge, and every dependence that is left between
two areas at the end, is recorded with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from graphkernel.cluster.area import Area, FusionPattern
from graphkernel.cluster.cost import Objection, figures, human, is_greater, objection, too_large, traffic_saved
from graphkernel.cluster.partition import Partition
from graphkernel.cluster.split_models import Limits
from graphkernel.decisions import Decision, DecisionLog
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.operator import Kind

PASS_NAME = "graph_kernel_splitter"
CYCLE = Objection("not-fused-cycle", "an operator outside needs one of them and is needed by the other")


def grow(
    graph: Graph, patterns: Sequence[FusionPattern], limits: Limits, section: tuple[Node, ...] | None = None
) -> Growth:
    """The areas of a cluster's body, the ``graph``, or of a ``section`` of it, after fusion, and why they are so.

    ``patterns`` take turns in their order, within ``limits``.
    """
    growth = Growth(Partition(graph, section), limits)
    able = [pattern for pattern in patterns if growth.partition.holds(pattern)]
    while growth.round(able):
        pass
    return growth


@dataclass
class Growth:
    """Areas that grow; what was decided is put into words when it is asked for, since a growth may be tried in vain."""

    partition: Partition
    limits: Limits
    merged: list[tuple[FusionPattern, Area, Sequence[Area]]] = field(default_factory=list)
    """Each pattern that merged an area with others, in order."""
    objections: dict[tuple[int, int], Objection] = field(default_factory=dict)
    merges: int = 0
    idle: dict[tuple[str, int], int] = field(default_factory=dict)
    """After how many merges a pattern wanted nothing for an area: it wants nothing until the next one."""

    @property
    def areas(self) -> tuple[Area, ...]:
        """The areas, producers before users."""
        return self.partition.areas

    def decisions(self, disabled: Sequence[FusionPattern] = ()) -> DecisionLog:
        """Every merge, and every dependence that is left.

        ``disabled`` patterns never merge; where one would have, the log says so.
        """
        log = DecisionLog()
        for pattern, area, others in self.merged:
            message = f"{pattern.name}: {figures(self.partition.graph, [area, *others])}"
            for other in others:
                subject, user = _ends(area, other)
                log.add(PASS_NAME, "fused-pattern", subject.name, user.name, message)
        self.record_what_stays_apart(log, disabled)
        return log

    def round(self, patterns: Sequence[FusionPattern]) -> bool:
        """Each pattern on each area as long as it fits; True when something merged."""
        self.objections.clear()
        before = self.merges
        for pattern in patterns:
            if self.partition.is_one:
                break
            if self.partition.kinds.isdisjoint(pattern.kinds):
                continue
            for number in [area.number for area in self.partition.areas]:
                area = self.partition.area(number)
                while area is not None and pattern.grows(area) and not self.is_idle(pattern, area):
                    area = self.apply(pattern, area)
        return self.merges > before

    def is_idle(self, pattern: FusionPattern, area: Area) -> bool:
        """Whether a ``pattern`` wanted nothing for an ``area``, and nothing merged since."""
        return self.idle.get((pattern.name, area.number)) == self.merges

    def apply(self, pattern: FusionPattern, area: Area) -> Area | None:
        """The area after the merges that the pattern wants and that are allowed; None when there is none."""
        wanted = list(pattern.propose(area, self.limits))
        if not wanted:
            self.idle[pattern.name, area.number] = self.merges
            return None
        if pattern.whole:
            return self.attempt(pattern, area, wanted)
        result: Area | None = None
        for other in sorted(wanted, key=lambda other: other.size) if len(wanted) > 1 else wanted:
            living = self.partition.area(other.number)
            if living is not None:
                result = self.attempt(pattern, result or area, [living]) or result
        return result

    def attempt(self, pattern: FusionPattern, area: Area, others: Sequence[Area]) -> Area | None:
        """Merges if no cycle closes and nothing speaks against it."""
        together = [area, *others]
        found = self.obstacle(together) or self.rival(together)
        if found is not None:
            for other in others:
                self.objections[area.number, other.number] = found
            return None
        self.merged.append((pattern, area, others))
        self.merges += 1
        return self.partition.merge(together)

    def obstacle(self, areas: Sequence[Area]) -> Objection | None:
        """A limit, a cycle or a cost."""
        if (found := too_large(areas, self.limits)) is not None:
            return found
        if not self.partition.is_acyclic(areas):
            return CYCLE
        return objection(self.partition.graph, areas, self.limits)

    def rival(self, areas: Sequence[Area]) -> Objection | None:
        """A reduction over another space that a pointwise area should rather join than the reduction among the areas."""
        chosen = next((area for area in areas if area.kind is Kind.REDUCE), None)
        if chosen is None:
            return None
        for area in (area for area in areas if area.kind < Kind.REDUCE):
            here = traffic_saved(self.partition.graph, [area, chosen])
            for link in (*area.inputs, *area.users):
                if link.area.kind is not Kind.REDUCE or link.area.spaces == chosen.spaces:
                    continue
                there = traffic_saved(self.partition.graph, [area, link.area])
                if is_greater(there, here) and self.obstacle([area, link.area]) is None:
                    spaces = ", ".join(sorted(map(str, link.area.spaces)))
                    message = f"joining the reduction over {spaces} saves {human(there)}, this one {human(here)}"
                    return Objection("not-fused-cost", message)
        return None

    def record_what_stays_apart(self, log: DecisionLog, disabled: Sequence[FusionPattern]) -> None:
        """One decision for each dependence between two areas that did not merge."""
        for area in self.partition.areas:
            for pattern in disabled:
                for other in pattern.propose(area, self.limits):
                    switched_off = Objection("not-fused-pattern-disabled", f"{pattern.name} is switched off")
                    self.objections.setdefault((area.number, other.number), switched_off)
        for area in self.partition.areas:
            for link in area.users:
                producer, user = _ends(area, link.area)
                found = self.objection_between(area, link.area)
                message = f"{found.message}; merging {figures(self.partition.graph, (area, link.area))}"
                log.add(PASS_NAME, found.code, producer.name, user.name, message)

    def objection_between(self, producer: Area, user: Area) -> Objection:
        """What was objected in the last round, whichever side proposed; else that nobody proposed."""
        for pair in ((producer.number, user.number), (user.number, producer.number)):
            if pair in self.objections:
                return self.objections[pair]
        return _no_pattern(producer, user)


def decisions_between(graph: Graph, groups: Sequence[Sequence[Node]], home: Mapping[Node, int]) -> Iterator[Decision]:
    """One decision for each dependence between two ``groups`` of operators, areas of a ``graph``, whose ``home`` differs."""
    partition = Partition(graph)
    number = {node: place for place, node in enumerate(graph.operators)}
    for group in groups:
        partition.merge([area for node in group if (area := partition.area(number[node])) is not None])
    for area in partition.areas:
        for link in area.users:
            if home[area.nodes[0]] != home[link.area.nodes[0]]:
                producer, user = _ends(area, link.area)
                is_acyclic = partition.is_acyclic((area, link.area))
                found = _no_pattern(area, link.area) if is_acyclic else CYCLE
                message = f"{found.message}; merging {figures(graph, (area, link.area))}"
                yield Decision(PASS_NAME, found.code, producer.name, user.name, message)


def _no_pattern(producer: Area, user: Area) -> Objection:
    left, right = (f"{area.kind.name} of {area.elements} elements" for area in (producer, user))
    if producer.spaces and user.spaces and producer.spaces != user.spaces:
        spaces = " and ".join(", ".join(sorted(map(str, area.spaces))) for area in (producer, user))
        return Objection("not-fused-space", f"reductions over {spaces} do not share their rows")
    return Objection("not-fused-pattern", f"no pattern joins {left} to {right}")


def _ends(left: Area, right: Area) -> tuple[Node, Node]:
    """The first dependence between two areas, producer first; for siblings their last operators."""
    for producers, users in ((left, right), (right, left)):
        inside = set(producers.nodes)
        passed = {value for value in users.operands if value.node in inside}
        for node in users.nodes if passed else ():
            for arg in node.args:
                if arg in passed:
                    return arg.node, node
    return left.nodes[-1], right.nodes[-1]
