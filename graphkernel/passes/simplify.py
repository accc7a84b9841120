"""The pass arithmetic_simplify: the equations of :mod:`graphkernel.patterns`, applied to a fixpoint.

Before and after::

    y = Neg(Neg(Mul(x, 1)))    ==>    y = x
"""

from __future__ import annotations

from graphkernel.cluster.extract import with_unique_labels
from graphkernel.errors import nearest
from graphkernel.ir.graph import Graph
from graphkernel.options import Options
from graphkernel.passes.base import Context, graph_pass, map_bodies
from graphkernel.patterns.drive import simplify
from graphkernel.patterns.language import Rule, Safety


@graph_pass
def arithmetic_simplify(graph: Graph, context: Context) -> Graph:
    """Applies the rules that the options allow, in the graph and inside every kernel body."""
    rules = enabled_rules(context.rules, context.options)
    allowed = allowed_safety(context.options)

    def simplified(body: Graph) -> Graph:
        trail = simplify(body, rules, allowed)
        for firing in trail.firings:
            context.log.add(arithmetic_simplify.name, "rule-fired", firing.node, message=firing.rule)
        if trail.exhausted:
            context.log.add(arithmetic_simplify.name, "rule-budget", body.name)
        return trail.graph if trail.graph is body else with_unique_labels(trail.graph)

    return simplified(map_bodies(graph, simplified))


def allowed_safety(options: Options) -> Safety:
    """The weakest promise that a rule may make: EXACT, unless flags trade exactness for speed."""
    if options.numerics == "fast":
        return Safety.DOMAIN
    return Safety.EXACT if options.exact_precision_mode else Safety.ROUNDING


def enabled_rules(rules: tuple[Rule, ...], options: Options) -> tuple[Rule, ...]:
    """The rules that the flags leave on; a name that no rule has is a mistake of the user."""
    names = [rule.name for rule in rules]
    for name in (*options.enable_simplify_exprs_only, *options.disable_simplify_exprs):
        if name not in names:
            options.complain(f"no rule is named {name!r}{nearest(name, names)}")
    if options.enable_simplify_exprs_only:
        return tuple(rule for rule in rules if rule.name in options.enable_simplify_exprs_only)
    return tuple(rule for rule in rules if rule.name not in options.disable_simplify_exprs)
