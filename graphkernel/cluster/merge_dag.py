"""A directed acyclic graph whose nodes merge, and the question whether a merge would close a cycle.

Nodes are integers that carry a rank: producers rank lower than users. A path between two nodes only runs through ranks
between theirs, so a check walks that window and nothing else, from both sides at once. A merge re-ranks only the ancestors
and descendants inside its window. Source: D. J. Pearce, P. H. J. Kelly, "A dynamic topological sort algorithm for directed
acyclic graphs", JEA 11 (2006); the boolean closure matrix of MindSpore's split model answers the same question in
quadratic memory.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Iterator, Mapping

Adjacency = dict[int, dict[int, None]]


class Reach:
    """Nodes ``0 .. count-1`` in topological order, and edges ``(producer, user)`` between them.

    A merged set is called by one of its members (its representative); the others cease to exist.
    """

    def __init__(self, count: int, edges: Iterable[tuple[int, int]]) -> None:
        self._rank = {node: node for node in range(count)}
        self._users: Adjacency = {node: {} for node in range(count)}
        self._producers: Adjacency = {node: {} for node in range(count)}
        for producer, user in edges:
            if producer >= user:
                raise ValueError(f"edge {producer} -> {user} is against the topological order")
            self._users[producer][user] = None
            self._producers[user][producer] = None

    @property
    def nodes(self) -> tuple[int, ...]:
        """The representatives, in a topological order."""
        return tuple(sorted(self._rank, key=self._rank.__getitem__))

    def users(self, node: int) -> tuple[int, ...]:
        """The direct users, producers before users."""
        return tuple(sorted(self._users[node], key=self._rank.__getitem__))

    def producers(self, node: int) -> tuple[int, ...]:
        """The direct producers, producers before users."""
        return tuple(sorted(self._producers[node], key=self._rank.__getitem__))

    def is_acyclic(self, members: Collection[int]) -> bool:
        """True when the members can merge: no path leaves the set and comes back.

        The users of the members and their producers are searched in turn, edge by edge, and the search that ends first
        decides: a value with ten thousand users costs no more than what is on the other side.
        """
        ranks = [self._rank[node] for node in members]
        if len(ranks) < 2:
            return True
        inside = frozenset(members)
        first, last = min(ranks), max(ranks)
        forward = self._search(inside, self._users, first, last)
        backward = self._search(inside, self._producers, first, last)
        return not any(map(operator.or_, forward, backward))

    def _search(
        self, inside: frozenset[int], table: Mapping[int, Iterable[int]], first: int, last: int
    ) -> Iterator[bool]:
        """Walks from the members outwards, an edge for each step; gives True when it comes back to a member."""
        seen: set[int] = set()
        pending = list(inside)
        while pending:
            node = pending.pop()
            for neighbour in table[node]:
                if neighbour in inside:
                    yield node not in inside
                elif neighbour not in seen and first < self._rank[neighbour] < last:
                    seen.add(neighbour)
                    pending.append(neighbour)
                    yield False
                else:
                    yield False

    def user_count(self, node: int) -> int:
        """The number of direct users."""
        return len(self._users[node])

    def neighbours(self, node: int) -> tuple[int, ...]:
        """The direct producers and users, in no particular order."""
        return (*self._producers[node], *self._users[node])

    def representative(self, members: Collection[int]) -> int:
        """The member that :meth:`merge` would leave: the one with most links, so that few of them move."""
        return max(sorted(members), key=lambda node: len(self._producers[node]) + len(self._users[node]))

    def merge(self, members: Collection[int]) -> int:
        """Makes the members one node and returns its representative; the caller has asked :meth:`is_acyclic`."""
        inside = set(members)
        merged = self.representative(inside)
        self._rerank(inside, merged)
        for table, opposite in ((self._users, self._producers), (self._producers, self._users)):
            for node in sorted(inside - {merged}):
                for neighbour in table.pop(node):
                    if neighbour not in inside:
                        del opposite[neighbour][node]
                        opposite[neighbour][merged] = None
                        table[merged][neighbour] = None
            for node in inside:
                table[merged].pop(node, None)
        return merged

    def _rerank(self, inside: set[int], merged: int) -> None:
        """Ancestors in the window move before the merged node, descendants behind it; nobody else moves."""
        ranks = [self._rank[node] for node in inside]
        first, last = min(ranks), max(ranks)
        before = self._window(inside, self._producers, first, last)
        after = self._window(inside, self._users, first, last)
        slots = sorted([*ranks, *(self._rank[node] for node in before + after)])
        for node in inside:
            del self._rank[node]
        leading, trailing = slots[: len(before)], slots[len(slots) - len(after) :]
        self._rank.update(zip(before, leading, strict=True))
        self._rank[merged] = slots[len(before)]
        self._rank.update(zip(after, trailing, strict=True))

    def _window(self, inside: set[int], table: Mapping[int, Iterable[int]], first: int, last: int) -> list[int]:
        """What is reached from the set along ``table`` within the ranks ``first .. last``, by rank."""
        seen: set[int] = set()
        pending = [neighbour for node in inside for neighbour in table[node]]
        while pending:
            node = pending.pop()
            if node not in inside and node not in seen and first <= self._rank[node] <= last:
                seen.add(node)
                pending.extend(table[node])
        return sorted(seen, key=self._rank.__getitem__)
