"""The pass graph_kernel_expander: composite operators become basic ones where a target's list or a flag says so.

Before and after::

    y = Softmax(x)    ==>    m = ReduceMax(x); s = Sub(x, m); e = Exp(s); n = ReduceSum(e); y = RealDiv(e, n)
"""

from __future__ import annotations

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.errors import TypeRuleError, nearest
from graphkernel.expanders.base import Declined, Expander, entry_name, expand
from graphkernel.expanders.lists import expand_ops
from graphkernel.ops import OPS
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep

PASS_NAME = "graph_kernel_expander"


@graph_pass
def graph_kernel_expander(graph: Graph, context: Context) -> Graph:
    """Replaces each listed composite operator by its expansion; a declined expansion leaves the operator and says why."""
    listed = listed_ops(context)

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        name = entry_name(node)
        entry = context.expanders.get(name)
        found = (
            _expanded(entry, node, args, Builder(origin=node.name), context.options.target)
            if entry and name in listed
            else None
        )
        _record(found, node, context)
        return found if isinstance(found, tuple) else keep(node, args).outs

    result = graph.rebuild(rewrite)
    return result if result is graph else with_unique_labels(result)


def listed_ops(context: Context) -> frozenset[str]:
    """The names to expand: ``enable_expand_ops_only`` rules the other lists out, disabling beats enabling.

    Lists name operators of this project; those of other packages are expanded where they have an expander.
    """
    options = context.options
    for name in (*options.enable_expand_ops, *options.enable_expand_ops_only):
        if name not in context.expanders:
            options.complain(f"cannot expand {name!r}: no expander of that name{nearest(name, context.expanders)}")
    if options.enable_expand_ops_only:
        return frozenset(options.enable_expand_ops_only)
    foreign = context.expanders.keys() - OPS.keys()
    return (expand_ops(options.target) | foreign | set(options.enable_expand_ops)) - set(options.disable_expand_ops)


def _expanded(
    entry: Expander, node: Node, args: tuple[Value, ...], builder: Builder, target: str
) -> tuple[Value, ...] | Declined:
    try:
        return expand(entry, node, args, builder, target)
    except TypeRuleError as error:
        return Declined(f"the expansion does not type-check: {error}")


def _record(found: tuple[Value, ...] | Declined | None, node: Node, context: Context) -> None:
    """Logs what became of a node; operators that are basic anyway are not worth a decision."""
    name = entry_name(node)
    if isinstance(found, tuple):
        context.log.add(PASS_NAME, "expanded", node.name, message=f"{name}: {context.expanders[name].doc}")
    elif found is not None:
        context.log.add(PASS_NAME, "not-expanded-declined", node.name, message=f"{name}: {found.reason}")
    elif node.op.composite:
        context.log.add(PASS_NAME, _reason(name, context), node.name, message=name)


def _reason(name: str, context: Context) -> str:
    """The code for a composite operator that was not tried."""
    if name not in context.expanders:
        return "not-expanded-undeclared"
    excluded = context.options.enable_expand_ops_only or name in context.options.disable_expand_ops
    return "not-expanded-disabled" if excluded else "not-expanded-unlisted"
