"""Element-wise operators and broadcasts: ``out[i] = f(operands at the broadcast of i)``."""

from __future__ import annotations

from kernelgen.composite.scalar_rules import scalar_rule
from kernelgen.errors import UnsupportedError
from kernelgen.poly.lower.builder import ALGEBRA, Builder
from kernelgen.poly.lower.lowering import Lowering, relate_broadcast
from kernelgen.tensor.graph import Node


def lower_pointwise(builder: Builder, node: Node, name: str) -> None:
    """The rule of ``node`` on its operands, as the statement ``name`` of ``builder``. Raises UnsupportedError where it
    has none.
    """
    rule = scalar_rule(node)
    if rule is None:
        raise UnsupportedError("unsupported-op", f"operator {node.op.name!r} has no rule for one element")
    points = builder.points(node.out)
    operands = [builder.read(operand, points) for operand in node.args]
    builder.define(node.out, points, rule(ALGEBRA, operands, node), name)


def lower_broadcast(builder: Builder, node: Node, name: str) -> None:
    """The operand of ``node`` itself, as the statement ``name`` of ``builder``."""
    points = builder.points(node.out)
    builder.define(node.out, points, builder.read(node.args[0], points), name)


POINTWISE = Lowering(relate_broadcast, lower_pointwise)
BROADCAST = Lowering(relate_broadcast, lower_broadcast)
