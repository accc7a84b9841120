"""What the barriers of a grid order: relations between the clocks of accesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from kernelgen.poly.proof.access_times import Meeting, Moment, Moments


@dataclass(frozen=True)
class Order:
    """The barriers of a grid."""

    moments: Moments
    barriers: Sequence[Meeting]

    def apart(self, a: Moment, b: Moment) -> isl.Map:
        """``{ t -> u }``: the clocks of both, in one block, without a barrier between."""
        found = self.moments.same_steps(0).intersect_domain(a.clock).intersect_range(b.clock)
        for barrier in self.barriers:
            if found.is_empty():
                break
            found = found.subtract(self.between(a.clock, barrier, b.clock))
            found = found.subtract(self.between(b.clock, barrier, a.clock).reverse())
        return found

    def between(self, first: isl.Set, barrier: Meeting, second: isl.Set) -> isl.Map:
        """``{ t -> u : there is a barrier s of the same block with t < s < u }``.

        Where isl cannot say whether it is there, one of the two has to make sure of it.
        """
        earlier, needs, clock = self.moments.earlier, barrier.site.path.needs, barrier.clock
        before, behind = earlier(first, clock), earlier(clock, second)
        if not needs.after:
            return before.apply_range(behind)
        known = before.apply_range(self.later(barrier, second))
        return known.union(earlier(first, clock, needs.after).apply_range(behind))

    def later(self, step: Meeting, to: isl.Set) -> isl.Map:
        """``{ s -> u : s < u }``, where ``u`` makes sure of the step."""
        return self.moments.earlier(step.clock, to, step.site.path.needs.before)
