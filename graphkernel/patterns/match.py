"""Matching a rule against a node, and building its right side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.patterns.folding import folded, is_foldable
from graphkernel.patterns.language import Apply, Attributes, Computed, Literal, Rule, Term, Variable
from kernelgen.tensor.attrs import NONE
from kernelgen.tensor.graph import CONSTANT, Builder, Node, Value
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.shape import BROADCAST_TO
from kernelgen.tensor.types import Attrs, DType, TensorType

Binding = Value | Attrs


@dataclass(frozen=True)
class Match:
    """Where the left side of a rule stands in a graph: ``root``, the nodes below it, and what the variables are bound to."""

    root: Node
    nodes: frozenset[Node]
    bindings: Mapping[str, Binding]

    def value(self, name: str) -> Value:
        """The value of a term variable."""
        found = self.bindings[name]
        assert isinstance(found, Value), f"{name} is bound to attributes"
        return found

    def type(self, name: str) -> TensorType:
        """The type of a term variable."""
        return self.value(name).type

    def array(self, name: str) -> np.ndarray:
        """The content of a constant variable."""
        content = self.value(name).constant
        assert content is not None, f"{name} is not a constant"
        return content

    def attributes(self, name: str) -> Attrs:
        """What an attribute variable is bound to."""
        found = self.bindings[name]
        assert isinstance(found, Attrs), f"{name} is bound to a value"
        return found

    @property
    def result(self) -> TensorType:
        """The type that the left side has and the right side must have."""
        return self.root.types[0]


def makers(rule: Rule) -> frozenset[Operator]:
    """The operators that make operands wherever the rule matches: most rules can be passed over for lack of one."""
    found: set[Operator] = set()
    for pattern in rule.equation.left.args:
        if isinstance(pattern, Apply):
            found.add(pattern.op)
        elif isinstance(pattern, Literal) or (isinstance(pattern, Variable) and pattern.constant):
            found.add(CONSTANT)
    return frozenset(found)


def matches(rule: Rule, root: Node) -> Iterator[Match]:
    """Every way in which the left side stands at ``root`` and the condition holds.

    Both orders of commutative operators are tried at every level, with backtracking.
    """
    for bindings, nodes in _match_node(rule.equation.left, root, {}):
        found = Match(root, nodes, bindings)
        if rule.equation.when is None or rule.equation.when(found):
            yield found


Partial = tuple[dict[str, Binding], frozenset[Node]]


def _match(pattern: Term, value: Value, bindings: dict[str, Binding]) -> Iterator[Partial]:
    match pattern:
        case Variable(name, constant):
            if (not constant or value.is_known) and bindings.get(name, value) == value:
                yield {**bindings, name: value}, frozenset()
        case Literal():
            if value.constant is not None and pattern.matches(value.constant):
                yield bindings, frozenset()
        case Apply():
            yield from _match_node(pattern, value.node, bindings)
        case _:
            raise AssertionError(f"{pattern} is no term")


def _match_node(pattern: Apply, node: Node, bindings: dict[str, Binding]) -> Iterator[Partial]:
    if node.op is not pattern.op or len(node.args) != len(pattern.args):
        return
    if isinstance(pattern.attributes, Attributes):
        name = pattern.attributes.name
        if bindings.get(name, node.attrs) != node.attrs:
            return
        bindings = {**bindings, name: node.attrs}
    for args in _orders(node):
        if all(map(_may_be, pattern.args, args)):
            for found, nodes in _match_all(pattern.args, args, bindings):
                yield found, nodes | {node}


def _may_be(pattern: Term, value: Value) -> bool:
    """Whether what is on top of a term fits a value: mostly it does not, and there is no need to look further."""
    if isinstance(pattern, Apply):
        return value.node.op is pattern.op
    return not (isinstance(pattern, Variable) and pattern.constant) or value.is_known


def _orders(node: Node) -> Iterator[tuple[Value, ...]]:
    yield node.args
    if node.op.commutative:
        yield node.args[::-1]


def _match_all(patterns: tuple[Term, ...], args: tuple[Value, ...], bindings: dict[str, Binding]) -> Iterator[Partial]:
    if not patterns:
        yield bindings, frozenset()
        return
    for bound, nodes in _match(patterns[0], args[0], bindings):
        for all_bound, more in _match_all(patterns[1:], args[1:], bound):
            yield all_bound, nodes | more


def build(rule: Rule, found: Match, substitution: Mapping[tuple[Node, int], Value], builder: Builder) -> Value | None:
    """The right side over ``substitution`` of the bound values; None when it cannot have the type of the left side.

    It takes over the label of the root. Operators whose operands are all constants are computed at once. A literal is
    broadcast to the result's shape.
    """
    try:
        made = _build(rule.equation.right, found, substitution, builder, found.root.name)
    except TypeRuleError:
        return None
    if isinstance(rule.equation.right, Literal) and made.type.shape != found.result.shape:
        made = builder.emit(BROADCAST_TO, made, name=found.root.name, shape=found.result.shape)
    return made if made.type == found.result else None


def _build(
    right: Term, found: Match, substitution: Mapping[tuple[Node, int], Value], builder: Builder, label: str = ""
) -> Value:
    match right:
        case Variable(name):
            return substitution.get(found.value(name), found.value(name))
        case Literal(number):
            return _literal(number, found.result.dtype, builder)
        case Apply(op, terms, attributes):
            args = tuple(_build(term, found, substitution, builder) for term in terms)
            made = builder.node(op, args, _attributes(attributes, found), label)
            known = folded(made, builder) if args and is_foldable(made) else None
            return made.out if known is None else known[0]
        case _:
            raise AssertionError(f"{right} is no term")


def _literal(number: float, of: DType, builder: Builder) -> Value:
    if not of.is_float and number != int(number):
        raise TypeRuleError(f"{number} is no {of}")
    return builder.constant(number, of)


def _attributes(given: Attributes | Computed | None, found: Match) -> Attrs:
    if given is None:
        return NONE
    return found.attributes(given.name) if isinstance(given, Attributes) else given(found)
