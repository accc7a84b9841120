"""Constructor of composite operators that compute in float64 whatever their operands are.

The meaning widens every operand to float64, computes, and rounds each result once to the data type that the type rule
promises (float16 and bfloat16 by way of float32, as everywhere).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from kernelgen.tensor.operator import PLAIN, Attribute, InferRule, Kind, Operator, Traits
from kernelgen.tensor.operators.families import Array, array_of, declare
from kernelgen.tensor.operators.type_rules import broadcasting, floating
from kernelgen.tensor.types import Attrs, TensorType, dtype

Formula = Callable[..., Any]  # wide arrays and ``attrs=`` to one array or a tuple of arrays


def exact(
    name: str,
    kind: Kind,
    arity: int | None,
    rule: InferRule,
    formula: Formula,
    *,
    attributes: Sequence[str | Attribute] = (),
    doc: str | None = None,
    traits: Traits = PLAIN,
) -> Operator:
    """A composite operator from its type rule and ``formula(*float64 arrays, attrs=...)``."""

    @wraps(formula, assigned=("__doc__",))
    def meaning(*arrays: Array, attrs: Attrs) -> Array | tuple[Array, ...]:
        promised = rule(tuple(TensorType(array.shape, dtype(array.dtype)) for array in arrays), attrs)
        found = formula(*(_wide(array) for array in arrays), attrs=attrs)
        results = found if isinstance(found, tuple) else (found,)
        narrow = tuple(_narrow(result, type_) for result, type_ in zip(results, promised, strict=True))
        return narrow if len(narrow) != 1 else narrow[0]

    return declare(name, kind, arity, rule, meaning, attributes=attributes, composite=True, doc=doc, traits=traits)


def exact_elementwise(
    name: str, arity: int, formula: Formula, *, attributes: Sequence[str | Attribute] = (), doc: str | None = None
) -> Operator:
    """Floats that broadcast to one result."""
    return exact(name, Kind.ELEMWISE, arity, broadcasting(floating), formula, attributes=attributes, doc=doc)


def _wide(array: Array) -> Array:
    return array if array.dtype.kind in "bc" else array.astype(np.float64)


def _narrow(result: object, type_: TensorType) -> Array:
    array = array_of(result)
    half = type_.dtype.is_float and type_.dtype.bits < 32
    return (array.astype(np.float32) if half else array).astype(type_.dtype.numpy)
