"""Proofs about a grid as it is printed: threads meet at barriers together, and none races another.

meeting   Every thread of a block comes to each barrier, and every lane of a group to each combination, equally often: no
          condition and no bound of a loop around it depends on the thread.
races     For every buffer that threads share, no two threads touch one element, one of them writing, without a barrier
          between: ``{ a -> b : element(a) = element(b), thread(a) != thread(b) }`` less those pairs of one block for which
          there is a barrier ``s`` with ``time(a) < time(s) < time(b)``, or the other way round, is empty. Threads of
          different blocks have no barrier, and shared memory of their own.

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
from kernelgen.nest.nodes import (
    BLOCK_INDEX,
    THREAD_INDICES,
    Combine,
    Grid,
    Nest,
    OfWarp,
    Space,
    Statement,
    Sync,
)
from kernelgen.poly.proof import Fact
from kernelgen.poly.sites import THREAD, Digits, Path, Site, sites

WARP = 32
OPERATION_LIMIT = 50_000_000  # of isl's elementary operations for one kernel: some seconds


def prove_races(nest: Nest) -> tuple[Fact, ...]:
    """The facts of every grid. Raises ProofError with a witness, UnsupportedError("budget") when isl takes too long."""
    context = isl.Context()
    context.set_max_operations(OPERATION_LIMIT)
    try:
        parameters = {name: f"n_{name}" for name in nest.symbols}
        grids = [part for part in nest.body.statements if isinstance(part, Grid)]
        return tuple(fact for grid in grids for fact in _Prover(context, grid, parameters).facts())
    except isl.Error as error:
        message = f"the race check of {nest.name} did not finish within {OPERATION_LIMIT} operations"
        raise UnsupportedError("budget", message) from error
    finally:
        context.set_max_operations(0)


@dataclass(frozen=True)
class _Moment:
    """A site in isl: ``{ A[dims] }``, ``{ A[dims] -> time }`` and ``{ A[dims] -> buffer[element] }``."""

    site: Site
    domain: isl.Set
    time: isl.Map
    element: isl.Map | None


@dataclass(frozen=True)
class _Prover:
    context: isl.Context
    grid: Grid
    parameters: dict[str, str]

    def facts(self) -> Iterator[Fact]:
        """What holds of the grid."""
        found = list(sites(self.grid, self.parameters))
        meetings = [
            site for site in found if isinstance(site.statement, Sync | Combine | OfWarp) and site.buffer is None
        ]
        for site in meetings:
            self.check_meeting(site)
        if meetings:
            yield Fact(
                "meeting", f"{self.grid.name}: {len(meetings)} places", "{ place : its way depends on the thread }"
            )
        depth = max((len(site.path.time) for site in found), default=0)
        barriers = [self.moment(s, f"S{k}", depth) for k, s in enumerate(found) if isinstance(s.statement, Sync)]
        by_buffer: dict[str, list[Site]] = {}
        for site in found:
            if site.buffer is not None:
                by_buffer.setdefault(site.buffer.name, []).append(site)
        for name, own in by_buffer.items():
            if any(site.writes for site in own):
                self.check_races(name, [self.moment(s, f"A{k}", depth) for k, s in enumerate(own)], barriers)
                subject = f"{self.grid.name}: {len(own)} accesses of {name}"
                yield Fact("races", subject, "{ a -> b : same element, other thread, no barrier between }")

    def check_meeting(self, site: Site) -> None:
        """A barrier wants all threads of the block, a combination its neighbours along the first thread index."""
        x, y = THREAD_INDICES
        several = {x} if self.grid.threads[0] > 1 else set[str]()
        statement: Statement = site.statement
        if isinstance(statement, Sync):
            several |= {y} if self.grid.threads[1] > 1 else set[str]()
        width = statement.width if isinstance(statement, Combine) else WARP if isinstance(statement, OfWarp) else 1
        if self.grid.threads[0] % width:
            raise ProofError("meeting", f"{self.grid.name}: {width} threads of {self.grid.threads[0]} meet")
        reasons = sorted(several & site.path.divergence)
        if reasons:
            what = type(statement).__name__
            raise ProofError("meeting", f"{self.grid.name}: whether a thread comes to a {what} depends on {reasons}")

    def check_races(self, name: str, moments: Sequence[_Moment], barriers: Sequence[_Moment]) -> None:
        """No two accesses of the buffer race."""
        for a, b in combinations_with_replacement(moments, 2):
            if not (a.site.writes or b.site.writes):
                continue
            assert a.element is not None
            assert b.element is not None
            meeting = a.element.apply_range(b.element.reverse())
            for digits in _alike(a.site.path, b.site.path):
                meeting = meeting.subtract(self.torn(a, b, digits))
            if a.site.buffer is not None and a.site.buffer.space is not Space.SHARED:
                apart = meeting.intersect(self.pairs(a, b, f"{BLOCK_INDEX} != {BLOCK_INDEX}p"))
                self.require_empty(name, "of two blocks", apart)
            x, y = THREAD_INDICES
            same_block = f"{BLOCK_INDEX} = {BLOCK_INDEX}p and ({x} != {x}p or {y} != {y}p)"
            together = meeting.intersect(self.pairs(a, b, same_block))
            for barrier in barriers:
                if together.is_empty():
                    break
                together = together.subtract(self.between(a, barrier, b))
                together = together.subtract(self.between(b, barrier, a).reverse())
            self.require_empty(name, "of one block", together)

    def between(self, first: _Moment, barrier: _Moment, second: _Moment) -> isl.Map:
        """``{ a -> b : there is a barrier s of the same block with time(a) < time(s) < time(b) }``."""
        before = self.earlier(first, barrier)
        return before.apply_range(self.earlier(barrier, second))

    def earlier(self, first: _Moment, second: _Moment) -> isl.Map:
        """``{ a -> s : same block, time(a) < time(s) }``; of a barrier the first thread's coming counts for all."""
        order = first.time.lex_lt_map(second.time)
        same = order.intersect(self.pairs(first, second, f"{BLOCK_INDEX} = {BLOCK_INDEX}p"))
        return same.intersect_domain(first.domain).intersect_range(second.domain)

    def torn(self, a: _Moment, b: _Moment, digits: tuple[Digits, Digits]) -> isl.Map:
        """``{ a -> b : equal digits of different numbers }``: there are none."""
        left, right = digits
        equal = " and ".join(f"{d} = {e}p" for d, e in zip(left.names, right.names, strict=True))
        return self.pairs(a, b, f"{equal} and {left.whole} != {right.whole}p")

    def pairs(self, a: _Moment, b: _Moment, condition: str) -> isl.Map:
        """``{ a -> b : condition }``; names of ``b`` have a p behind them."""
        left, right = a.domain.get_tuple_name(), b.domain.get_tuple_name()
        theirs = ", ".join(f"{name}p" for name in b.site.path.dims)
        text = f"{{ {left}[{', '.join(a.site.path.dims)}] -> {right}[{theirs}] : {condition} }}"
        return isl.Map.read_from_str(self.context, text)

    def moment(self, site: Site, name: str, depth: int) -> _Moment:
        """A site in isl."""
        path = site.path
        dims = f"{name}[{', '.join(path.dims)}]"
        conditions = list(path.conditions)
        if site.buffer is None:
            conditions += [f"{index} = 0" for index in THREAD_INDICES]
        header = f"[{', '.join(self.parameters.values())}] -> " if self.parameters else ""
        sizes = [f"{parameter} >= 1" for parameter in self.parameters.values()]
        where = " and ".join([*conditions, *sizes]) or "true"
        domain = isl.Set.read_from_str(self.context, f"{header}{{ {dims} : {where} }}")
        time = ", ".join([*path.time, *("0" for _ in range(depth - len(path.time)))])
        times = isl.Map.read_from_str(self.context, f"{header}{{ {dims} -> [{time}] }}").intersect_domain(domain)
        return _Moment(site, domain, times, self.element(site, dims, header, domain))

    def element(self, site: Site, dims: str, header: str, domain: isl.Set) -> isl.Map | None:
        """What the site touches."""
        if site.buffer is None:
            return None
        places = [f"o{k}" for k in range(len(site.element))]
        known = [f"{place} = {text}" for place, text in zip(places, site.element, strict=True) if text is not None]
        where = " and ".join(known) or "true"
        text = f"{header}{{ {dims} -> {site.buffer.name}[{', '.join(places)}] : {where} }}"
        return isl.Map.read_from_str(self.context, text).intersect_domain(domain)

    def require_empty(self, buffer: str, whose: str, races: isl.Map) -> None:
        """Raises ProofError for a race."""
        if not races.is_empty():
            threads = f"[{', '.join(THREAD)}, ...]"
            message = f"{self.grid.name}: two threads {whose} touch one element of {buffer}, {threads}: {races}"
            raise ProofError("races", message, str(races.sample()))


def _alike(a: Path, b: Path) -> Iterator[tuple[Digits, Digits]]:
    """Numbers on both ways that are split by the same radices."""
    return ((left, right) for left in a.digits for right in b.digits if left.radices == right.radices)
