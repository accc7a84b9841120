"""The graph: immutable nodes, values that name their results, and a builder.

A pass takes a Graph and returns a Graph, the same object when nothing changed. Nodes are compared by identity;
two graphs are equal when they have the same structure (:mod:`kernelgen.tensor.compare`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np

from kernelgen.system.cached_property import cached_property
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.attrs import NONE
from kernelgen.tensor.compare import difference
from kernelgen.tensor.constant_data import ConstantData, Contents, Derivation
from kernelgen.tensor.derived import Derived
from kernelgen.tensor.operator import CONSTANT, FUSED, LEAVES, PARAMETER, Inferred, Operator
from kernelgen.tensor.printer import notebook_text, show
from kernelgen.tensor.types import Attrs, DType, Shape, TensorType, dtype, symbols_of

DEFINES = "defines"
"""The attribute that lists the symbols that an operator defines."""


@dataclass(eq=False, repr=False, slots=True)  # all is Final: to make a frozen one takes four times as long
class Node:
    """An operator applied to values. ``name`` is a label, never looked up; ``body`` is set on fused nodes only."""

    op: Final[Operator]
    args: Final[tuple[Value, ...]]
    attrs: Final[Attrs]
    types: Final[tuple[TensorType, ...]]
    name: Final[str]
    body: Final[Graph | None] = None
    data: Final[ConstantData | None] = None

    @property
    def out(self) -> Value:
        """The only result; ``ValueError`` when there are several."""
        (_,) = self.types
        return _value(Value, (self, 0))

    @property
    def outs(self) -> tuple[Value, ...]:
        """All results."""
        if len(self.types) == 1:
            return (_value(Value, (self, 0)),)
        return tuple([_value(Value, (self, index)) for index in range(len(self.types))])

    @property
    def defines(self) -> tuple[str, ...]:
        """The symbols that it defines (:mod:`kernelgen.tensor.definitions`)."""
        for name, value in self.attrs.items_:
            if name == DEFINES:
                return cast("tuple[str, ...]", value)
        return ()

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.name}>"

    def __deepcopy__(self, memo: object) -> Node:
        return self  # it never changes


class Value(NamedTuple):
    """Result ``index`` of a node. Equal when it is the same result of the same node.

    A tuple, because values are the keys of most tables and tuples hash and compare fast.
    """

    node: Node
    index: int  # pyright: ignore[reportIncompatibleMethodOverride]  # nobody searches this tuple

    @property
    def type(self) -> TensorType:
        """Shape, data type and layout."""
        return self.node.types[self.index]

    @property
    def name(self) -> str:
        """The label of its node, with the number of the result where there are several."""
        return self.node.name if len(self.node.types) == 1 else f"{self.node.name}_{self.index}"

    @property
    def shape(self) -> Shape:
        """Its extents."""
        return self.node.types[self.index].shape

    @property
    def dtype(self) -> DType:
        """Its data type."""
        return self.node.types[self.index].dtype

    @property
    def layout(self) -> str:
        """How its elements lie."""
        return self.node.types[self.index].layout

    @property
    def op(self) -> Operator:
        """The operator that makes it."""
        return self.node.op

    @property
    def is_parameter(self) -> bool:
        """True for an input of a graph."""
        return self.node.op is PARAMETER

    @property
    def constant(self) -> np.ndarray | None:
        """The content, if this is a constant whose content is known; it may have to be made first."""
        return self.node.data.array if self.node.data is not None else None

    @property
    def is_known(self) -> bool:
        """Whether this is a constant whose content is known."""
        return self.node.data is not None and self.node.data.is_known


Rewrite = Callable[[Node, tuple[Value, ...]], Sequence[Value]]
Changed = dict[tuple[Node, int], Value]  # a value equals its pair, which is made faster
Places = Sequence[tuple[int, int]]

_value = tuple.__new__
"""Makes a ``Value`` of a pair, without the call of Python that its class takes: graphs make millions."""


class Alias(NamedTuple):
    """Output ``output`` is written into the buffer of input ``input``: how effects such as Assign are told."""

    output: int
    input: int


class Origin(NamedTuple):
    """The node of a model that operators were made from: its operator there, and its name, empty where it has none."""

    operator: str
    node: str


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A named function from inputs to outputs. ``inputs`` are results of Parameter nodes.

    ``results`` are the names of the outputs, none where nobody named them. ``origins`` tells by label which node of a
    model an operator comes from; they are labels themselves, and like those make no graph another one.
    ``derived`` says what extents are whose symbols stand in no input.
    """

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    aliases: tuple[Alias, ...] = ()
    results: tuple[str, ...] = ()
    origins: Mapping[str, Origin] = field(default_factory=dict[str, Origin])
    derived: tuple[Derived, ...] = ()

    @cached_property
    def input_names(self) -> tuple[str, ...]:
        """The names of the inputs, as the model or the function has them."""
        return tuple(value.node.name for value in self.inputs)

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """The names of the outputs: the model's, else ``output`` or ``output_0``, ``output_1``, ..."""
        if self.results or len(self.outputs) == 1:
            return self.results or ("output",)
        return tuple(f"output_{position}" for position in range(len(self.outputs)))

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes that outputs need, operands before users, leaves included; a fixed order for a fixed graph."""
        order = [value.node for value in self.inputs]
        seen = set(order)
        for output in self.outputs:
            _visit(output.node, seen, order)
        return tuple(order)

    @cached_property
    def operators(self) -> tuple[Node, ...]:
        """The nodes that compute: no parameters, no constants."""
        return tuple([node for node in self.nodes if node.op not in LEAVES])

    @cached_property
    def users(self) -> Mapping[Node, tuple[Node, ...]]:
        """For each node the nodes that use a result of it, each once, in topological order."""
        table: dict[Node, list[Node]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            for maker, _ in node.args:
                if not (found := table[maker]) or found[-1] is not node:
                    found.append(node)
        return {node: tuple(found) for node, found in table.items()}

    @cached_property
    def ordered(self) -> tuple[Node, ...]:
        """The operators that act on other processes (:mod:`kernelgen.tensor.order`), or whose kernel does."""
        return tuple(
            [node for node in self.operators if node.op.traits.ordered or (node.body is not None and node.body.ordered)]
        )

    @cached_property
    def input_symbols(self) -> tuple[str, ...]:
        """The symbols in the shapes of inputs, sorted."""
        return symbols_of(dim for value in self.inputs if not value.type.is_counted for dim in value.type.shape)

    @cached_property
    def defined_symbols(self) -> tuple[str, ...]:
        """The symbols that operators define (:mod:`kernelgen.tensor.definitions`), as often as they do."""
        defining = [node for node in self.operators for name, _ in node.attrs.items_ if name == DEFINES]
        return tuple([name for node in defining for name in node.defines])

    @cached_property
    def output_nodes(self) -> frozenset[Node]:
        """The nodes of which a result is a graph output."""
        return frozenset(value.node for value in self.outputs)

    def rebuild(self, rewrite: Rewrite, among: Container[Node] | None = None, changed: Changed | None = None) -> Graph:
        """Maps operator nodes bottom-up; ``rewrite(node, new_args)`` gives the values that replace a node's results.

        It is asked about nodes ``among`` these, by default all; others stay as they are, as do those for which it
        returns ``keep(node, new_args).outs``. ``changed`` takes what became of each value that is another now; the same
        graph comes back where none is. Raises ValueError where ``rewrite`` gives more values, or fewer.
        """
        changed = {} if changed is None else changed
        for node in self.operators:
            args = tuple([changed.get(arg, arg) for arg in node.args]) if changed else node.args
            if among is not None and node not in among:
                if args != node.args:
                    become(changed, node, keep(node, args))
                continue
            results = rewrite(node, args)
            if len(results) != len(node.types):
                raise ValueError(f"{len(results)} values for the {len(node.types)} results of {node.name}")
            for index, new in enumerate(results):
                if new[0] is not node or new[1] != index:
                    changed[node, index] = new
        return self.with_outputs(tuple([changed.get(value, value) for value in self.outputs]))

    def with_outputs(self, outputs: tuple[Value, ...]) -> Graph:
        """The same function boundary over other outputs, which keep their names; the same object when they are the same."""
        if outputs == self.outputs:
            return self
        return Graph(self.name, self.inputs, outputs, self.aliases, self.results, self.origins, self.derived)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and difference(self, other) is None

    def __hash__(self) -> int:
        return hash((self.name, tuple(value.type for value in self.inputs + self.outputs), len(self.nodes)))

    def __str__(self) -> str:
        return show(self)

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self.operators)} operators>"

    def _repr_html_(self) -> str:
        return notebook_text(self)

    def __deepcopy__(self, memo: object) -> Graph:
        return self  # it never changes

    def __reduce__(self) -> tuple[Callable[..., Graph], tuple[object, ...]]:
        """Nodes in their order with the places of their operands: no recursion, however deep the graph is."""
        places = {node: place for place, node in enumerate(self.nodes)}

        def named(values: Iterable[Value]) -> Places:
            return tuple((places[value.node], value.index) for value in values)

        table = [
            (node.op, named(node.args), node.attrs, node.types, node.name, node.body, node.data) for node in self.nodes
        ]
        more = self.aliases, self.results, self.origins, self.derived
        return _from_table, (self.name, table, named(self.inputs), named(self.outputs), *more)


def _from_table(name: str, table: Iterable[tuple[Any, ...]], inputs: Places, outputs: Places, *more: Any) -> Graph:
    """The graph that was pickled; ``more`` are its fields behind the outputs."""
    nodes: list[Node] = []

    def values(places: Places) -> tuple[Value, ...]:
        return tuple(Value(nodes[place], index) for place, index in places)

    for op, operands, *others in table:
        nodes.append(Node(op, values(operands), *others))
    return Graph(name, values(inputs), values(outputs), *more)


def keep(node: Node, args: tuple[Value, ...]) -> Node:
    """The node over other operands; itself when they are the same. The result types are taken over."""
    if args == node.args:
        return node
    return Node(node.op, args, node.attrs, node.types, node.name, node.body, node.data)


def become(changed: Changed, node: Node, made: Node) -> None:
    """Notes in ``changed`` that the results of a ``node`` are now those of the one that was ``made`` in its place."""
    for index in range(len(node.types)):
        changed[node, index] = _value(Value, (made, index))


def _visit(root: Node, seen: set[Node], order: list[Node]) -> None:
    """Depth-first post-order without recursion, so that long chains are fine."""
    if root in seen:
        return
    seen.add(root)
    stack = [(root, iter(root.args))]
    while stack:
        node, operands = stack[-1]
        for maker, _ in operands:
            if maker not in seen:
                seen.add(maker)
                if maker.args:
                    stack.append((maker, iter(maker.args)))
                    break
                order.append(maker)
        else:
            order.append(node)
            stack.pop()


@dataclass
class Builder:
    """Makes nodes with checked types and unique labels. With ``intern=True`` equal nodes are made once.

    ``effects`` lists (input, value written into it) in order; whoever makes the graph turns them into aliases.
    ``token`` is that of the last ordered operator (:mod:`kernelgen.tensor.order`), which becomes the graph's last output.
    ``origin`` is the label of the node that the new ones stand for: they are called ``origin.0``, ``origin.1``, ...
    What type rules infer is kept in ``inferred``, which builders may share. Nodes are immutable; only tables grow.
    """

    intern: bool = False
    origin: str = ""
    effects: list[tuple[Value, Value]] = field(default_factory=list)
    token: Value | None = None
    inferred: Inferred = field(default_factory=Inferred)
    _labels: dict[str, int] = field(default_factory=dict)
    _interned: dict[object, Node] = field(default_factory=dict)
    _contents: Contents = field(default_factory=Contents)

    def parameter(self, name: str, type_: TensorType) -> Value:
        """An input of the graph. It has the name itself, whatever that is, unless an earlier one took it."""
        is_taken, label = name in self._labels, self.label(name)
        return Node(PARAMETER, (), NONE, (type_,), label if is_taken else name).out

    def constant(self, array: object, of: DType | str | None = None) -> Value:
        """A constant from anything numpy takes; ``of`` is its data type (default: as numpy says, floats are float32)."""
        raw = np.asarray(array)
        if of is None and isinstance(array, float):
            of = "float32"
        content = raw if of is None else raw.astype(dtype(of).numpy, copy=False)
        type_ = TensorType(tuple(int(d) for d in content.shape), dtype(content.dtype))
        return self._holding(self._contents.of(content), type_)

    def derived(self, function: Callable[..., np.ndarray], *sources: Value, of: TensorType) -> Value:
        """The constant ``function(*contents of sources)`` of type ``of``, made when it is first read: a :class:`Derivation`."""
        given = tuple(source.node.data for source in sources if source.node.data is not None)
        return self._holding(self._contents.derived(Derivation(function, given, of)), of)

    def _holding(self, data: ConstantData, type_: TensorType) -> Value:
        key = ("constant", data)
        if self.intern and key in self._interned:
            return self._interned[key].out
        made = Node(CONSTANT, (), NONE, (type_,), self.label("c"), data=data)
        return (self._interned.setdefault(key, made) if self.intern else made).out

    def emit(self, op: Operator, /, *args: Value, name: str = "", **attrs: object) -> Value:
        """Applies an operator with one result; raises ``TypeRuleError`` when the operands do not fit."""
        return self.node(op, args, Attrs.of(attrs), name).out

    def node(self, op: Operator, args: Iterable[Value], attrs: Attrs = NONE, name: str = "") -> Node:
        """A node of any number of results: ``op`` on ``args`` with ``attrs``, called ``name``, else by a number."""
        operands = tuple(args)
        if not self.intern:
            return self._made(op, operands, attrs, name)
        key = (op, operands, attrs.text)  # as text, because 1 == True == 1.0 and 0.0 == -0.0
        return self._interned.get(key) or self._interned.setdefault(key, self._made(op, operands, attrs, name))

    def _made(self, op: Operator, operands: tuple[Value, ...], attrs: Attrs, name: str) -> Node:
        types = self.inferred.of(op, tuple([maker.types[index] for maker, index in operands]), attrs)
        return Node(op, operands, attrs, types, self.label(name or "t"))

    def fused(self, body: Graph, args: Iterable[Value], name: str = "") -> Node:
        """A call of a kernel ``body`` on ``args``, called ``name``."""
        types = tuple([value.type for value in body.outputs])
        return Node(FUSED, tuple(args), NONE, types, self.label(name or body.name), body)

    def label(self, wish: str) -> str:
        """The wish, made unique by a number; ``t`` and ``c`` are always numbered, behind the origin if there is one."""
        count = self._labels.get(wish, 0)
        self._labels[wish] = count + 1
        if wish in ("t", "c"):
            return f"{self.origin}.{'' if wish == 't' else wish}{count}" if self.origin else f"{wish}{count}"
        return f"{wish}_{count}" if count else wish
