"""What an operator needs to become statements: two functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernelgen.composite.description import OpDesc
from kernelgen.poly.lower.builder import Builder
from kernelgen.poly.model.factored_axes import TensorAxes


@dataclass(frozen=True)
class Lowering:
    """``relate(axes, op)`` says which dims of operands and results run together, before any statement is made;
    ``lower(builder, op, name)`` makes the statements. Both raise UnsupportedError with a reason code.
    """

    relate: Callable[[TensorAxes, OpDesc], None]
    lower: Callable[[Builder, OpDesc, str], None]
