"""Proof that nobody touches what an asynchronous copy brings before it has landed.

A thread's copies belong to the group that its next ``commit`` closes; ``await p`` waits for all but its last ``p`` groups.
So a copy has landed at an ``await p`` with at least ``p + 1`` commits between the two, for its own thread; for the others
behind the next barrier after that:

    landed  { copy -> access : copy < commit 1 < ... < commit p + 1 < await p < access }              of one thread
            { copy -> access : copy < commit 1 < ... < commit p + 1 < await p < barrier < access }    of two threads

What touches the same element, not before the copy, is inside of ``landed``. All threads of a block commit and await alike,
which ``meeting`` shows (:mod:`kernelgen.poly.proof.races`), so that clocks alone say who is when. What no barrier orders, and
what is before the copy, is a matter of races.
Source: PTX ISA, "cp.async.commit_group" and "cp.async.wait_group".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from kernelgen.errors import ProofError
from kernelgen.nest.nodes import AwaitCopies, CommitCopies
from kernelgen.poly.proof.access_times import Meeting, Moment, apart, at_clocks, of_block, same_element
from kernelgen.poly.proof.grid_accesses import THREAD, Site
from kernelgen.poly.proof.happens_before import Order

X, Y = 1, 2
"""The axes of a thread in its block."""


@dataclass(frozen=True)
class Landing:
    """The check for one grid, with its commits and awaits."""

    order: Order
    commits: Sequence[Meeting]
    waits: Sequence[Meeting]

    @staticmethod
    def of(order: Order, sites: Sequence[Site]) -> Landing:
        """For the sites of the grid."""
        commits, waits = (
            [order.moments.meeting(site) for site in sites if isinstance(site.statement, kind)]
            for kind in (CommitCopies, AwaitCopies)
        )
        return Landing(order, commits, waits)

    def check(self, grid: str, buffer: str, copies: Sequence[Moment], accesses: Sequence[Moment]) -> None:
        """Raises ProofError when an access of a ``buffer`` may come before a copy to its place has landed.

        ``copies`` are the asynchronous ones into it, ``accesses`` all others; ``grid`` and ``buffer`` are names, for
        the message.
        """
        for copy in copies:
            awaited = [self.awaited(copy.clock, each) for each in self.waits]
            for access in accesses:
                for whose, early in self.too_early(copy, access, awaited):
                    if not early.is_empty():
                        threads = f"[{', '.join(THREAD)}, ...]"
                        message = f"{grid}: {whose} touches {buffer} before a copy has landed, {threads}: {early}"
                        raise ProofError("landing", message, str(early.sample()))

    def awaited(self, copies: isl.Set, wait: Meeting) -> isl.Map:
        """``{ copy -> await : enough commits between }``."""
        assert isinstance(wait.site.statement, AwaitCopies)
        behind = [self.order.moments.earlier(copies, commit.clock) for commit in self.commits]
        for _ in range(wait.site.statement.pending):
            behind = [self.through(behind, self.commits, commit.clock) for commit in self.commits]
        return self.through(behind, self.commits, wait.clock)

    def through(self, ways: Sequence[isl.Map], steps: Sequence[Meeting], to: isl.Set) -> isl.Map:
        """The ways to each of the steps, continued to what is later."""
        found = (way.apply_range(self.order.later(step, to)) for way, step in zip(ways, steps, strict=True))
        return reduce(isl.Map.union, found, self.order.moments.nothing())

    def too_early(self, copy: Moment, access: Moment, awaited: Sequence[isl.Map]) -> Iterator[tuple[str, isl.Map]]:
        """Pairs of one element that are not landed: of one thread, of two threads."""
        moments, barriers = self.order.moments, self.order.barriers
        before = moments.earlier(access.clock, copy.clock).reverse()
        after = moments.same_steps(0).intersect_domain(copy.clock).intersect_range(access.clock).subtract(before)
        own = after.subtract(self.through(awaited, self.waits, access.clock))
        if not own.is_empty():
            of_thread = _meeting(copy, access, own, of_block(copy, access, (X, Y)))
            is_itself = isl.Map.identity(of_thread.get_space()) if copy is access else None
            yield "the thread itself", of_thread.subtract(is_itself) if is_itself is not None else of_thread
        past = [self.through(awaited, self.waits, barrier.clock) for barrier in barriers]
        others = after.subtract(self.through(past, barriers, access.clock)).subtract(self.order.apart(copy, access))
        if not others.is_empty():
            differ = of_block(copy, access).intersect(apart(copy, access, (X, Y)))
            yield "another thread", _meeting(copy, access, others, differ)


def _meeting(copy: Moment, access: Moment, clocks: isl.Map, whose: isl.Map) -> isl.Map:
    """``{ copy -> access : the same element, clocks and threads as given }``."""
    return whose.intersect(at_clocks(copy, access, clocks)).intersect(same_element(copy, access))
