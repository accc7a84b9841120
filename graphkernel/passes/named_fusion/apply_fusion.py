"""How a named fusion is applied: a finder proposes, the rest of the graph may object, then all is replaced in one go.

A finder looks at one node and says which nodes below it a product replaces. Whatever the pattern, four things hold before
anything is replaced: no other fusion has these nodes, nobody else needs a value that the product does not give, the
product accepts its operands and gives exactly the types that it stands for, and nothing waits for its own result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from graphkernel.cluster.fuse_nodes import in_order, with_unique_labels
from graphkernel.cluster.merge_dag import Reach
from graphkernel.errors import TypeRuleError
from graphkernel.expanders.base import Declined
from graphkernel.ops import Tensor, apply_all
from graphkernel.options import Options
from graphkernel.passes.base import Context, Pass
from kernelgen.tensor.graph import LEAVES, Builder, Graph, Node, Value, keep
from kernelgen.tensor.operator import Operator

Product = Callable[..., tuple[Tensor, ...]]


@dataclass(frozen=True)
class Site:
    """Where a finder looks: a node of a graph, with the options in force."""

    root: Node
    graph: Graph
    options: Options

    def users(self, value: Value) -> tuple[Node, ...]:
        """The nodes that use a value."""
        return tuple(node for node in self.graph.users[value.node] if value in node.args)

    def is_used(self, value: Value, besides: Sequence[Node] = ()) -> bool:
        """True when an output of the graph or a node besides the given ones needs the value."""
        return value in self.graph.outputs or any(node not in besides for node in self.users(value))


@dataclass(frozen=True)
class Fusion:
    """``nodes`` become ``product(*operands)``; its results stand for the values ``gives`` (None: for none that there was).

    Nodes that may stay where somebody else needs them (views of operands, constants) are not among ``nodes``: without
    users they vanish anyway.
    """

    nodes: tuple[Node, ...]
    operands: tuple[Value, ...]
    gives: tuple[Value | None, ...]
    product: Product

    @property
    def needed(self) -> tuple[Value, ...]:
        """The values that the product's results stand for."""
        return tuple(value for value in self.gives if value is not None)


Finder = Callable[[Site], Fusion | Declined | None]


def named_fusion(name: str) -> Callable[[Finder], Pass]:
    """Declares the pass ``name`` from a finder: None where there is nothing to see, Declined where a condition fails."""

    def declare(find: Finder) -> Pass:
        def run(graph: Graph, context: Context) -> Graph:
            return _to_fixpoint(graph, name, find, context)

        return Pass(name, run, find.__doc__ or "")

    return declare


def product(op: Operator, /, **attrs: object) -> Product:
    """The application of one operator."""
    return partial(apply_all, op, **attrs)


def _to_fixpoint(graph: Graph, name: str, find: Finder, context: Context) -> Graph:
    """Rounds until nothing is found; what declined is told once, after the last."""
    while True:
        found = list(_found(graph, find, context.options))
        chosen = [(root, fusion) for root, fusion in found if isinstance(fusion, Fusion)]
        if not chosen:
            break
        graph, gone = _replaced(graph, chosen)
        for root, fusion in chosen:
            context.log.add(name, "fused-named", root.name, message=_became(fusion, gone[root]))
    for root, declined in found:
        if isinstance(declined, Declined):
            context.log.add(name, "not-fused-named", root.name, message=declined.reason)
    return graph


def _found(graph: Graph, find: Finder, options: Options) -> Iterator[tuple[Node, Fusion | Declined]]:
    """What the finder sees at each node, with the objections of the graph."""
    rest: _Rest | None = None
    for node in graph.operators:
        found = find(Site(node, graph, options))
        if isinstance(found, Fusion):
            rest = rest or _Rest(graph)
            reason = rest.objection(found)
            found = Declined(reason) if reason else found
        if found is not None:
            yield node, found


class _Rest:
    """The rest of the graph, which objects to fusions or accepts them one after another."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._number = {node: number for number, node in enumerate(graph.operators)}
        self._reach = Reach(
            len(self._number),
            ((self._number[arg.node], number) for node, number in self._number.items() for arg in node.args
             if arg.node in self._number),
        )  # fmt: skip
        self._taken: set[Node] = set()

    def objection(self, fusion: Fusion) -> str | None:
        """Why the fusion cannot be, or None: then its nodes are taken."""
        reason = self._needed_elsewhere(fusion) or _misfit(fusion)
        if reason:
            return reason
        members = [self._number[node] for node in fusion.nodes]
        if not self._reach.is_acyclic(members):
            return "an operand is computed from a result of the product"
        self._reach.merge(members)
        self._taken.update(fusion.nodes)
        return None

    def _needed_elsewhere(self, fusion: Fusion) -> str | None:
        inside = set(fusion.nodes)
        given = set(fusion.needed)
        for node in fusion.nodes:
            if node in self._taken:
                return f"{node.op.name} {node.name} is part of another fusion"
            for value in node.outs:
                users = [user for user in self._graph.users[node] if user not in inside and value in user.args]
                if value not in given and (users or value in self._graph.outputs):
                    user = f"{users[0].op.name} {users[0].name}" if users else "the caller"
                    return f"{user} needs a result of {node.op.name} {node.name}, which the product does not give"
        return None


def _misfit(fusion: Fusion) -> str | None:
    """Why the product cannot stand where the nodes stand."""
    builder = Builder()
    operands = (builder.parameter(f"x{i}", value.type) for i, value in enumerate(fusion.operands))
    try:
        results = fusion.product(*(Tensor(operand, builder) for operand in operands))
    except TypeRuleError as error:
        return str(error)
    for result, value in zip(results, fusion.gives, strict=True):
        if value is not None and result.type != value.type:
            return f"the product gives {result.type} for {value.node.name} of type {value.type}"
    return None


def _replaced(graph: Graph, chosen: Sequence[tuple[Node, Fusion]]) -> tuple[Graph, Mapping[Node, tuple[str, ...]]]:
    """The graph with the products, and the names of the operators that each root has become."""
    position = {node: number for number, node in enumerate(graph.operators)}
    groups = {tuple(sorted(f.nodes, key=position.__getitem__)): (root, f) for root, f in chosen}
    moved: dict[Value, Value] = {value: value for node in graph.nodes if node.op in LEAVES for value in node.outs}
    became: dict[Node, tuple[str, ...]] = {}
    for unit in in_order(graph, list(groups)):
        if isinstance(unit, Node):
            made = keep(unit, tuple(moved[arg] for arg in unit.args))
            moved.update(zip(unit.outs, made.outs, strict=True))
            continue
        root, fusion = groups[unit]
        builder = Builder(origin=root.name)
        results = fusion.product(*(Tensor(moved[operand], builder) for operand in fusion.operands))
        named = _named([result.value for result in results], root.name)
        moved.update((old, new) for old, new in zip(fusion.gives, named, strict=True) if old is not None)
        became[root] = tuple(dict.fromkeys(value.op.name for value in named))
    return with_unique_labels(graph.with_outputs(tuple(moved[value] for value in graph.outputs))), became


def _named(results: Sequence[Value], label: str) -> tuple[Value, ...]:
    """The results of a product whose last node has the label of the node that it replaces."""
    last = results[0].node
    labelled = replace(last, name=label)
    return tuple(Value(labelled, value.index) if value.node is last else value for value in results)


def _became(fusion: Fusion, names: Sequence[str]) -> str:
    return f"{' + '.join(node.op.name for node in fusion.nodes)} became {' + '.join(names)}"
