"""Operators: declarations, and the Python functions that record or compute them.

Reading order:
``type_rules`` (operand types to result types), ``families`` (constructors of declarations), then one file a family:
``elemwise``, ``select``, ``cast``, ``reduce``, ``shape``, ``pieces``, ``matmul``, ``indexing`` are primitives;
``activation``, ``activation_ext`` and ``normalize`` are composites, and so is what training adds (``losses``,
``optimizers``, ``clipping``, ``batch_normalization``, ``gradients``, ``norm_gradients``, ``softmax_gradients``), built with
``exact`` and ``moments``; ``extents`` makes a symbolic dim a number; ``nn``, ``conv_gradients`` and ``host`` (with
``host_values``, what is no array of numbers) stay on the host library; ``effects`` write into inputs.
Other families: ``arithmetic`` (short formulas), ``complex_numbers``, ``sums``, ``status``, ``extremes``, ``scan``;
``creation`` and ``split_sizes``; ``slice_masks``; ``padding`` and ``layout``; ``scatter`` and ``csr`` (sparse rows);
``pool``, ``grouped_products``, ``linear_algebra``, ``attention_cache``; ``random`` on ``counter_random``;
``communication`` between devices.
``fused`` declares operators that are compositions of others, what named fusion passes make: ``fused_norm``,
``fused_quant``, ``fused_matmul``, ``fused_transformer``, ``fused_shape``.
``untraceable`` says what user functions cannot do and ``other_names`` what to write for it;
``tensor`` is what they compute with and ``apply`` records or computes; ``weak_typing`` and ``arguments`` say
what users may write loosely; ``functions``, ``functions_shape``, ``functions_storage``, ``functions_device``,
``functions_fused`` and ``functions_training`` give operators with attributes a Python signature; ``pickles`` says how a
pickle names operators.

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
from graphkernel.ir.opdef import OpDef
from graphkernel.ops import (
    functions,
    functions_device,
    functions_fused,
    functions_shape,
    functions_storage,
    functions_training,
    pickles,
)
from graphkernel.ops.apply import apply, apply_all
from graphkernel.ops.other_names import instead
from graphkernel.ops.tensor import Tensor

OPS: Mapping[str, OpDef] = MappingProxyType({op.name: op for op in collect(__name__, OpDef)})

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
_BY_FUNCTION: Mapping[str, OpDef] = MappingProxyType({snake_case(name): op for name, op in OPS.items()})


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__") or name not in _BY_FUNCTION:
        raise AttributeError(f"no operator function {name!r}{instead(name, _BY_FUNCTION)}")
    written = (getattr(module, f"{name}_" if name == "slice" else name, None) for module in _WRITTEN)
    return next((function for function in written if function is not None), partial(apply, _BY_FUNCTION[name]))


def __dir__() -> list[str]:
    return sorted({*globals(), *_BY_FUNCTION})


__all__ = ["OPS", "Tensor", "apply", "apply_all", "cast", "matmul", "pickles", "select", "snake_case"]
