"""Minimum cuts of small directed networks, by shortest augmenting paths.

Source: J. Edmonds and R. Karp, "Theoretical improvements in algorithmic efficiency for network flow problems", 1972.
The networks of :mod:`graphkernel.passes.format.format_cut` have small integer capacities, so the number of paths is at most the
size of the cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Vertex = TypeVar("Vertex", bound=Hashable)

UNLIMITED = 1 << 60


@dataclass
class Network(Generic[Vertex]):
    """Directed edges with capacities; parallel edges add up."""

    _residual: dict[Vertex, dict[Vertex, int]] = field(default_factory=dict["Vertex", "dict[Vertex, int]"])

    def connect(self, tail: Vertex, head: Vertex, capacity: int = UNLIMITED) -> None:
        """An edge from ``tail`` to ``head`` of this ``capacity``; one from a vertex to itself is never cut."""
        if tail != head:
            self._edges(tail)[head] = self._edges(tail).get(head, 0) + capacity
            self._edges(head).setdefault(tail, 0)

    def sink_side(self, source: Vertex, sink: Vertex) -> frozenset[Vertex]:
        """The smaller sink side of a minimum cut: the vertices that can still reach the sink when the flow is largest.

        It is the same for every largest flow. The network is used up; ``ValueError`` when no cut is finite.

        Raises ValueError where edges without limit join source and sink.
        """
        while path := self._shortest_path(source, sink):
            room = min(self._residual[tail][head] for tail, head in path)
            if room >= UNLIMITED:
                raise ValueError(f"edges without limit join {source!r} and {sink!r}")
            for tail, head in path:
                self._residual[tail][head] -= room
                self._residual[head][tail] += room
        return self._reaching(sink)

    def _edges(self, vertex: Vertex) -> dict[Vertex, int]:
        return self._residual.setdefault(vertex, {})

    def _shortest_path(self, source: Vertex, sink: Vertex) -> list[tuple[Vertex, Vertex]]:
        before: dict[Vertex, Vertex] = {source: source}
        queue = deque([source])
        while queue and sink not in before:
            tail = queue.popleft()
            for head, room in self._edges(tail).items():
                if room > 0 and head not in before:
                    before[head] = tail
                    queue.append(head)
        path: list[tuple[Vertex, Vertex]] = []
        head = sink
        while head in before and head != source:
            path.append((before[head], head))
            head = before[head]
        return path

    def _reaching(self, sink: Vertex) -> frozenset[Vertex]:
        found = {sink}
        queue = deque([sink])
        while queue:
            head = queue.popleft()
            for tail in self._edges(head):  # every edge has its reverse
                if self._residual[tail][head] > 0 and tail not in found:
                    found.add(tail)
                    queue.append(tail)
        return frozenset(found)
