"""The pass tokens_as_images: tokens [N, S, C] that become images and images that become tokens have channels last already.

Before and after, with S = H W::

    x = Reshape(Transpose(t, (0, 2, 1)), (N, C, H, W))    ==>    x = Transpose(Reshape(t, (N, H, W, C)), (0, 3, 1, 2))
    t = Transpose(Reshape(x, (N, C, S)), (0, 2, 1))       ==>    t = Reshape(Transpose(x, (0, 2, 3, 1)), (N, S, C))

So SegFormer, PVT and others put convolutions between layers of a transformer. Where the convolution has channels last, no
transposition is left; where it has not, one moves as much as before.
"""

from __future__ import annotations

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.format.layouts import IMAGE, TURNED, inverse, order
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.operators.shape import RESHAPE, TRANSPOSE
from kernelgen.tensor.types import Shape


@graph_pass
def tokens_as_images(graph: Graph, context: Context) -> Graph:
    """Turns images instead of tokens, where a graph has convolutions."""
    if not any(node.op is CONV2D for node in graph.operators):
        return graph
    builder = context.builder()

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        (source,) = args[0].node.args
        if node.op is RESHAPE:
            count, channels, *sides = node.out.type.shape
            last = builder.emit(RESHAPE, source, shape=(count, *sides, channels))
            return (builder.emit(TRANSPOSE, last, perm=inverse(IMAGE), name=node.name),)
        last = builder.emit(TRANSPOSE, source, perm=order(IMAGE))
        return (builder.emit(RESHAPE, last, shape=node.out.type.shape, name=node.name),)

    made = graph.rebuild(rewrite, frozenset(node for node in graph.operators if _enters(node) or _leaves(node)))
    return made if made is graph else with_unique_labels(made)


def _enters(node: Node) -> bool:
    """Whether it makes images of turned tokens."""
    return (
        node.op is RESHAPE and _is_turned(node.args[0].node) and _is_flat(node.out.type.shape, node.args[0].type.shape)
    )


def _leaves(node: Node) -> bool:
    """Whether it turns the tokens that a Reshape makes of images."""
    if not _is_turned(node) or node.args[0].op is not RESHAPE:
        return False
    return _is_flat(node.args[0].node.args[0].type.shape, node.args[0].type.shape)


def _is_turned(node: Node) -> bool:
    return node.op is TRANSPOSE and node.attrs.ints("perm") == TURNED


def _is_flat(image: Shape, line: Shape) -> bool:
    """Whether a ``line``, of three dims, is an ``image`` whose rows stand behind each other."""
    return len(image) == IMAGE and image[:2] == line[:2]
