"""Applies rules until none matches, or a budget is spent.

Each sweep finds matches on the graph as it is, producers before users, no two of which share a node, and rewrites all of
them in one rebuild; the next one looks near what has changed. The order of rules and nodes is fixed, so the result is too.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from graphkernel.patterns.language import Apply, Rule, Safety, Term
from graphkernel.patterns.match import Match, build, makers, matches
from graphkernel.patterns.ranges import Ranges
from kernelgen.tensor.graph import LEAVES, Builder, Changed, Graph, Node, Value, keep
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
    ranges, distant = Ranges(), _that_look_far(table)
    farthest = max((_height(rule.equation.left) for rules in table.values() for _, rule in rules), default=0)
    near: Container[Node] = frozenset(graph.operators)
    while True:
        chosen, waiting = _choose(graph, (near, table, distant), allowed, ranges)
        if not chosen:
            return Trail(graph, tuple(firings))
        if len(chosen) > left - len(firings):
            return Trail(graph, tuple(firings), exhausted=True)
        before, (graph, image) = graph, _rewrite(graph, chosen)
        steps = _steps_to_new(before, graph, chosen, image)
        near = {image.get(node, node) for node in waiting}
        near.update([node for node in graph.operators if steps[node] <= farthest])
        firings.extend(Firing(rule.name, node.name) for node, (rule, _) in chosen.items())


Choice = tuple[Rule, Match]
Tables = tuple[Container[Node], Table, Table]
"""The nodes near what changed in the last sweep, the rules for them, and those for the others."""


def _that_look_far(table: Table) -> Table:
    """The rules whose promise depends on ranges of values, which may be proved by what stands anywhere before."""
    return {op: [entry for entry in rules if entry[1].given is not None] for op, rules in table.items()}


def _choose(
    graph: Graph, tables: Tables, allowed: Safety, ranges: Ranges
) -> tuple[dict[Node, Choice], Collection[Node]]:
    """A match for each node that has one and shares no node with an earlier one, and the nodes where one was shared."""
    near, table, distant = tables
    chosen: dict[Node, Choice] = {}
    waiting: dict[Node, None] = {}
    taken: set[Node] = set()
    for node in graph.operators:
        rules = (table if node in near else distant).get(node.op)
        if not rules:
            continue
        present = {value.node.op for value in node.args}
        rules = [rule for needed, rule in rules if needed <= present]
        for rule, found in _applicable(graph, node, rules, allowed, ranges):
            if taken.isdisjoint(found.nodes):
                chosen[node] = rule, found
                taken |= found.nodes
                break
            waiting[node] = None
    return chosen, [node for node in waiting if node not in chosen]


def _height(term: Term) -> int:
    """Steps from the operator on top of a rule's left side to what stands for its variables, at most."""
    return 1 + max(map(_height, term.args), default=0) if isinstance(term, Apply) else 0


def _steps_to_new(
    before: Graph, after: Graph, chosen: Container[Node], image: Mapping[Node, Node]
) -> Mapping[Node, float]:
    """For each node after a sweep how far before it something is new: beyond the height of rules it matches what it did.

    New are what rules made, operands in the place of others, and operators that have other users, or became results.
    """
    steps: dict[Node, float] = {}
    origin = {made: node for node, made in image.items()}
    for node in after.nodes:
        old = origin.get(node, node)
        users = before.users.get(old)
        is_result = old in before.output_nodes, node in after.output_nodes
        if node.op in LEAVES:
            steps[node] = 0 if users is None else inf
        elif users is None or len(users) != len(after.users[node]) or is_result[0] != is_result[1]:
            steps[node] = 0
        elif old is node:  # and so are its operands
            steps[node] = 1 + min([steps[arg.node] for arg in node.args], default=inf)
        else:
            pairs = zip(old.args, node.args, strict=True)
            steps[node] = 1 + min([0 if was.node in chosen else steps[arg.node] for was, arg in pairs], default=inf)
    return steps


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


def _rewrite(graph: Graph, chosen: Mapping[Node, Choice]) -> tuple[Graph, Mapping[Node, Node]]:
    """The graph after the chosen matches, and what became of each other operator that is not what it was."""
    replaced: Changed = {}

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        made = build(*chosen[node], replaced, Builder(origin=node.name))
        return keep(node, args).outs if made is None else (made,)

    after = graph.rebuild(rewrite, chosen, replaced)
    return after, {old: new.node for (old, _), new in replaced.items() if old not in chosen}
