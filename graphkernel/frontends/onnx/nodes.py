"""The nodes of a model as they are read: its functions written out, each node behind its operands, dead ones gone.

onnxruntime takes nodes in any order, so files have them in any. A result that nobody reads is a result that is left out:
an operator with a mask or indices that no node wants has a rule more often than one that must give them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from graphkernel.errors import FrontendError
from graphkernel.ops.library.host_bodies import read_by
from kernelgen.system.cached_property import cached_property
from kernelgen.system.limits import LIMITS

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

DEFAULT_DOMAIN = ""


@dataclass(frozen=True, eq=False)
class Placed:
    """A node, and where it stands in the file (with its functions written out)."""

    node: NodeProto
    position: int

    @property
    def place(self) -> str:
        """How errors call it: its position, operator, and name or first result."""
        first = next(filter(None, self.node.output), "")
        return f"node {self.position} {self.node.op_type} {self.node.name or f'-> {first}'}"

    @cached_property
    def operands(self) -> frozenset[str]:
        """The values that it needs, those that its bodies take from outside among them."""
        return frozenset(filter(None, read_by(self.node)))


def domain_of(name: str) -> str:
    """The domain, whose default has two names."""
    return DEFAULT_DOMAIN if name == "ai.onnx" else name


def opsets_of(model: ModelProto) -> dict[str, int]:
    """The version of each domain, as the model says, or one of its functions where the model says none."""
    found: dict[str, int] = {}
    for each in (model, *model.functions):
        for entry in each.opset_import:
            found.setdefault(domain_of(entry.domain), entry.version)
    return found


def nodes_of(model: ModelProto) -> list[Placed]:
    """All nodes, each behind those whose results it takes. Raises ``FrontendError`` where there is no such order."""
    written = _written_out(model) if model.functions else model.graph
    nodes = [Placed(node, position) for position, node in enumerate(written.node)]
    leaves = {info.name for info in model.graph.input} | {tensor.name for tensor in model.graph.initializer}
    makers = _makers(nodes, leaves)
    needs = {place: [makers[name] for name in _known(placed, makers, leaves)] for place, placed in enumerate(nodes)}
    if all(before < place for place, found in needs.items() for before in found):
        return nodes
    try:
        return [nodes[place] for place in TopologicalSorter(needs).static_order()]
    except CycleError as error:
        raise FrontendError(f"{nodes[error.args[1][0]].place}: its operands need its own result") from error


ACTING = frozenset({
    *(f"com.microsoft::{name}" for name in ("AllReduce", "AllGather", "AllToAll")),
    *(f"mindspore::{name}" for name in (
        "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "AllToAll", "Send", "Receive",
    )),
})  # fmt: skip
"""What other processes wait for, whether or not somebody reads its results."""


def live_nodes(nodes: Sequence[Placed], outputs: Iterable[str]) -> list[Placed]:
    """The nodes that the outputs or other processes need, without the names of results that nobody reads."""
    wanted = set(outputs)
    kept: list[Placed] = []
    for placed in reversed(nodes):
        if wanted.isdisjoint(placed.node.output) and f"{placed.node.domain}::{placed.node.op_type}" not in ACTING:
            continue
        wanted |= placed.operands
        kept.append(_without_results(placed, wanted))
    return kept[::-1]


def _without_results(placed: Placed, wanted: AbstractSet[str]) -> Placed:
    if all(not name or name in wanted for name in placed.node.output):
        return placed
    from onnx import NodeProto

    node = NodeProto()
    node.CopyFrom(placed.node)
    node.output[:] = [name if name in wanted else "" for name in node.output]
    return Placed(node, placed.position)


def _makers(nodes: Sequence[Placed], leaves: AbstractSet[str]) -> dict[str, int]:
    makers: dict[str, int] = {}
    for place, placed in enumerate(nodes):
        for name in filter(None, placed.node.output):
            if name in makers or name in leaves:
                raise FrontendError(f"{placed.place}: there is a value {name} before it")
            makers[name] = place
    return makers


def _known(placed: Placed, makers: Mapping[str, int], leaves: AbstractSet[str]) -> Iterator[str]:
    for name in sorted(placed.operands):
        if name in makers:
            yield name
        elif name not in leaves:
            raise FrontendError(f"{placed.place}: operand {name} is made by no node")


def _written_out(model: ModelProto) -> GraphProto:
    """The graph, without its weights, with the functions of the model in place of their calls."""
    from onnx import GraphProto, ModelProto
    from onnx.inliner import inline_local_functions

    functions = {(domain_of(each.domain), each.name, each.overload): each for each in model.functions}
    count = _Counter(functions).of(model.graph.node)
    if count > LIMITS.nodes:
        raise FrontendError(f"with its functions written out the model has {count} nodes; {LIMITS.nodes} are read")
    light = GraphProto(name=model.graph.name, node=model.graph.node, input=model.graph.input, output=model.graph.output)
    bare = ModelProto(
        ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions, graph=light
    )
    for nodes in (bare.graph.node, *(each.node for each in bare.functions)):
        _give_defaults(nodes, functions)
    _lift(bare)
    try:
        return inline_local_functions(bare, convert_version=True).graph
    except RuntimeError as error:
        raise FrontendError(f"the functions of the model cannot be written out at its opset: {error}") from error


def _lift(model: ModelProto) -> None:
    """Gives functions the opset of the model where their operators are the same in both.

    onnx converts the others, for which it needs types; nobody has written them down of values inside of functions.
    """
    at = opsets_of(model)[DEFAULT_DOMAIN]
    for function in model.functions:
        for entry in function.opset_import:
            if domain_of(entry.domain) == DEFAULT_DOMAIN and _are_the_same(function.node, entry.version, at):
                entry.version = at


def _are_the_same(nodes: Iterable[NodeProto], old: int, new: int) -> bool:
    """Whether the operators of ``nodes``, and of the bodies in them, are defined alike in two opsets."""
    return all(
        (domain_of(node.domain) != DEFAULT_DOMAIN or _since(node.op_type, old) == _since(node.op_type, new))
        and all(
            _are_the_same(body.node, old, new)
            for attribute in node.attribute
            for body in (attribute.g, *attribute.graphs)
        )
        for node in nodes
    )


def _since(operator: str, opset: int) -> int:
    """The opset that brought the definition of an operator which holds in ``opset``, 0 for one that it does not have."""
    from onnx import defs

    try:
        return defs.get_schema(operator, opset).since_version
    except defs.SchemaError:
        return 0


def _give_defaults(nodes: Iterable[NodeProto], functions: Mapping[tuple[str, str, str], FunctionProto]) -> None:
    """Writes into calls what functions say of attributes that are left out; onnx does not when it writes the bodies out."""
    for node in nodes:
        called = functions.get((domain_of(node.domain), node.op_type, node.overload))
        if called is not None:
            given = {attribute.name for attribute in node.attribute}
            node.attribute.extend(each for each in called.attribute_proto if each.name not in given)
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                _give_defaults(body.node, functions)


@dataclass
class _Counter:
    """How many nodes there are once functions are written out."""

    functions: Mapping[tuple[str, str, str], FunctionProto]

    def __post_init__(self) -> None:
        self._known: dict[tuple[str, str, str], int | None] = {}

    def of(self, nodes: Iterable[NodeProto]) -> int:
        """Of these nodes; ``FrontendError`` for a function that calls itself."""
        return sum(1 + self._inside((domain_of(node.domain), node.op_type, node.overload)) for node in nodes)

    def _inside(self, name: tuple[str, str, str]) -> int:
        if name not in self.functions:
            return 0
        if name not in self._known:
            self._known[name] = None
            self._known[name] = self.of(self.functions[name].node)
        found = self._known[name]
        if found is None:
            raise FrontendError(f"the function {name[1]} of the model calls itself")
        return found
