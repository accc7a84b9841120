"""Every operator by name, and the function of each: what importing the room loads when somebody asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from graphkernel.catalogue import OPERATOR_ROOMS, collect
from graphkernel.ops.functions import written
from graphkernel.ops.functions.derived import function_of
from graphkernel.ops.tensor.apply import apply, apply_all
from graphkernel.ops.tensor.other_names import instead
from graphkernel.ops.tensor.tensor import Tensor
from kernelgen.tensor.operator import Operator

OPS: Mapping[str, Operator] = MappingProxyType(
    {op.name: op for room in OPERATOR_ROOMS for op in collect(room, Operator)}
)

matmul = written.matmul
select = written.select


def snake_case(name: str) -> str:
    """The Python name of an operator: ``ReduceSum`` is ``reduce_sum``, ``ReLU`` is ``relu``."""
    if name == "Shape":
        return "shape_of"  # the module of shape operators has the shorter name
    words = re.sub(
        r"(ReLU|GeLU|SiLU|MatMul|ACos|BCE|CSR(?=[A-Z])|Conv2D)", lambda match: match.group().capitalize(), name
    )
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[0-9])(?=[A-Z][a-z])", "_", words).lower()


_BY_FUNCTION: Mapping[str, Operator] = MappingProxyType({snake_case(name): op for name, op in OPS.items()})


@cache
def function_called(name: str) -> Callable[..., Any]:
    """The function of an operator. Raises AttributeError for a name that is none, with those that are near."""
    if name not in _BY_FUNCTION:
        raise AttributeError(f"no operator function {name!r}{instead(name, _BY_FUNCTION)}")
    return getattr(written, name, None) or function_of(_BY_FUNCTION[name], name)


cast = function_called("cast")


def names() -> list[str]:
    """The names of all functions."""
    return sorted(_BY_FUNCTION)


__all__ = ["OPS", "Tensor", "apply", "apply_all", "cast", "function_called", "matmul", "names", "select", "snake_case"]
