"""Disjoint sets that grow together (union-find), as both packages need them on the way to a kernel.

Source: B. A. Galler, M. J. Fischer, "An improved equivalence algorithm", 1964; paths are shortened by halving.
"""

from __future__ import annotations

from collections.abc import Hashable
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
