"""What an operator needs to become statements: two functions, the first of which many share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernelgen.poly.lower.builder import Builder
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.tensor.graph import Node


@dataclass(frozen=True)
class Lowering:
    """``relate(axes, node)`` says which dims of operands and results run together, before any statement is made;
    ``lower(builder, node, name)`` makes the statements. Both raise UnsupportedError with a reason code.
    """

    relate: Callable[[TensorAxes, Node], None]
    lower: Callable[[Builder, Node, str], None]


def relate_broadcast(axes: TensorAxes, node: Node) -> None:
    """All operands pair with the result from the right."""
    axes.broadcast(node, node.args, axes.of(node.out))
