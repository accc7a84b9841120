"""The invariants of graphs, numbered. Passes may rely on them and must keep them.

That graphs have no cycles needs no check: nodes are immutable and made after their operands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelgen.errors import TypeRuleError, VerifyError
from kernelgen.tensor.compare import difference
from kernelgen.tensor.definitions import mentioned_by
from kernelgen.tensor.derived import FUNCTIONS
from kernelgen.tensor.graph import CONSTANT, FUSED, LEAVES, PARAMETER, Graph, Node, Value
from kernelgen.tensor.literals import RESERVED
from kernelgen.tensor.operator import Inferred
from kernelgen.tensor.order import broken_order
from kernelgen.tensor.types import Shape, TensorType, dtype

INVARIANTS: dict[str, str] = {
    "G1": "inputs are results of distinct Parameter nodes with distinct names",
    "G2": "every Parameter in use is an input",
    "G3": "operands and outputs name a result that their node has",
    "G4": "result types are those that the operator's type rule infers",
    "G5": "a constant, and nothing else, has content, and its type is the content's",
    "G6": "a fused node, and nothing else, has a body; its operands and results have the types of the body's boundary",
    "G7": "an alias joins an output and an input of one type; each output and each input is in one alias at most",
    "G8": "kernels of one name are identical, and no kernel has the name of an operator in use",
    "G9": (
        "every symbol occurs in the shape of an input, of a kernel's or of the graph around it, or is derived, once and from "
        "others before it, or one operator outside of kernels defines it, and is computed from nothing that is told it; no "
        "symbol is a word of the text form; extents are not negative"
    ),
    "G10": "outputs have one name each, or none has one",
    "G11": "operators that act on other processes are one chain of tokens, each used once; the last is the last output",
}


CARRIED = LEAVES | {FUSED}
"""The operators whose nodes carry their types: no rule infers them."""

Symbols = tuple[str, ...]
Boundary = tuple[object, ...]


@dataclass(frozen=True)
class Checked:
    """What earlier calls found: good nodes and good kernels, by the symbols that they may use, kernels of one name that
    are ``alike``, and what type rules inferred.

    Nodes never change and rules are functions, so none needs a second look. Attributes count as text. A kernel is
    known by its boundary: a :class:`Graph` compares by structure, which takes as long as looking again.
    """

    nodes: dict[Symbols, set[Node]] = field(default_factory=dict[Symbols, "set[Node]"])
    kernels: set[tuple[Symbols, Boundary]] = field(default_factory=set["tuple[Symbols, Boundary]"])
    alike: set[tuple[Boundary, Boundary]] = field(default_factory=set["tuple[Boundary, Boundary]"])
    inferred: Inferred = field(default_factory=Inferred)

    def agrees(self, node: Node) -> bool:
        """Whether the rule of a node's operator infers the result types that it has."""
        try:
            return self.inferred.of(node.op, _types_of(node.args), node.attrs) == node.types
        except TypeRuleError:
            return False


def verify(graph: Graph, checked: Checked | None = None) -> Checked:
    """Raises :class:`VerifyError` with the number of the first broken invariant.

    Returns what it found. A later call that is given it looks only at the nodes that are new since.
    """
    earlier = checked or Checked()
    found = Checked(inferred=earlier.inferred)
    for number, message in _broken(graph, earlier, found):
        raise VerifyError(number, f"{message} in graph {graph.name!r} ({INVARIANTS[number]})")
    return found


def broken(graph: Graph, checked: Checked | None = None) -> Iterator[tuple[str, str]]:
    """All broken invariants with what breaks them; the bodies of fused nodes are included, not what was ``checked``."""
    return _broken(graph, checked or Checked(), Checked())


def _broken(
    graph: Graph, earlier: Checked, found: Checked, around: Symbols = (), *, is_body: bool = False
) -> Iterator[tuple[str, str]]:
    """Those of a graph, or of a body, but for what ``earlier`` calls looked at, or this one, which tells it in ``found``.

    ``around`` are the symbols of the graph that a body stands in: a kernel is told those that its operands do not tell.
    """
    known = _known_symbols(graph, around)
    good, seen = earlier.nodes.get(known, frozenset[Node]()), found.nodes.setdefault(known, set())
    nodes = [node for node in graph.nodes if node not in good and node not in seen]
    seen.update(graph.nodes)
    for node in graph.operators:
        if node.body is not None and node in good:
            _carry(node.body, known, found)
    yield from _inputs(graph)
    astray = {node for node in nodes for maker, index in node.args if not 0 <= index < len(maker.types)}
    yield from _references(graph, astray)
    for node in nodes:
        op = node.op
        if op not in CARRIED and node not in astray and not found.agrees(node):
            yield "G4", _wrong_types(node)
        if op is CONSTANT or node.data is not None:
            yield from _content(node)
        if op is FUSED or node.body is not None:
            yield from _body(node, earlier, found, known)
    yield from _aliases(graph)
    if graph.results and len(graph.results) != len(graph.outputs):
        yield "G10", f"{len(graph.results)} names of {len(graph.outputs)} outputs"
    yield from _kernel_names(graph, earlier, found)
    for message in broken_order(graph, is_body=is_body):
        yield "G11", message
    yield from _symbols(nodes, known)
    yield from _derived(graph)
    yield from _definitions(graph)


def _boundary(graph: Graph) -> Boundary:
    """What makes it this graph: nodes never change, so two graphs with all of it in common are one."""
    return graph.inputs, graph.outputs, graph.aliases, graph.results, graph.derived


def _carry(body: Graph, around: Symbols, found: Checked) -> None:
    """A kernel that earlier calls looked at, and those inside, are found good without another look."""
    known, key = _known_symbols(body, around), (around, _boundary(body))
    if key in found.kernels:
        return
    found.kernels.add(key)
    found.nodes.setdefault(known, set()).update(body.nodes)
    for node in body.operators:
        if node.body is not None:
            _carry(node.body, known, found)


def _known_symbols(graph: Graph, around: Symbols) -> Symbols:
    own = graph.input_symbols
    if not (around or graph.derived or graph.defined_symbols):
        return own
    known = {*own, *around, *graph.defined_symbols, *(entry.name for entry in graph.derived)}
    return tuple(sorted(known)) if len(known) > len(own) else own


def _inputs(graph: Graph) -> Iterator[tuple[str, str]]:
    for value in graph.inputs:
        if value.node.op is not PARAMETER or value.index != 0:
            yield "G1", f"input {value.node.name} is a result of {value.op.name}"
    for name in _repeated(value.node.name for value in graph.inputs):
        yield "G1", f"two inputs are named {name!r}"
    given = {value.node for value in graph.inputs}
    for node in graph.nodes:
        if node.op is PARAMETER and node not in given:
            yield "G2", f"parameter {node.name} is used but is no input"


def _references(graph: Graph, nodes: Iterable[Node]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        for value in node.args:
            if not 0 <= value.index < len(value.node.types):
                yield "G3", _reference(value, f"operand of {node.name}")
    for value in graph.outputs:
        if not 0 <= value.index < len(value.node.types):
            yield "G3", _reference(value, "output")


def _reference(value: Value, place: str) -> str:
    return f"{place} is result {value.index} of {value.node.name}, which has {len(value.node.types)}"


def _wrong_types(node: Node) -> str:
    """What is wrong with the result types of an operator that do not agree with its rule."""
    try:
        inferred = node.op.infer(tuple([value.type for value in node.args]), node.attrs)
    except TypeRuleError as error:
        return f"{node.name}: {error}"
    return f"{node.op.name} {node.name} has {_text(node.types)}, its rule gives {_text(inferred)}"


def _content(node: Node) -> Iterator[tuple[str, str]]:
    if (node.data is not None) != (node.op is CONSTANT):
        yield "G5", f"{node.op.name} {node.name} {'has' if node.data is not None else 'lacks'} content"
    elif node.data is not None and (form := node.data.form) is not None:
        shape, of = form
        if not (len(node.types) == 1 and _is_form(node.types[0], shape, of)):
            yield "G5", f"constant {node.name}: {_text(node.types)} has content {of}{list(shape)}"


def _types_of(values: Iterable[Value]) -> tuple[TensorType, ...]:
    return tuple([maker.types[index] for maker, index in values])


def _is_form(type_: TensorType, shape: Shape, of: np.dtype[Any]) -> bool:
    """Whether an array of this shape and data type is the content of a constant of a type; few are opaque."""
    return type_.shape == shape and type_.dtype.numpy == of and not (type_.dtype.is_opaque and type_.dtype != dtype(of))


def _body(node: Node, earlier: Checked, found: Checked, known: Symbols) -> Iterator[tuple[str, str]]:
    if (node.body is not None) != (node.op is FUSED):
        yield "G6", f"{node.op.name} {node.name} {'has' if node.body is not None else 'lacks'} a body"
    if node.body is None:
        return
    operands, taken = _types_of(node.args), _types_of(node.body.inputs)
    if operands != taken:
        yield "G6", f"{node.name} has the operands {_text(operands)}, its body takes {_text(taken)}"
    given = tuple([maker.types[index] for maker, index in node.body.outputs if index < len(maker.types)])
    if node.types != given:
        yield "G6", f"{node.name} has {_text(node.types)}, its body gives {_text(given)}"
    for inner in node.body.operators if node.body.defined_symbols else ():
        if inner.defines:
            yield "G9", f"{inner.name} defines {', '.join(inner.defines)} in kernel {node.body.name!r}"
    key = (known, _boundary(node.body))
    if key in found.kernels:
        return
    if key in earlier.kernels:
        _carry(node.body, known, found)
        return
    found.kernels.add(key)
    for number, message in _broken(node.body, earlier, found, known, is_body=True):
        yield number, f"{message}, in kernel {node.body.name!r}"


def _aliases(graph: Graph) -> Iterator[tuple[str, str]]:
    if not graph.aliases:
        return
    for alias in graph.aliases:
        if not (0 <= alias.output < len(graph.outputs) and 0 <= alias.input < len(graph.inputs)):
            yield "G7", f"{alias} is out of range"
        elif graph.outputs[alias.output].type != graph.inputs[alias.input].type:
            yield "G7", f"{alias} joins {graph.outputs[alias.output].type} and {graph.inputs[alias.input].type}"
    for output in _repeated(alias.output for alias in graph.aliases):
        yield "G7", f"output {output} is in two aliases"
    for position in _repeated(alias.input for alias in graph.aliases):
        yield "G7", f"input {position} is in two aliases"


def _kernel_names(graph: Graph, earlier: Checked, found: Checked) -> Iterator[tuple[str, str]]:
    bodies = [node.body for node in graph.operators if node.body is not None]
    operators = {node.op.name for node in graph.nodes} if bodies else ()
    kernels: dict[str, Graph] = {}
    for body in bodies:
        if body.name in operators:
            yield "G8", f"kernel {body.name!r} has the name of an operator"
        first = kernels.setdefault(body.name, body)
        if first is body:
            continue
        pair = _boundary(first), _boundary(body)
        if pair not in earlier.alike and (why := difference(first, body)):
            yield "G8", f"two kernels are named {body.name!r}: {why}"
        else:
            found.alike.add(pair)


def _symbols(nodes: Sequence[Node], known: Collection[str]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        for type_ in node.types:
            if not type_.is_counted and (found := _wrong_extents(type_, known)):
                yield "G9", f"{node.name}: {found}"


def _wrong_extents(type_: TensorType, known: Collection[str]) -> str:
    """What is wrong with the extents of a type, empty where nothing is."""
    for name in type_.symbols:
        if name in RESERVED:
            return f"symbol {name} of {type_} is a reserved word"
        if name not in known:
            return f"symbol {name} of {type_} is in no input's shape"
    is_negative = any([isinstance(dim, int) and dim < 0 for dim in type_.shape])
    return f"{type_} has a negative extent" if is_negative else ""


def _derived(graph: Graph) -> Iterator[tuple[str, str]]:
    before = set(graph.input_symbols)
    for entry in graph.derived:
        if entry.function not in FUNCTIONS or entry.name in before or not before.issuperset(entry.symbols):
            yield "G9", f"{entry}: no function of what is known before it, or known before"
        before.add(entry.name)


def _definitions(graph: Graph) -> Iterator[tuple[str, str]]:
    """What is wrong with the symbols that operators define."""
    if not graph.defined_symbols:
        return
    told = {*graph.input_symbols, *(entry.name for entry in graph.derived)}
    for name in _repeated([*told, *graph.defined_symbols]):
        yield "G9", f"symbol {name} is defined twice"
    upto: dict[Node, frozenset[str]] = {}
    for node in graph.nodes:
        before = frozenset[str]().union(*[upto[maker] for maker, _ in node.args])
        for name in before.intersection(node.defines):
            yield "G9", f"{node.name} defines {name}, and is computed from what is told it"
        upto[node] = before | mentioned_by(node)


def _repeated(items: Iterable[object]) -> list[object]:
    every = tuple(items)
    if len(set(every)) == len(every):
        return []
    return [item for item, count in Counter(every).items() if count > 1]


def _text(types: Iterable[TensorType]) -> str:
    return f"({', '.join(map(str, types))})"
