"""Every operator by name, and the function of each: what importing the room loads when somebody asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from graphkernel.catalogue import OPERATOR_ROOMS, collect
from graphkernel.ops.functions import device as functions_device
from graphkernel.ops.functions import fused as functions_fused
from graphkernel.ops.functions import pointwise as functions
from graphkernel.ops.functions import shape as functions_shape
from graphkernel.ops.functions import storage as functions_storage
from graphkernel.ops.functions import training as functions_training
from graphkernel.ops.tensor.apply import apply, apply_all
from graphkernel.ops.tensor.other_names import instead
from graphkernel.ops.tensor.tensor import Tensor
from kernelgen.tensor.operator import Operator

OPS: Mapping[str, Operator] = MappingProxyType(
    {op.name: op for room in OPERATOR_ROOMS for op in collect(room, Operator)}
)

cast = functions.cast
matmul = functions.matmul
select = functions.select


def snake_case(name: str) -> str:
    """The Python name of an operator: ``ReduceSum`` is ``reduce_sum``, ``ReLU`` is ``relu``."""
    if name == "Shape":
        return "shape_of"  # the module of shape operators has the shorter name
    words = re.sub(
        r"(ReLU|GeLU|SiLU|MatMul|ACos|BCE|CSR(?=[A-Z])|Conv2D)", lambda match: match.group().capitalize(), name
    )
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[0-9])(?=[A-Z][a-z])", "_", words).lower()


_WRITTEN = (functions, functions_shape, functions_storage, functions_device, functions_training, functions_fused)
_BY_FUNCTION: Mapping[str, Operator] = MappingProxyType({snake_case(name): op for name, op in OPS.items()})


def function_called(name: str) -> Callable[..., Any]:
    """The function of an operator; AttributeError for a name that is none."""
    if name not in _BY_FUNCTION:
        raise AttributeError(f"no operator function {name!r}{instead(name, _BY_FUNCTION)}")
    written = (getattr(module, f"{name}_" if name == "slice" else name, None) for module in _WRITTEN)
    return next((function for function in written if function is not None), partial(apply, _BY_FUNCTION[name]))


def names() -> list[str]:
    """The names of all functions."""
    return sorted(_BY_FUNCTION)


__all__ = ["OPS", "Tensor", "apply", "apply_all", "cast", "function_called", "matmul", "names", "select", "snake_case"]
