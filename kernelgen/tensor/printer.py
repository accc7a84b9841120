"""Writes a graph as text; the grammar is in :mod:`kernelgen.tensor.text`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kernelgen.system.escape import line, markup
from kernelgen.tensor.compare import difference
from kernelgen.tensor.literals import INLINE_LIMIT, attribute_text, can_spell, element_text, name_text
from kernelgen.tensor.types import TensorType

if TYPE_CHECKING:
    from kernelgen.tensor.constant_data import ConstantData
    from kernelgen.tensor.graph import Graph, Node, Value

MOST_SHOWN = 40
"""How many operators a notebook shows."""


def show(graph: Graph) -> str:
    """The text of a graph, the bodies of its fused nodes above it; each distinct body is printed once."""
    kernels = _Kernels(_UniqueNames(_operator_names(graph)))
    kernels.gather(graph)
    blocks = ["\n".join(_block("kernel", body, name, kernels)) for body, name in kernels.names]
    return "\n\n".join([*blocks, "\n".join(_block("graph", graph, graph.name, kernels))]) + "\n"


def notebook_text(graph: Graph) -> str:
    """HTML: the text of a graph, up to a screenful of operators; of larger ones what goes in and comes out."""
    if len(graph.operators) <= MOST_SHOWN:
        return f"<pre>{markup(show(graph))}</pre>"
    inputs = [f"  {value.node.name}: {value.type}" for value in graph.inputs]
    outputs = [f"  {name}: {value.type}" for name, value in zip(graph.output_names, graph.outputs, strict=True)]
    told = [f"{graph.name}: {len(graph.operators)} operators", "inputs", *inputs, "outputs", *outputs]
    return f"<pre>{markup(chr(10).join(map(line, told)))}</pre>"


def large_constants(graph: Graph) -> Iterator[ConstantData]:
    """The constants that the text of a graph names by their digest."""
    for node in graph.nodes:
        if node.body is not None:
            yield from large_constants(node.body)
        elif node.data is not None and not _is_spelled(node):
            yield node.data


@dataclass
class _UniqueNames:
    """Hands out each name once; a second wish for it gets a number."""

    taken: set[str] = field(default_factory=set)
    numbers: dict[str, int] = field(default_factory=dict)

    def claim(self, wish: str, results: int = 1) -> str:
        number = self.numbers.get(wish, 1)
        while self.taken & (claimed := _result_names(f"{wish}_{number}" if number > 1 else wish, results)):
            number += 1
        self.numbers[wish] = number
        self.taken |= claimed
        return f"{wish}_{number}" if number > 1 else wish


def _result_names(name: str, results: int) -> set[str]:
    return {name} if results == 1 else {f"{name}_{i}" for i in range(results)}


@dataclass
class _Kernels:
    """The distinct bodies in the order of first use, innermost first, each with its printed name."""

    unique: _UniqueNames
    names: list[tuple[Graph, str]] = field(default_factory=list)

    def gather(self, graph: Graph) -> None:
        for node in graph.nodes:
            if node.body is not None and self._find(node.body) is None:
                self.gather(node.body)
                self.names.append((node.body, self.unique.claim(node.body.name)))

    def name_of(self, body: Graph) -> str:
        found = self._find(body)
        assert found is not None, "every body was gathered before"
        return found

    def _find(self, body: Graph) -> str | None:
        return next((n for known, n in self.names if known.name == body.name and not difference(known, body)), None)


def _operator_names(graph: Graph) -> set[str]:
    bodies = [node.body for node in graph.nodes if node.body is not None]
    return {node.op.name for node in graph.nodes}.union(*map(_operator_names, bodies))


def _block(keyword: str, graph: Graph, name: str, kernels: _Kernels) -> Iterator[str]:
    names = _node_names(graph)
    inputs = ", ".join(f"{names[value.node]}: {value.type}" for value in graph.inputs)
    derived = f" where {', '.join(map(str, graph.derived))}" if graph.derived else ""
    yield f"{keyword} {name_text(name)}({inputs}){derived} {{"
    parameters = {value.node for value in graph.inputs}
    for node in graph.nodes:
        if node in parameters or _is_inline(node):
            continue
        yield f"  {_constant(node, names) if node.data is not None else _operator(node, names, kernels)}"
    written = {alias.output: graph.inputs[alias.input] for alias in graph.aliases}
    called = [f"{name_text(name)} = " for name in graph.results] or [""] * len(graph.outputs)
    outputs = (
        called[i] + _operand(value, None, names) + (f" -> {names[written[i].node]}" if i in written else "")
        for i, value in enumerate(graph.outputs)
    )
    yield f"  return {', '.join(outputs)}".rstrip()
    yield "}"


def _node_names(graph: Graph) -> dict[Node, str]:
    """Printed names: the labels, made unique where two nodes share one."""
    unique = _UniqueNames()
    return {node: name_text(unique.claim(node.name, len(node.types))) for node in graph.nodes if not _is_inline(node)}


def _is_inline(node: Node) -> bool:
    """Scalar constants are written where they are used."""
    (type_, *_) = node.types
    known = node.data is not None and node.data.is_known
    return known and type_ == TensorType((), type_.dtype) and can_spell(type_.dtype)


def _is_spelled(node: Node) -> bool:
    """Whether a constant is small enough to stand in the text, if its content is known."""
    size = node.types[0].size
    return node.data is not None and node.data.is_known and isinstance(size, int) and size <= INLINE_LIMIT


def _constant(node: Node, names: dict[Node, str]) -> str:
    assert node.data is not None
    (type_,) = node.types
    array = node.data.array if _is_spelled(node) and can_spell(type_.dtype) else None
    if array is None:
        return f"const {names[node]}: {type_} = sha256:{node.data.digest}"
    elements = ", ".join(element_text(element, type_.dtype) for element in array.reshape(-1))
    return f"const {names[node]}: {type_} = [{elements}]"


def _operator(node: Node, names: dict[Node, str], kernels: _Kernels) -> str:
    results = ", ".join(f"{_result(value, names)}: {value.type}" for value in node.outs)
    implied = implied_dtype(node.args)
    operands = [_operand(value, implied, names) for value in node.args]
    attributes = [f"{name_text(name)}={attribute_text(value)}" for name, value in node.attrs.items()]
    name = kernels.name_of(node.body) if node.body is not None else node.op.name
    return f"{results} = {name_text(name)}({', '.join(operands + attributes)})"


def implied_dtype(args: tuple[Value, ...]) -> str:
    """The data type of literals without suffix: that of the first operand that is not a literal."""
    return next((value.type.dtype.short for value in args if not _is_inline(value.node)), "")


def _operand(value: Value, implied: str | None, names: dict[Node, str]) -> str:
    if not _is_inline(value.node):
        return _result(value, names)
    element, dtype = element_text(value.constant, value.type.dtype), value.type.dtype.short
    return element if dtype == implied else f"{element}:{dtype}"


def _result(value: Value, names: dict[Node, str]) -> str:
    name = names[value.node]
    if len(value.node.types) == 1:
        return name
    return f'{name[:-1]}_{value.index}"' if name.endswith('"') else f"{name}_{value.index}"
