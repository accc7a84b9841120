"""Operators: declarations, and the Python functions that record or compute them.

Reading order:
``type_rules`` (operand types to result types), ``families`` (constructors of declarations), then one file a family:
``elemwise``, ``select``, ``cast``, ``reduce``, ``shape``, ``pieces``, ``matmul``, ``indexing`` are primitives;
``activation`` and ``normalize`` are composites; ``nn`` and ``host`` stay on the host library; ``effects`` write into
inputs.
``tensor`` is what user functions compute with and ``apply`` records or computes; ``weak_typing`` and ``arguments`` say
what users may write loosely; ``functions`` and ``functions_shape`` give operators with attributes a Python signature.

``OPS`` maps each name to its declaration; a declaration anywhere in this directory is in it. Every operator is also a
function here under its snake_case name: ``ops.add(ops.mul(x, 2.0), 1.0)``, ``ops.reduce_sum(x, axis=-1)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from graphkernel.catalogue import collect
from graphkernel.errors import nearest
from graphkernel.ir.opdef import OpDef
from graphkernel.ops import functions, functions_shape
from graphkernel.ops.apply import apply, apply_all
from graphkernel.ops.tensor import Tensor

OPS: Mapping[str, OpDef] = MappingProxyType({op.name: op for op in collect(__name__, OpDef)})

cast = functions.cast
matmul = functions.matmul
select = functions.select


def snake_case(name: str) -> str:
    """The Python name of an operator: ``ReduceSum`` is ``reduce_sum``, ``ReLU`` is ``relu``."""
    words = re.sub(r"(ReLU|GeLU|SiLU|MatMul|ACos)", lambda match: match.group().capitalize(), name)
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[0-9])(?=[A-Z][a-z])", "_", words).lower()


_BY_FUNCTION: Mapping[str, OpDef] = MappingProxyType({snake_case(name): op for name, op in OPS.items()})


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__") or name not in _BY_FUNCTION:
        raise AttributeError(f"no operator function {name!r}{nearest(name, _BY_FUNCTION)}")
    written = (
        getattr(module, f"{name}_" if name == "slice" else name, None) for module in (functions, functions_shape)
    )
    return next((function for function in written if function is not None), partial(apply, _BY_FUNCTION[name]))


def __dir__() -> list[str]:
    return sorted({*globals(), *_BY_FUNCTION})


__all__ = ["OPS", "Tensor", "apply", "apply_all", "cast", "matmul", "select", "snake_case"]
