"""Operators that write into an input. They expand to pure arithmetic: the graph's aliases say where the result lands."""

from __future__ import annotations

from graphkernel.expanders.base import expander
from graphkernel.ops import Tensor
from kernelgen.tensor.operators import effects
from kernelgen.tensor.types import Attrs


@expander(effects.ASSIGN_ADD, wide=False)
def assign_add(target: Tensor, value: Tensor, *, attrs: Attrs) -> Tensor:
    """target + value"""
    return target + value
