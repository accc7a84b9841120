"""The pass arithmetic_simplify: the equations of :mod:`graphkernel.patterns`, applied to a fixpoint.

Before and after::

    y = Neg(Neg(Mul(x, 1)))    ==>    y = x
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.errors import nearest
from graphkernel.mindspore.rule_ids import RULES_BY_ID, rule_names
from graphkernel.options import Options
from graphkernel.passes.base import Context, graph_pass, map_bodies
from graphkernel.patterns.drive import Table, apply_rules, by_root
from graphkernel.patterns.language import Rule, Safety
from kernelgen.tensor.graph import Graph

# Outside of kernels a bias is better left to the kernel that takes what follows it; and so it is on a gpu, where the splitter
# leaves all but small products to the library.
MATMUL_BIAS = frozenset({"matmul_with_bias", "batch_matmul_with_bias"})


@graph_pass
def arithmetic_simplify(graph: Graph, context: Context) -> Graph:
    """Applies the rules that the options allow, in the graph and inside every kernel body."""
    rules = enabled_rules(context.rules, context.options)
    allowed = allowed_safety(context.options)
    inside = by_root(rules, allowed)
    outside = by_root((rule for rule in rules if rule.name not in MATMUL_BIAS), allowed)

    def simplified(body: Graph, table: Table = inside) -> Graph:
        trail = apply_rules(body, table, allowed)
        for firing in trail.firings:
            context.log.add(arithmetic_simplify.name, "rule-fired", firing.node, message=firing.rule)
        if trail.exhausted:
            context.log.add(arithmetic_simplify.name, "rule-budget", body.name)
        return trail.graph if trail.graph is body else with_unique_labels(trail.graph)

    return simplified(map_bodies(graph, simplified), outside)


def allowed_safety(options: Options) -> Safety:
    """The weakest promise that a rule may make: EXACT, unless flags trade exactness for speed."""
    if options.numerics == "fast":
        return Safety.DOMAIN
    return Safety.EXACT if options.exact_precision_mode else Safety.ROUNDING


def enabled_rules(rules: tuple[Rule, ...], options: Options) -> tuple[Rule, ...]:
    """The rules that the flags leave on, named by name or by MindSpore's id; what names no rule is a mistake of the user."""
    names = [rule.name for rule in rules]
    only = _named(options.enable_simplify_exprs_only, names, options)
    off = _named(options.disable_simplify_exprs, names, options)
    if options.disable_matmul_post_fusion or options.target == "gpu":
        off |= MATMUL_BIAS
    if options.enable_simplify_exprs_only:
        return tuple(rule for rule in rules if rule.name in only)
    return tuple(rule for rule in rules if rule.name not in off)


def _named(entries: Iterable[str], names: Sequence[str], options: Options) -> set[str]:
    found: set[str] = set()
    for entry in entries:
        if entry not in RULES_BY_ID and entry not in names:
            options.complain(f"no rule is named {entry!r}{nearest(entry, [*names, *RULES_BY_ID])}")
        found.update(rule_names(entry))
    return found
