"""The pass graph_kernel_op_combiner: products that share an operand become one product, which reads it once.

Before and after::

    q = MatMul(x, wq); k = MatMul(x, wk)
        ==>
    w = Concat(wq, wk, axis=1); p = MatMul(x, w); q = p[:, :n]; k = p[:, n:]

Branches are MatMuls or BatchMatMuls with the same operand on the same side, the same transposes, the same data type and the
same batch; none waits for another. Their other operands are joined along the axis that survives the product. What that
costs: other operands that are not constants are copied, and so are the results, unless kernels take their slice where they
would have read the result. What it saves: the shared operand is read once. It is done when it saves more bytes than it
costs. One wide product may add up in another order than several narrow ones.

Source: MindSpore's graph_kernel_op_combiner and TVM's CombineParallelDense, which combine whatever has a common root.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from graphkernel import ops
from graphkernel.cluster.cost import byte_size, human, is_greater
from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.cluster.maximal_clusters import edges
from graphkernel.cluster.merge_dag import Reach
from graphkernel.cluster.ops_lists import cluster_ops
from graphkernel.ops import Tensor
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import CONSTANT, Builder, Graph, Node, Value, keep
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.operators.pieces import STRIDED_SLICE
from kernelgen.tensor.types import Dim, Sym

PASS_NAME = "graph_kernel_op_combiner"
PRODUCTS = frozenset({MATMUL, BATCH_MATMUL})
LEFT, RIGHT = 0, 1


@dataclass(frozen=True)
class Branches:
    """Products that share operand number ``side``."""

    nodes: tuple[Node, ...]
    side: int

    @property
    def shared(self) -> Value:
        """The operand that all have."""
        return self.nodes[0].args[self.side]

    @property
    def others(self) -> tuple[Value, ...]:
        """The operands that differ."""
        return tuple(node.args[1 - self.side] for node in self.nodes)

    @property
    def joined_axis(self) -> int:
        """The axis of the other operands that the product keeps."""
        rank = self.others[0].type.rank
        if self.side == LEFT:
            return rank - 2 if self.nodes[0].attrs.bool("transpose_b", False) else rank - 1
        return rank - 1 if self.nodes[0].attrs.bool("transpose_a", False) else rank - 2

    @property
    def result_axis(self) -> int:
        """The axis of the results along which they lie side by side."""
        rank = self.nodes[0].out.type.rank
        return rank - 1 if self.side == LEFT else rank - 2


@graph_pass
def graph_kernel_op_combiner(graph: Graph, context: Context) -> Graph:
    """Joins the products of one operand where that moves fewer bytes."""
    changed = graph
    while (found := next(_worthwhile(changed, context), None)) is not None:
        _record(found, context, "combined-products", _figures(changed, found, context))
        changed = _combined(changed, found)
    for branches in _groups(changed):
        _record(branches, context, "not-combined-products", _figures(changed, branches, context))
    return changed if changed is graph else with_unique_labels(changed)


def _record(branches: Branches, context: Context, code: str, message: str) -> None:
    first, *rest = branches.nodes
    for node in rest:
        context.log.add(PASS_NAME, code, first.name, node.name, message)


def _worthwhile(graph: Graph, context: Context) -> Iterator[Branches]:
    return (branches for branches in _groups(graph) if is_greater(*_balance(graph, branches, context)))


def _groups(graph: Graph) -> Iterator[Branches]:
    """The products that share an operand and agree in all else, in graph order; two at least."""
    position = {node: number for number, node in enumerate(graph.operators)}
    reach = Reach(len(position), edges(graph.operators))
    table: dict[tuple[int, object], list[Node]] = {}
    for node in graph.operators:
        for side in (LEFT, RIGHT):
            if node.op in PRODUCTS and _axis_is_known(node, side):
                table.setdefault(_key(node, side), []).append(node)
    for (side, _), nodes in table.items():
        independent: list[Node] = []
        for node in nodes:
            numbers = [position[member] for member in (*independent, node)]
            if reach.is_acyclic(numbers) and not any(arg.node in independent for arg in node.args):
                independent.append(node)
        if len(independent) > 1:
            yield Branches(tuple(independent), side)


def _key(node: Node, side: int) -> tuple[int, object]:
    """Equal for products that can be joined on this side."""
    other = node.args[1 - side].type
    agreement = (other.shape[:-2], other.rank, other.dtype, other.layout)
    return side, (node.args[side], node.op.name, repr(node.attrs), agreement)


def _axis_is_known(node: Node, side: int) -> bool:
    """Slices need the extent along which results lie side by side."""
    branches = Branches((node,), side)
    return not isinstance(branches.others[0].type.shape[branches.joined_axis], Sym)


def _balance(graph: Graph, branches: Branches, context: Context) -> tuple[Dim, Dim]:
    """The bytes saved and the bytes that joining costs."""
    saved = byte_size(branches.shared) * (len(branches.nodes) - 1)
    cost: Dim = 0
    for other, node in zip(branches.others, branches.nodes, strict=True):
        cost = cost + (0 if other.op is CONSTANT else 2 * byte_size(other))
        cost = cost + (0 if _is_read_in_kernels(graph, node, context) else 2 * byte_size(node.out))
    return saved, cost


def _is_read_in_kernels(graph: Graph, node: Node, context: Context) -> bool:
    """Whether a slice costs nothing, since the kernels that read it can hold it."""
    fusible = cluster_ops(context.options.target, context.options.ops_level)
    inside = all(user.op.name in fusible for user in graph.users[node])
    return inside and node not in graph.output_nodes and STRIDED_SLICE.name in fusible


def _figures(graph: Graph, branches: Branches, context: Context) -> str:
    saved, cost = _balance(graph, branches, context)
    return f"{len(branches.nodes)} products of {branches.shared.node.name}, saves {human(saved)}, copies {human(cost)}"


def _combined(graph: Graph, branches: Branches) -> Graph:
    """The graph with one product and slices of it; it stands where the last of the branches has its operands."""
    builder = Builder(origin=branches.nodes[0].name)
    results: dict[Node, Value] = {}
    others, axis = branches.others, branches.result_axis
    joined = ops.concat([Tensor(value, builder) for value in others], axis=branches.joined_axis).value
    operands = (branches.shared, joined) if branches.side == LEFT else (joined, branches.shared)
    product = Tensor(builder.node(branches.nodes[0].op, operands, branches.nodes[0].attrs).out, builder)
    start = 0
    for node in branches.nodes:
        extent = node.out.type.shape[axis]
        assert isinstance(extent, int), "groups have known extents"
        results[node] = product[(*[slice(None)] * axis, slice(start, start + extent))].value
        start += extent
    return _substituted(graph, results)


def _substituted(graph: Graph, results: dict[Node, Value]) -> Graph:
    """The graph in which readers of some nodes read other values; those need nothing of the nodes that they replace."""

    def current(value: Value) -> Value:
        return results.get(value.node, value)

    outputs = tuple(map(current, graph.outputs))
    moved: dict[Node, Node] = {}
    stack = [value.node for value in outputs]
    while stack:
        node = stack[-1]
        args = tuple(map(current, node.args))
        waiting = [arg.node for arg in args if arg.node not in moved]
        if waiting and node not in moved:
            stack.extend(waiting)
            continue
        stack.pop()
        if node not in moved:
            moved[node] = keep(node, tuple(Value(moved[arg.node], arg.index) for arg in args))
    return graph.with_outputs(tuple(Value(moved[value.node], value.index) for value in outputs))
