"""Element-wise operators and broadcasts: ``out[i] = f(operands at the broadcast of i)``."""

from __future__ import annotations

from kernelgen.composite.description import OpDesc
from kernelgen.composite.scalar_rules import scalar_rule
from kernelgen.errors import UnsupportedError
from kernelgen.poly.lower.builder import ALGEBRA, Builder
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.model.factored_axes import TensorAxes


def relate_broadcast(axes: TensorAxes, op: OpDesc) -> None:
    """All operands pair with the result from the right."""
    axes.broadcast(op, op.inputs, axes.of(op.output))


def lower_pointwise(builder: Builder, op: OpDesc, name: str) -> None:
    """The rule of ``op`` on its operands, as the statement ``name`` of ``builder``. Raises UnsupportedError where it
    has none.
    """
    rule = scalar_rule(op)
    if rule is None:
        raise UnsupportedError("unsupported-op", f"operator {op.name!r} has no rule for one element")
    points = builder.points(op.output)
    operands = [builder.read(operand, points) for operand in op.inputs]
    builder.define(op.output, points, rule(ALGEBRA, operands, op), name)


def lower_broadcast(builder: Builder, op: OpDesc, name: str) -> None:
    """The operand of ``op`` itself, as the statement ``name`` of ``builder``."""
    points = builder.points(op.output)
    builder.define(op.output, points, builder.read(op.inputs[0], points), name)


POINTWISE = Lowering(relate_broadcast, lower_pointwise)
BROADCAST = Lowering(relate_broadcast, lower_broadcast)
