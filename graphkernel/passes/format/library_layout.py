"""Which operators on images a library computes in the layout of its convolutions: all others cut its work.

onnxruntime puts channels in blocks, and keeps them so from one convolution to the next as long as there are windows, parts
of images and ends of convolutions alone. Whatever else is in between, kernels compute: the library changes its layout before
and behind, and is called once more.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.elemwise import ADD, MAXIMUM, MINIMUM, TANH

ACTIVATIONS = frozenset({MAXIMUM, MINIMUM, TANH})
"""What onnxruntime computes of a convolution's results while they are in registers, beside a bias and a residual."""


def within_library(nodes: Iterable[Node]) -> frozenset[Node]:
    """Those of ``nodes`` on images, given in order, that a library computes in the layout of its convolutions: what is made
    of windows and of parts, and the ends of convolutions.
    """
    held: dict[Node, None] = {}
    for node in nodes:
        if node.op.kind not in (Kind.ELEMWISE, Kind.BROADCAST, Kind.REDUCE) or _is_end(node, held):
            held[node] = None
    return frozenset(held)


def _is_end(node: Node, held: Container[Node]) -> bool:
    """Whether a library adds an operator to the results of one that it has ``held``: a bias or an image, or an activation."""
    others = [arg for arg in node.args if arg.node not in held]
    is_activation = node.op in ACTIVATIONS and all(arg.type.size == 1 for arg in others)
    return len(others) < len(node.args) and (is_activation or (node.op is ADD and all(map(_is_large, others))))


def _is_large(value: Value) -> bool:
    return value.type.size != 1
