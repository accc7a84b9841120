"""Structural equality: of graphs, as the first difference in words, and of operators, as a key.

Labels of inner nodes and where they come from do not count; the graph's name, its inputs, the order and names of
outputs, aliases, attributes (bit for bit), constants (by digest) and which results are shared do. Constants may be
shared or repeated freely.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelgen.tensor.graph import Graph, Node, Value


def computation(node: Node, args: Sequence[Value]) -> Hashable:
    """Equal for operators that compute the same from ``args``: two operands of a commutative one stand in any order.

    Constants are compared by content and attributes as text, because 1 == True and 0.0 == -0.0.
    """
    operands = tuple([(value.node.data, value.type) if value.node.data else value for value in args])
    met = frozenset(operands) if node.op.commutative and len(operands) == 2 else operands
    return node.op, met, node.attrs.text, node.types


def difference(a: Graph, b: Graph, *, names: bool = True) -> str | None:
    """The first difference of the graphs ``a`` and ``b``, or None when they are equal; without ``names`` those of the
    boundary do not count.
    """
    if a is b:
        return None
    return _boundary(a, b, names) or _Pairing().graphs(a, b)


def _boundary(a: Graph, b: Graph, names: bool) -> str | None:
    if names and a.name != b.name:
        return f"names: {a.name!r} and {b.name!r}"
    if len(a.inputs) != len(b.inputs):
        return f"number of inputs: {len(a.inputs)} and {len(b.inputs)}"
    for position, (x, y) in enumerate(zip(a.inputs, b.inputs, strict=True)):
        if names and x.node.name != y.node.name:
            return f"name of input {position}: {x.node.name!r} and {y.node.name!r}"
        if x.type != y.type:
            return f"type of input {position} ({x.node.name}): {x.type} and {y.type}"
    if len(a.outputs) != len(b.outputs):
        return f"number of outputs: {len(a.outputs)} and {len(b.outputs)}"
    if names and a.results != b.results:
        return f"names of outputs: {a.output_names} and {b.output_names}"
    if sorted((x.output, x.input) for x in a.aliases) != sorted((x.output, x.input) for x in b.aliases):
        return f"aliases: {a.aliases} and {b.aliases}"
    if a.derived != b.derived:
        return f"extents: {', '.join(map(str, a.derived))} and {', '.join(map(str, b.derived))}"
    return None


@dataclass
class _Pairing:
    """Which node of one graph stands for which of the other; one to one, so that sharing is compared as well."""

    partner: dict[Node, Node] = field(default_factory=dict)
    reverse: dict[Node, Node] = field(default_factory=dict)

    def graphs(self, a: Graph, b: Graph) -> str | None:
        for x, y in zip(a.inputs, b.inputs, strict=True):
            self._pair(x.node, y.node)
        for position, (x, y) in enumerate(zip(a.outputs, b.outputs, strict=True)):
            found = self._values(x, y)
            if found:
                return f"output {position}: {found}"
        return None

    def _values(self, x: Value, y: Value) -> str | None:
        """Compares what two values are computed from, operands first, without recursion."""
        stack: list[tuple[Value, Value]] = [(x, y)]
        while stack:
            x, y = stack.pop()
            found = self._visit(x, y)
            if found is None:
                continue
            if isinstance(found, str):
                return found
            stack.extend(reversed(found))
        return None

    def _visit(self, x: Value, y: Value) -> str | list[tuple[Value, Value]] | None:
        a, b = x.node, y.node
        if x.index != y.index:
            return f"result {x.index} of {a.name} and result {y.index} of {b.name}"
        if self.partner.get(a) is b or a is b:
            return None
        if a.data is not None and b.data is not None:
            same = (a.data is b.data or a.data.digest == b.data.digest) and a.types == b.types
            return None if same else f"constants {a.name} and {b.name} differ: {a.types[0]} and {b.types[0]}"
        if a in self.partner or b in self.reverse:
            return f"{a.name} and {b.name} are shared differently"
        self._pair(a, b)
        return _nodes(a, b) or list(zip(a.args, b.args, strict=True))

    def _pair(self, a: Node, b: Node) -> None:
        self.partner[a] = b
        self.reverse[b] = a


def _nodes(a: Node, b: Node) -> str | None:
    if a.op is not b.op:
        return f"operators: {a.op.name} ({a.name}) and {b.op.name} ({b.name})"
    if a.attrs.text != b.attrs.text:  # as text: NaN equals itself, 0.0 is not -0.0 and 1 is not True
        return f"attributes of {a.op.name} {a.name}: {_attributes(a)} and {_attributes(b)}"
    if a.types != b.types:
        return f"types of {a.op.name} {a.name}: {', '.join(map(str, a.types))} and {', '.join(map(str, b.types))}"
    if len(a.args) != len(b.args):
        return f"number of operands of {a.op.name} {a.name}: {len(a.args)} and {len(b.args)}"
    if a.body is not None and b.body is not None:
        found = difference(a.body, b.body)
        return f"body of {a.name}: {found}" if found else None
    return None


def _attributes(node: Node) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in node.attrs.items()) or "none"
