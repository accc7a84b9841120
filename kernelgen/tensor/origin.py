"""Where an operator of an optimized graph comes from, read off its label.

An expansion calls its operators after the one that they stand for (``t2.0``, ``t2.1``), and a label that occurs twice gets
a number (``t2_1``). Taking off what was put on gives the label in the graph as it came; that graph itself knows from which
nodes of a model its operators were made.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping

from kernelgen.tensor.graph import Graph, Node, Origin
from kernelgen.tensor.operator import Kind

_NUMBERED = re.compile(r"(.+)_\d+")
_EXPANDED = re.compile(r"(.+)\.c?\d+")


def origin_of(label: str, known: Container[str]) -> str | None:
    """The longest of the known labels that this one was made from; None when it was made from none of them."""
    found: str | None = label
    while found is not None and found not in known:
        match = _NUMBERED.fullmatch(found) or _EXPANDED.fullmatch(found)
        found = match[1] if match else None
    return found


def made_from(name: str, origins: Mapping[str, Origin]) -> frozenset[str]:
    """The labels of what was made from the model's node of this name, or from all nodes of this operator of it."""
    return frozenset(label for label, origin in origins.items() if name in (origin.operator, origin.node))


def model_operators(graph: Graph) -> int:
    """How many operators a graph as it came has for who made it: nodes of the model, and operators that no node became.

    Of a graph with kernels those within them count.
    """
    bodies = [node.body for node in graph.operators if node.body is not None]
    plain = {graph.origins.get(node.name, node.name) for node in graph.operators if node.body is None}
    return len(plain) + sum(map(model_operators, bodies))


def made_of(before: Graph, operators: Iterable[Node]) -> Mapping[Node, tuple[Node, ...]]:
    """For each of the ``operators`` those of the graph ``before`` that it was made from, by its label.

    A product and the sum behind it become a product with a bias under the sum's label: an opaque operator under the label of
    one that is none was made from the opaque ones as well that this one reads and that nothing else is named after.
    """
    known = {node.name: node for node in before.operators}
    labels = {node: origin_of(node.name, known) for node in operators}
    named = {known[label] for label in labels.values() if label is not None}
    return {
        node: () if label is None else (*_merged(node, known[label], named), known[label])
        for node, label in labels.items()
    }


def _merged(node: Node, origin: Node, named: set[Node]) -> Iterable[Node]:
    if node.op.kind is not Kind.OPAQUE or origin.op.kind is Kind.OPAQUE:
        return ()
    return (arg.node for arg in origin.args if arg.node.op.kind is Kind.OPAQUE and arg.node not in named)
