"""Operators that mean a composition of others: what the named fusion passes produce.

One function over tensors says all: run on types it is the type rule, run on arrays the meaning, run on a builder the
expansion. As everywhere, float16 and bfloat16 are computed in float32 and rounded once at the end, so that a fused operator
is as accurate as its parts or better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from graphkernel.ops.tensor.tensor import Tensor
from kernelgen.tensor.graph import Builder
from kernelgen.tensor.operator import PLAIN, Attribute, Kind, Operator, Traits
from kernelgen.tensor.operators.families import Array, array_of, declare, widened
from kernelgen.tensor.types import Attrs, TensorType, dtype

Composition = Callable[..., tuple[Any, ...]]  # of Tensors, or of arrays
Types = tuple[TensorType, ...]


def composed(
    name: str,
    composition: Composition,
    arity: int | None,
    *,
    attributes: Sequence[str | Attribute] = (),
    doc: str = "",
    traits: Traits = PLAIN,
) -> Operator:
    """The operator whose results are ``composition(*operands, attrs=attrs)``."""

    def rule(types: Types, attrs: Attrs) -> Types:
        builder = Builder()
        operands = (Tensor(builder.parameter(f"x{i}", type_), builder) for i, type_ in enumerate(types))
        return tuple(result.type for result in composition(*operands, attrs=attrs))

    @wraps(composition, assigned=())
    def meaning(*arrays: Array, attrs: Attrs) -> Any:  # one array, or a tuple of several
        promised = rule(tuple(TensorType(tuple(x.shape), dtype(x.dtype)) for x in arrays), attrs)
        wide = composition(*map(widened, arrays), attrs=attrs)
        results = tuple(array_of(x).astype(type_.dtype.numpy) for x, type_ in zip(wide, promised, strict=True))
        return results[0] if len(results) == 1 else results

    text = doc or composition.__doc__ or ""
    return declare(
        name, Kind.OPAQUE, arity, rule, meaning, attributes=attributes, composite=True, doc=text, traits=traits
    )
