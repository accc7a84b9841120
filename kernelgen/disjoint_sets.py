"""Disjoint sets that grow together (union-find), and those of what needs each other, as both packages need them.

Sources: B. A. Galler, M. J. Fischer, "An improved equivalence algorithm", 1964; paths are shortened by halving. M. Sharir, "A
strong-connectivity algorithm and its applications in data flow analysis", 1981.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class DisjointSets(Generic[T]):
    """Every member is a set of its own until it is joined."""

    def __init__(self) -> None:
        self._above: dict[T, T] = {}

    def of(self, member: T) -> T:
        """The member that stands for the set of this one."""
        above = self._above
        while (next_ := above.get(member, member)) != member:
            above[member] = further = above.get(next_, next_)
            member = further
        return member

    def join(self, kept: T, other: T) -> None:
        """Makes one set of two; what stood for the set of ``kept`` stands for both."""
        first, second = self.of(kept), self.of(other)
        if first != second:
            self._above[second] = first


def components(needed: Mapping[T, Collection[T]]) -> list[list[T]]:
    """The sets of members that need each other, directly or not, each after those whose members it needs."""
    users: dict[T, list[T]] = {member: [] for member in needed}
    for member, others in needed.items():
        for other in others:
            users[other].append(member)
    last_first = reversed(list(_finished(users, users, set())))
    seen: set[T] = set()
    return [list(_finished([member], needed, seen)) for member in last_first if member not in seen]


def _finished(starts: Collection[T], followed: Mapping[T, Collection[T]], seen: set[T]) -> Iterator[T]:
    """What a search from some members reaches and did not see before, each after all that it leads to."""
    for start in starts:
        stack = [] if start in seen else [(start, iter(followed[start]))]
        seen.add(start)
        while stack:
            _, others = stack[-1]
            new = next((other for other in others if other not in seen), None)
            if new is None:
                yield stack.pop()[0]
            else:
                seen.add(new)
                stack.append((new, iter(followed[new])))
