"""Recording operators that act on other processes: in the order in which their functions are called, read or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphkernel.ops.tensor.apply import compute_all
from graphkernel.ops.tensor.tensor import Tensor, record_all
from kernelgen.tensor.graph import Builder
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.types import Attrs


def apply_in_turn(op: Operator, operands: Sequence[Any], attrs: Mapping[str, object]) -> tuple[Any, ...]:
    """The results without the token: recorded where an operand is a Tensor, else computed."""
    builder = next((x.builder for x in operands if isinstance(x, Tensor)), None)
    if builder is None:
        return compute_all(op, *operands, **attrs)[:-1]
    return record_in_turn(op, builder, operands, attrs)


def record_in_turn(
    op: Operator, builder: Builder, operands: Sequence[Any], attrs: Mapping[str, object]
) -> tuple[Tensor, ...]:
    """The results without the token, which becomes the builder's; the operator has the token of the one before.

    It may have no ``operands`` but that, and ``attrs`` of its own.
    """
    before = () if builder.token is None else (Tensor(builder.token, builder),)
    if operands or before:
        results = record_all(op, *operands, *before, **attrs)
    else:
        results = tuple(Tensor(value, builder) for value in builder.node(op, (), Attrs.of(attrs)).outs)
    builder.token = results[-1].value
    return results[:-1]
