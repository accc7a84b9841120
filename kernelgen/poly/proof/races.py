"""Proofs about a grid as it is printed: threads meet at barriers together, and none races another.

meeting   Every thread of a block comes to each barrier, and every lane of a group to each combination, equally often: no
          condition and no bound of a loop around it depends on the thread, or on more than the number of the group.
races     For every buffer that threads share, no two threads touch one element, one of them writing, without a barrier
          between: ``{ a -> b : element(a) = element(b), thread(a) != thread(b) }`` less those pairs of one block for which
          there is a barrier ``s`` with ``time(a) < time(s) < time(b)``, or the other way round, is empty. Threads of
          different blocks have no barrier, and shared memory of their own.
landing   Nobody touches what an asynchronous copy brings before it has landed (:mod:`kernelgen.poly.proof.async_copy_proof`).

Times of two threads may be compared with that of a barrier because all threads of a block go through the loops around the
barrier together, which is what ``meeting`` shows. The checks look at the finished nest alone: how barriers were placed,
how loops were dealt to threads and how buffers found their place plays no part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import islpy as isl

from kernelgen.errors import ProofError, UnsupportedError
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    BLOCK_INDEX,
    THREAD_INDICES,
    AsyncCopy,
    AwaitCopies,
    Combine,
    CommitCopies,
    Grid,
    Nest,
    OfWarp,
    Space,
    Sync,
)
from kernelgen.poly.model.contexts import limited_context
from kernelgen.poly.model.size_products import size_products
from kernelgen.poly.proof.access_times import (
    IN,
    OUT,
    Moment,
    Moments,
    anything,
    apart,
    at_clocks,
    of_block,
    same_element,
)
from kernelgen.poly.proof.async_copy_proof import Landing
from kernelgen.poly.proof.grid_accesses import THREAD, Digits, Site, sites
from kernelgen.poly.proof.happens_before import Order
from kernelgen.poly.proof.linearise_accesses import by_wholes
from kernelgen.poly.proof.schedule_proof import Fact

WARP = 32
"""Threads that go together, on every device: the proof has it of its own, and not from what it checks."""
BLOCK = THREAD.index(BLOCK_INDEX)
OPERATION_LIMIT = 50_000_000  # of isl's elementary operations for one kernel: some seconds
QUOTA = "maximal number of operations exceeded"
"""What isl says when it stops for that."""

STEPS = Sync | CommitCopies | AwaitCopies
"""What all threads of a block come to together, in the same order."""


def prove_races(nest: Nest) -> tuple[Fact, ...]:
    """The facts of every grid. Raises ProofError with a witness, UnsupportedError("budget") when isl takes too long."""
    grids = [part for part in nest.body.statements if isinstance(part, Grid)]
    parameters = {name: f"n_{name}" for name in nest.symbols}
    parameters |= {name: f"product{k}" for k, name in enumerate(size_products(grids, nest.symbols))}
    try:
        with limited_context(OPERATION_LIMIT) as context:
            return tuple(fact for grid in grids for fact in _prover(context, grid, parameters).facts())
    except isl.Error as error:
        if QUOTA not in str(error):
            raise
        message = f"the race check of {nest.name} did not finish within {OPERATION_LIMIT} operations"
        raise UnsupportedError("budget", message) from error


def _prover(context: isl.Context, grid: Grid, parameters: dict[str, str]) -> _Prover:
    found = list(sites(grid, parameters))
    steps = max((len(site.path.time) for site in found if isinstance(site.statement, STEPS)), default=0)
    moments = Moments(context, parameters, steps)
    barriers = [moments.meeting(site) for site in found if isinstance(site.statement, Sync)]
    return _Prover(grid, found, Order(moments, barriers))


@dataclass(frozen=True)
class _Prover:
    grid: Grid
    sites: Sequence[Site]
    order: Order

    def facts(self) -> Iterator[Fact]:
        """What holds of the grid."""
        meetings = [site for site in self.sites if site.buffer is None]
        for site in meetings:
            self.check_meeting(site)
        if meetings:
            yield Fact(
                "meeting", f"{self.grid.name}: {len(meetings)} places", "{ place : its way depends on the thread }"
            )
        by_buffer: dict[str, list[Site]] = {}
        for site in self.sites:
            if site.buffer is not None:
                by_buffer.setdefault(site.buffer.name, []).append(site)
        for name, own in by_buffer.items():
            if any(site.writes for site in own):
                yield from self.facts_of(name, own)

    def facts_of(self, name: str, own: Sequence[Site]) -> Iterator[Fact]:
        """What holds of a buffer that is written to."""
        found = [self.order.moments.access(site, f"A{k}") for k, site in enumerate(by_wholes(own))]
        self.check_races(name, found)
        subject = f"{self.grid.name}: {len(own)} accesses of {name}"
        yield Fact("races", subject, "{ a -> b : same element, other thread, no barrier between }")
        copies = [moment for moment in found if isinstance(moment.site.statement, AsyncCopy) and moment.site.writes]
        if copies:
            Landing.of(self.order, self.sites).check(self.grid.name, name, copies, found)
            yield Fact("landing", subject, "{ copy -> access : same element, not awaited, or no barrier behind that }")

    def check_meeting(self, site: Site) -> None:
        """A barrier wants all threads of the block, a combination its neighbours along the first thread index."""
        x, y = THREAD_INDICES
        several = {x} if self.grid.threads[0] > 1 else set[str]()
        statement = site.statement
        if isinstance(statement, STEPS):
            several |= {y} if self.grid.threads[1] > 1 else set[str]()
        width = statement.width if isinstance(statement, Combine) else WARP if isinstance(statement, OfWarp) else 1
        if self.grid.threads[0] % width:
            raise ProofError("meeting", f"{self.grid.name}: {width} threads of {self.grid.threads[0]} meet")
        alike = {f"{x}/{group}" for group in range(width, self.grid.threads[0] + 1, width)} if width > 1 else set[str]()
        reasons = sorted(each for each in site.path.divergence - alike if each.partition("/")[0] in several)
        if reasons:
            what = type(statement).__name__
            raise ProofError("meeting", f"{self.grid.name}: whether a thread comes to a {what} depends on {reasons}")

    def check_races(self, name: str, moments: Sequence[Moment]) -> None:
        """No two accesses of the buffer race."""
        axes = [THREAD.index(axis) for axis, n in zip(THREAD_INDICES, self.grid.threads, strict=True) if n > 1]
        for a, b in combinations_with_replacement(moments, 2):
            if not (a.site.writes or b.site.writes):
                continue
            if a.site.buffer is not None and a.site.buffer.space is not Space.SHARED:
                self.require_empty(name, "of two blocks", _meeting(a, b, apart(a, b, [BLOCK])))
            clocks = self.order.apart(a, b)
            if not axes or clocks.is_empty():
                continue
            together = _meeting(a, b, of_block(a, b).intersect(apart(a, b, axes)))
            if self.order.barriers and not together.is_empty():
                together = together.intersect(at_clocks(a, b, clocks))
            self.require_empty(name, "of one block", together)

    def require_empty(self, buffer: str, whose: str, races: isl.Map) -> None:
        """Raises ProofError for a race."""
        if not races.is_empty():
            threads = f"[{', '.join(THREAD)}, ...]"
            message = f"{self.grid.name}: two threads {whose} touch one element of {buffer}, {threads}: {races}"
            raise ProofError("races", message, str(races.sample()))


def _meeting(a: Moment, b: Moment, whose: isl.Map) -> isl.Map:
    """``{ a -> b : element(a) = element(b), threads as given }``."""
    found = same_element(a, b).intersect(whose)
    for left, right in _alike(a, b):
        found = found.subtract(_torn(a, b, left, right))
    return found


def _alike(a: Moment, b: Moment) -> Iterator[tuple[Digits, Digits]]:
    """Numbers on both ways that are split by the same radices, where isl does not know what that means."""
    return ((left, right) for left in _unsaid(a) for right in _unsaid(b) if left.radices == right.radices)


def _unsaid(moment: Moment) -> Iterator[Digits]:
    known = set(moment.dims)
    return (
        each
        for each in moment.site.path.digits
        if not each.is_said and known.issuperset((each.whole, *each.names, *_starts(each, moment)))
    )


def _starts(digits: Digits, moment: Moment) -> frozenset[str]:
    """The variables that say where the digits start; sizes are the same everywhere."""
    found = {name for radix in digits.radices for name in ix.variables(radix.start)}
    return frozenset(found.intersection(moment.site.path.dims))


def _torn(a: Moment, b: Moment, left: Digits, right: Digits) -> isl.Map:
    """``{ a -> b : equal digits from equal starts, of different numbers }``: there are none."""
    equal = anything(a, b)
    starts = sorted(_starts(left, a) | _starts(right, b))
    for name, other in (*zip(left.names, right.names, strict=True), *zip(starts, starts, strict=True)):
        equal = equal.equate(IN, a.dims.index(name), OUT, b.dims.index(other))
    wholes = (IN, a.dims.index(left.whole), OUT, b.dims.index(right.whole))
    return equal.order_lt(*wholes).union(equal.order_gt(*wholes))
