"""Sites of a grid in isl: what an access touches, and when the common steps of a block's threads are taken.

    touched  { A[bx, tx, ty, turn, ...] -> x[i, f] : what holds of them }
    when     { A[bx, tx, ty, turn, ...] -> [bx, t0, t1, ...] }        the block and the first steps of the time
    clock    { [bx, t0, t1, ...] : there is such an instance }

All threads of a block take the steps around a barrier together, so that accesses and barriers are ordered by their clocks
alone: relations of a few dims that know no thread. Of an access only those variables and conditions are taken that say
something about the element, the clock or the thread; without the others it has more instances, never fewer. A barrier
keeps all conditions that decide whether it is there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import islpy as isl

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import BLOCK_INDEX, THREAD_INDICES
from kernelgen.poly.proof.grid_accesses import THREAD, Condition, Path, Site

IN, OUT = isl.dim_type.in_, isl.dim_type.out


@dataclass(frozen=True)
class Moment:
    """An access in isl, under a name of its own; ``dims`` are the variables that matter, those of the thread first."""

    site: Site
    name: str
    dims: tuple[str, ...]
    touched: isl.Map
    when: isl.Map
    clock: isl.Set


@dataclass(frozen=True)
class Meeting:
    """A barrier and the like in isl: when it is come to."""

    site: Site
    clock: isl.Set


@dataclass(frozen=True)
class Moments:
    """Makes them; clocks have ``steps`` steps, which is as far as any meeting's time goes."""

    context: isl.Context
    parameters: Mapping[str, str]
    steps: int
    _same: dict[int, isl.Map] = field(default_factory=dict[int, isl.Map], repr=False)

    def access(self, site: Site, name: str) -> Moment:
        """What a site touches, and when."""
        assert site.buffer is not None
        path, clock = site.path, self._clock(site.path)
        names = {name for i in site.element for name in ix.variables(i)} | set(clock)
        dims, conditions = _relevant(path, {*THREAD, *names})
        texts = [path.text(i) for i in site.element]
        places = [f"at_{k}" for k in range(len(texts))]
        known = [f"{place} = {text}" for place, text in zip(places, texts, strict=True) if text is not None]
        instance = f"{name}[{', '.join(dims)}]"
        touched = self._map(f"{instance} -> {site.buffer.name}[{', '.join(places)}]", [*conditions, *known])
        when = self._map(f"{instance} -> [{', '.join(clock)}]", [])
        return Moment(site, name, dims, touched, when, self._when(path, clock, set(clock)))

    def meeting(self, site: Site) -> Meeting:
        """When a site without a buffer is come to; the first thread's coming counts for all of its block."""
        path, clock = site.path, self._clock(site.path)
        guards = {name for condition in path.conditions if not condition.about for name in condition.names}
        first = (Condition(f"{name} = 0", frozenset((name,))) for name in THREAD_INDICES)
        return Meeting(site, self._when(path.where(*first), clock, {*clock, *guards}))

    def earlier(self, first: isl.Set, second: isl.Set, alike: int = 0) -> isl.Map:
        """``{ t -> u : same block, the same first steps, t < u }`` between two clocks."""
        order = self.same_steps(alike).intersect(isl.Map.lex_lt(first.get_space()))
        return order.intersect_domain(first).intersect_range(second)

    def same_steps(self, count: int) -> isl.Map:
        """``{ t -> u }`` where the block and the first steps are the same."""
        if count not in self._same:
            space = self._when(Path(), self._clock(Path()), (BLOCK_INDEX,)).get_space()
            self._same[count] = _equated(isl.Map.universe(space.map_from_set()), range(1 + count))
        return self._same[count]

    def nothing(self) -> isl.Map:
        """No pair of clocks."""
        return isl.Map.empty(self.same_steps(0).get_space())

    def _clock(self, path: Path) -> list[str]:
        time = path.time[: self.steps]
        return [BLOCK_INDEX, *time, *("0" for _ in range(self.steps - len(time)))]

    def _when(self, path: Path, clock: Sequence[str], names: Collection[str]) -> isl.Set:
        dims, conditions = _relevant(path, names)
        places = [f"clock_{k}" for k in range(len(clock))]
        equal = [f"{place} = {text}" for place, text in zip(places, clock, strict=True)]
        where = " and ".join([*equal, *conditions, *self._sizes()])
        text = f"{self._header()}{{ [{', '.join(places)}] : exists {', '.join(dims)} : {where} }}"
        return isl.Set.read_from_str(self.context, text)

    def _map(self, arrow: str, conditions: Sequence[str]) -> isl.Map:
        where = " and ".join([*conditions, *self._sizes()]) or "true"
        return isl.Map.read_from_str(self.context, f"{self._header()}{{ {arrow} : {where} }}")

    def _header(self) -> str:
        return f"[{', '.join(self.parameters.values())}] -> " if self.parameters else ""

    def _sizes(self) -> list[str]:
        return [f"{parameter} >= 1" for parameter in self.parameters.values()]


def same_element(a: Moment, b: Moment) -> isl.Map:
    """``{ a -> b : element(a) = element(b) }``."""
    return a.touched.apply_range(b.touched.reverse())


def at_clocks(a: Moment, b: Moment, clocks: isl.Map) -> isl.Map:
    """``{ a -> b : their clocks are so related }``."""
    return a.when.apply_range(clocks).apply_range(b.when.reverse())


def of_block(a: Moment, b: Moment, axes: Iterable[int] = ()) -> isl.Map:
    """``{ a -> b }`` of one block, and of one thread index along the axes."""
    return _equated(anything(a, b), (0, *axes))


def apart(a: Moment, b: Moment, axes: Sequence[int]) -> isl.Map:
    """``{ a -> b }`` with different numbers along the axes of ``THREAD``; of two instances of one access the smaller first."""
    found = isl.Map.empty(anything(a, b).get_space())
    for position, axis in enumerate(axes):
        alike = _equated(anything(a, b), axes[:position])
        found = found.union(alike.order_lt(IN, axis, OUT, axis))
        found = found if a is b else found.union(alike.order_gt(IN, axis, OUT, axis))
    return found


def anything(a: Moment, b: Moment) -> isl.Map:
    """``{ a -> b }``."""
    spaces = (each.touched.get_space().domain() for each in (a, b))
    return isl.Map.from_domain_and_range(*map(isl.Set.universe, spaces))


def _equated(relation: isl.Map, dims: Iterable[int]) -> isl.Map:
    for dim in dims:
        relation = relation.equate(IN, dim, OUT, dim)
    return relation


def _relevant(path: Path, names: Collection[str]) -> tuple[tuple[str, ...], list[str]]:
    """The variables that those depend on, and what holds of them; a guard of sizes alone always counts."""
    dims, needed = frozenset(path.dims), set(names)
    kept: list[str] = []
    waiting = list(path.conditions)
    while fitting := [each for each in waiting if _says_something(each, needed, dims)]:
        kept += (each.text for each in fitting)
        waiting = [each for each in waiting if each not in fitting]
        needed |= {name for each in fitting for name in each.names}
        needed |= {each.whole for each in path.digits if needed.issuperset(each.names)}
    return tuple(name for name in path.dims if name in needed), kept


def _says_something(condition: Condition, needed: Collection[str], dims: frozenset[str]) -> bool:
    if condition.about:
        return not condition.about.isdisjoint(needed)
    return not dims.intersection(condition.names) or not condition.names.isdisjoint(needed)
