"""Relations between statements, taken apart into one map for each pair of statements.

isl's products of unions look at every pair of statements of their operands, related or not: over n statements they cost n
times n. A dependence relates few pairs; what is asked of it pair by pair costs as much as those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import islpy as isl


@dataclass(frozen=True)
class Pair:
    """The dependences of one pair of statements: ``{ source[i] -> target[j] }``."""

    source: str
    target: str
    relation: isl.Map


@dataclass(frozen=True)
class Pairs:
    """All dependences of one kind, by the statement that they start from."""

    by_source: Mapping[str, tuple[Pair, ...]]

    def __iter__(self) -> Iterator[Pair]:
        return (pair for pairs in self.by_source.values() for pair in pairs)

    def and_those_of(self, others: Pairs) -> Pairs:
        """Both kinds."""
        sources = dict.fromkeys((*self.by_source, *others.by_source))
        return Pairs({name: (*self.by_source.get(name, ()), *others.by_source.get(name, ())) for name in sources})

    def inside(self, domain: isl.UnionSet) -> Iterator[Pair]:
        """The dependences between instances of a domain."""
        own = sets_by_tuple(domain)
        for name, instances in own.items():
            for pair in self.by_source.get(name, ()):
                if pair.target in own:
                    relation = pair.relation.intersect_domain(instances).intersect_range(own[pair.target])
                    yield Pair(name, pair.target, relation)

    def between(self, domain: isl.UnionSet) -> isl.UnionMap:
        """The same as one relation."""
        found = isl.UnionMap.read_from_str(domain.get_ctx(), "{ }")
        for pair in self.inside(domain):
            found = found.union(isl.UnionMap(pair.relation))
        return found


def pairs_of(dependences: isl.UnionMap) -> Pairs:
    """Takes a union of dependences apart."""
    found: dict[str, list[Pair]] = {}
    for relation in _maps(dependences):
        source, target = (relation.get_tuple_name(side) for side in (isl.dim_type.in_, isl.dim_type.out))
        found.setdefault(source, []).append(Pair(source, target, relation))
    return Pairs({source: tuple(pairs) for source, pairs in found.items()})


def sets_by_tuple(domain: isl.UnionSet) -> dict[str, isl.Set]:
    """Takes a set of instances or elements apart, by the name of their statement or buffer."""
    found = domain.get_set_list()
    return {each.get_tuple_name(): each for each in (found.get_at(k) for k in range(found.n_set()))}


def by_statement(times: isl.UnionMap) -> dict[str, isl.Map]:
    """Takes a schedule ``{ S[i] -> [time] }`` apart."""
    return {each.get_tuple_name(isl.dim_type.in_): each for each in _maps(times)}


def _maps(union: isl.UnionMap) -> Iterator[isl.Map]:
    found = union.get_map_list()
    return (found.get_at(k) for k in range(found.n_map()))
