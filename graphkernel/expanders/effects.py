"""Operators that write into an input: pure arithmetic and an Assign; the graph's aliases say where the result lands."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.base import expander
from graphkernel.ir.types import Attrs
from graphkernel.ops import Tensor
from graphkernel.ops.effects import ASSIGN


@expander("AssignAdd", wide=False)
def assign_add(target: Tensor, value: Tensor, *, attrs: Attrs) -> Tensor:
    """assign(target, target + value)"""
    return ops.apply(ASSIGN, target, target + value)
