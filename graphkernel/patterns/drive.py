"""Applies rules until none matches, or a budget is spent.

Each sweep finds matches on the graph as it is, producers before users, no two of which share a node, and rewrites all of
them in one rebuild. The order of rules and nodes is fixed, so the result is too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from graphkernel.patterns.language import Apply, Rule, Safety
from graphkernel.patterns.match import Match, build, makers, matches
from graphkernel.patterns.ranges import Ranges
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.operator import Operator


@dataclass(frozen=True)
class Firing:
    """A rule was applied to the operator labelled ``node``."""

    rule: str
    node: str


@dataclass(frozen=True)
class Trail:
    """What :func:`simplify` did: the rewritten graph, every firing in order, and whether the budget ended it."""

    graph: Graph
    firings: tuple[Firing, ...] = ()
    exhausted: bool = False


def simplify(graph: Graph, rules: Iterable[Rule], allowed: Safety, budget: int | None = None) -> Trail:
    """Applies the rules that promise ``allowed`` or better to a fixpoint. ``budget`` is the most firings (default by size)."""
    return apply_rules(graph, by_root(rules, allowed), allowed, budget)


Table = Mapping[Operator, Sequence[tuple[frozenset[Operator], Rule]]]
"""Rules by the operator that their left side has on top, each with the operators that must make its operands."""


def by_root(rules: Iterable[Rule], allowed: Safety) -> Table:
    """The rules that promise ``allowed`` or better, in their order."""
    table: dict[Operator, list[tuple[frozenset[Operator], Rule]]] = {}
    for rule in rules:
        if rule.best <= allowed:
            table.setdefault(rule.equation.left.op, []).append((makers(rule), rule))
    return table


def apply_rules(graph: Graph, table: Table, allowed: Safety, budget: int | None = None) -> Trail:
    """:func:`simplify` with a table that is made once for many graphs."""
    left = 100 + 10 * len(graph.operators) if budget is None else budget
    firings: list[Firing] = []
    ranges = Ranges()
    while chosen := _choose(graph, table, allowed, ranges):
        if len(chosen) > left - len(firings):
            return Trail(graph, tuple(firings), exhausted=True)
        graph = _rewrite(graph, chosen)
        firings.extend(Firing(rule.name, node.name) for node, (rule, _) in chosen.items())
    return Trail(graph, tuple(firings))


Choice = tuple[Rule, Match]


def _choose(graph: Graph, table: Table, allowed: Safety, ranges: Ranges) -> dict[Node, Choice]:
    chosen: dict[Node, Choice] = {}
    taken: set[Node] = set()
    for node in graph.operators:
        rules = table.get(node.op)
        if not rules:
            continue
        present = {value.node.op for value in node.args}
        rules = [rule for needed, rule in rules if needed <= present]
        for rule, found in _applicable(graph, node, rules, allowed, ranges):
            if taken.isdisjoint(found.nodes):
                chosen[node] = rule, found
                taken |= found.nodes
                break
    return chosen


def _applicable(graph: Graph, node: Node, rules: Sequence[Rule], allowed: Safety, ranges: Ranges) -> Iterator[Choice]:
    """The matches at a node, in the order of the rules, that are safe enough, duplicate no work and keep the type."""
    for rule in rules:
        for found in matches(rule, node):
            safe = promise(rule, found, ranges) <= allowed
            if safe and not _duplicates_work(graph, rule, found) and build(rule, found, {}, Builder()) is not None:
                yield rule, found


def promise(rule: Rule, found: Match, ranges: Ranges) -> Safety:
    """What the rule promises for the data types of a match, and for the ranges that its values are known to be in."""
    plain = rule.safety_for(value.type.dtype for node in found.nodes for value in (*node.outs, *node.args))
    if rule.given is None or plain <= rule.given.promise:
        return plain
    proved = all(ranges.of(found.value(name)) in range_ for name, range_ in rule.given.ranges.items())
    return rule.given.promise if proved else plain


def _duplicates_work(graph: Graph, rule: Rule, found: Match) -> bool:
    """True when an inner node is needed elsewhere, so that rewriting would add to it instead of replacing it."""
    if not isinstance(rule.equation.right, Apply):
        return False
    inner = found.nodes - {found.root}
    return any(node in graph.output_nodes or not found.nodes.issuperset(graph.users[node]) for node in inner)


def _rewrite(graph: Graph, chosen: Mapping[Node, Choice]) -> Graph:
    replaced: dict[Value, Value] = {}

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        made = build(*chosen[node], replaced, Builder(origin=node.name)) if node in chosen else None
        results = keep(node, args).outs if made is None else (made,)
        replaced.update(zip(node.outs, results, strict=True))
        return results

    return graph.rebuild(rewrite)
