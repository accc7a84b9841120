"""Reverse-mode differentiation: cotangents walk from results to leaves, from the last operator to the first.

Source: reverse accumulation as in MindSpore's ``bprop`` functions; what meets at a value is added up once, by one AddN.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphkernel import ops
from graphkernel.errors import GradientError
from graphkernel.expanders.base import Declined, Expander, entry_name, expand
from graphkernel.gradients.base import Application, Cotangents, Gradient
from graphkernel.ops import Tensor
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.types import Category

Pair = tuple[Tensor, Tensor]
"""A result and its cotangent."""


@dataclass(frozen=True)
class Rules:
    """What operators are differentiated with: a rule of their own, else the rules of what they expand to."""

    gradients: Mapping[str, Gradient]
    expanders: Mapping[str, Expander]


def pullback(seen: Iterable[Pair], leaves: Sequence[Value], builder: Builder, rules: Rules) -> dict[Value, Tensor]:
    """The cotangents of the leaves that the results depend on; leaves count as independent of each other.

    ``GradientError`` names an operator between them that has no gradient.
    """
    pairs = list(seen)
    nodes = Graph("forward", tuple(leaves), tuple(result.value for result, _ in pairs)).nodes
    following = _following(nodes, leaves)
    found: dict[Value, list[Tensor]] = {}
    for result, cotangent in pairs:
        found.setdefault(result.value, []).append(cotangent)
    ends = {leaf.node for leaf in leaves}
    for node in reversed(nodes):
        if node in ends or node not in following or not any(value in found for value in node.outs):
            continue
        of = _application(node, found, following, builder)
        for value, cotangent, wanted in zip(node.args, _checked(node, of, builder, rules), of.wanted, strict=True):
            if cotangent is not None and wanted:
                found.setdefault(value, []).append(cotangent)
    return {leaf: _sum(found[leaf]) for leaf in leaves if leaf in found}


def substituted(values: Sequence[Value], by: Mapping[Value, Value]) -> dict[Value, Value]:
    """What the values, and all that they are made of, become over other leaves; what stays is not listed."""
    changed = dict(by)
    for node in Graph("any", tuple(by), tuple(values)).nodes:
        args = tuple([changed.get(arg, arg) for arg in node.args])
        if args != node.args:
            changed.update(zip(node.outs, keep(node, args).outs, strict=True))
    return changed


def _following(nodes: Sequence[Node], leaves: Sequence[Value]) -> set[Node]:
    """The nodes that follow changes of the leaves: integers and flags between do not."""
    following = {leaf.node for leaf in leaves}
    for node in nodes:
        if any(_is_continuous(value) and value.node in following for value in node.args):
            following.add(node)
    return following


def _is_continuous(value: Value) -> bool:
    return value.type.dtype.is_float or value.type.dtype.category is Category.COMPLEX


def _application(
    node: Node, found: Mapping[Value, list[Tensor]], following: set[Node], builder: Builder
) -> Application:
    operands, results = (tuple(Tensor(value, builder) for value in values) for values in (node.args, node.outs))
    wanted = tuple(_is_continuous(value) and value.node in following for value in node.args)
    cotangents = tuple(_sum(found[value]) if value in found else None for value in node.outs)
    return Application(operands, results, node.attrs, cotangents, wanted)


def _checked(node: Node, of: Application, builder: Builder, rules: Rules) -> Cotangents:
    """The cotangents of a node's operands, which have their types."""
    cotangents = _operand_cotangents(node, of, builder, rules)
    for place, (operand, cotangent) in enumerate(zip(of.operands, cotangents, strict=True)):
        fits = cotangent is None or (cotangent.shape, cotangent.dtype) == (operand.shape, operand.dtype)
        if of.wanted[place] and not fits:
            raise GradientError(
                f"the gradient rule of {node.op.name} gives {cotangent} for operand {place}, {operand}; mend the rule"
            )
    return cotangents


def _operand_cotangents(node: Node, of: Application, builder: Builder, rules: Rules) -> Cotangents:
    if any(wanted and not operand.dtype.is_float for wanted, operand in zip(of.wanted, of.operands, strict=True)):
        raise _no_gradient(node, "gradients by complex numbers are not defined here")
    rule = rules.gradients.get(node.op.name)
    found = Declined("it has neither a gradient rule nor an expander") if rule is None else rule.function(of)
    if not isinstance(found, Declined):
        return found
    if rule is not None and rule.undefined:
        raise _no_gradient(node, rule.undefined)
    expanded = _of_expansion(node, of, builder, rules)
    if isinstance(expanded, Declined):
        raise _no_gradient(node, found.reason if rule is not None else expanded.reason)
    return expanded


def _of_expansion(node: Node, of: Application, builder: Builder, rules: Rules) -> Cotangents | Declined:
    """Through the operators that the node is made of; an operand given twice gets all at its first place."""
    expander = rules.expanders.get(entry_name(node))
    if expander is None:
        return Declined("it has neither a gradient rule nor an expander")
    results = expand(expander, node, node.args, builder)
    if isinstance(results, Declined):
        return results
    seen = [(Tensor(value, builder), dy) for value, dy in zip(results, of.cotangents, strict=True) if dy is not None]
    wanted = dict.fromkeys(value for value, useful in zip(node.args, of.wanted, strict=True) if useful)
    found = pullback(seen, tuple(wanted), builder, rules)
    return [found.pop(value, None) for value in node.args]


def _no_gradient(node: Node, why: str) -> GradientError:
    operands = ", ".join(str(value.type) for value in node.args)
    return GradientError(
        f"{node.op.name}({operands}), which gives {node.name}, has no gradient: {why}. If the result is to count as "
        "constant, take ops.stop_gradient of it"
    )


def _sum(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else ops.add_n(*parts) if len(parts) > 2 else parts[0] + parts[1]
