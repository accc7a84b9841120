"""The pass graph_kernel_expander: composite operators become basic ones where a target's list or a flag says so.

Before and after::

    y = Softmax(x)    ==>    m = ReduceMax(x); s = Sub(x, m); e = Exp(s); n = ReduceSum(e); y = RealDiv(e, n)
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.errors import TypeRuleError, nearest
from graphkernel.expanders.base import Declined, Expander, entry_name, expand
from graphkernel.expanders.lists import expand_ops
from graphkernel.ops import OPS
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import Changed, Graph, Node, Value, become, keep
from kernelgen.tensor.types import Category

PASS_NAME = "graph_kernel_expander"


@graph_pass
def graph_kernel_expander(graph: Graph, context: Context) -> Graph:
    """Replaces each listed composite operator by its expansion; a declined expansion leaves the operator and says why."""
    listed = listed_ops(context)
    expansions = _Expansions(context)
    named = [(node, entry_name(node)) for node in graph.operators]
    names = {node: name for node, name in named if name in listed or node.op.composite}

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        name = names[node]
        entry = context.expanders.get(name)
        found = expansions.of(entry, node, args) if entry and name in listed else None
        _record(found, node, context)
        return found if isinstance(found, tuple) else keep(node, args).outs

    result = graph.rebuild(rewrite, names)
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


@dataclass
class _Expansions:
    """What operators expand to; of operators that are alike only one is computed."""

    context: Context
    known: dict[Hashable, tuple[Node, tuple[Value, ...], tuple[Value, ...] | Declined]] = field(default_factory=dict)

    def of(self, entry: Expander, node: Node, args: tuple[Value, ...]) -> tuple[Value, ...] | Declined:
        """The results of an operator over ``args`` by others, labelled behind it, or why there are none."""
        key = (entry.name, node.attrs.text, node.types, tuple([_likeness(value, args) for value in args]))
        known = self.known.get(key)
        if known is None:
            found = _expanded(entry, node, args, self.context)
            self.known[key] = node, args, found
            return found
        first, operands, found = known
        return (
            found if isinstance(found, Declined) else _moved(found, dict(zip(operands, args, strict=True)), first, node)
        )


def _likeness(value: Value, args: tuple[Value, ...]) -> Hashable:
    """What an expander may ask of an operand: its type, which others are the same, numbers that are no weights."""
    is_weights = value.type.size != 1 and value.type.dtype.is_float
    is_asked = value.type.dtype.category is Category.COMPLEX or (value.is_known and not is_weights)
    return args.index(value), value.type, value if is_asked else None


def _moved(results: tuple[Value, ...], replaced: Changed, first: Node, node: Node) -> tuple[Value, ...]:
    """The expansion of the first operator as that of another one, over the operands that take the place of its own.

    ``replaced`` takes along what becomes of the operators between.
    """
    for value in results:
        if value not in replaced:
            made = value.node
            label = node.name + made.name[len(first.name) :] if made.name.startswith(first.name) else made.name
            copy = Node(
                made.op, _moved(made.args, replaced, first, node), made.attrs, made.types, label, made.body, made.data
            )
            become(replaced, made, copy)
    return tuple([replaced[value] for value in results])


def _expanded(entry: Expander, node: Node, args: tuple[Value, ...], context: Context) -> tuple[Value, ...] | Declined:
    try:
        return expand(entry, node, args, context.builder(node.name), context.options.target)
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
