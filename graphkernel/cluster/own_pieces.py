"""Which pieces, cut, joined or padded, stay with the convolutions beside them on a CPU, and which gathers are kernels there.

A library runs convolutions and poolings with what lies between them. A kernel of ours for a Concat or a slice there would cut
its work in two: its operands and its result go from one part of the library's to the next.
It gathers rows of 384 numbers as fast, shorter ones two or three times slower, and gives them to memory: where indices were
looked at before, the kernel that reads rows gathers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from graphkernel.cluster.own_products import is_own
from graphkernel.ops.library.host import ONNX, operator_name
from graphkernel.ops.library.places import PLACES
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.indexing import GATHER
from kernelgen.tensor.operators.nn import AVG_POOL, CONV2D, MAX_POOL
from kernelgen.tensor.operators.padding import PAD_AKG
from kernelgen.tensor.operators.pieces import CONCAT, SPLIT, STRIDED_SLICE
from kernelgen.tensor.operators.shape import TRANSPOSE

PIECES = frozenset({CONCAT, PAD_AKG, SPLIT, STRIDED_SLICE})
MOVES = PIECES | {TRANSPOSE}
WINDOWS = frozenset({CONV2D, MAX_POOL, AVG_POOL})
WINDOWS_OF_ONNX = frozenset({
    "AveragePool", "Conv", "ConvInteger", "ConvTranspose", "GlobalAveragePool", "MaxPool", "QLinearConv", "Resize", "Upsample",
})  # fmt: skip


def pieces_beside_windows(graph: Graph) -> frozenset[Node]:
    """The pieces that lead only to, or come only from convolutions and poolings, through pointwise operators and moves."""
    order = graph.operators
    if not any(map(_is_window, order)):
        return frozenset()
    behind = _reached(order, lambda node: [value.node for value in node.args if not value.is_known])
    before = _reached(reversed(order), lambda node: graph.users[node])
    return frozenset(node for node in behind | before if is_piece(node))


def is_piece(node: Node) -> bool:
    """Whether it cuts, joins or pads, and no pass has made a kernel of its own of it."""
    return node.op in PIECES and not is_own(node)


def _reached(order: Iterable[Node], neighbours: Callable[[Node], Sequence[Node]]) -> set[Node]:
    found: set[Node] = set()
    for node in order:
        beside = neighbours(node)
        if beside and all(_is_window(other) or (other in found and _passes_on(other)) for other in beside):
            found.add(node)
    return found


def _is_window(node: Node) -> bool:
    return (node.op in WINDOWS and not is_own(node)) or (node.op is ONNX and operator_name(node) in WINDOWS_OF_ONNX)


def _passes_on(node: Node) -> bool:
    return node.op in MOVES or node.op.kind <= Kind.BROADCAST


def is_own_gather(node: Node) -> bool:
    """Whether it is a gather whose indices are known to be places of its axis."""
    if node.op is not GATHER or len(node.args) != 2:
        return False
    data, indices = node.args
    extent = data.type.shape[node.attrs.int("axis", 0)]
    if indices.op is PLACES:
        return indices.node.attrs["extent"] == extent
    known = indices.constant
    return known is not None and isinstance(extent, int) and bool(((known >= 0) & (known < extent)).all())
