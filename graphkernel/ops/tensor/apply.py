"""``apply``: the way every operator function goes. Tensors are recorded, numpy arrays are computed at once."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.ops.tensor.tensor import Tensor, record_all
from graphkernel.ops.tensor.weak_typing import Scalar, operand_types, weak_array
from kernelgen.tensor.evaluation.computed import grows
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.families import Array
from kernelgen.tensor.types import Attrs, TensorType, dtype

TensorLike = TypeVar("TensorLike", Tensor, Array)


def apply(op: Operator, /, *operands: Any, **attrs: object) -> Any:
    """The result of an operator that has one: a Tensor when an operand is one, otherwise an array."""
    (result,) = apply_all(op, *operands, **attrs)
    return result


def apply_all(op: Operator, /, *operands: Any, **attrs: object) -> tuple[Any, ...]:
    """All results of an operator: Tensors when an operand is one, otherwise arrays."""
    traced = any(isinstance(operand, Tensor) for operand in operands)
    return record_all(op, *operands, **attrs) if traced else compute_all(op, *operands, **attrs)


def compute_all(op: Operator, /, *operands: Array | Scalar, **attrs: object) -> tuple[Array, ...]:
    """The operator's meaning on numpy arrays, which its type rule has checked.

    Raises ``TypeRuleError``, also for too large results.
    """
    kinds = operand_types(op, [dtype(x.dtype) if isinstance(x, np.ndarray | np.generic) else None for x in operands])
    arrays = [weak_array(x, kind) for x, kind in zip(operands, kinds, strict=True)]
    frozen = Attrs.of(attrs)
    types = tuple(TensorType(tuple(x.shape), dtype(x.dtype)) for x in arrays)
    results = op.infer(types, frozen)
    if grows(types, results):
        raise TypeRuleError(f"{op.name}: {results[0]} is too large to be computed from {', '.join(map(str, types))}")
    found = op.meaning(*arrays, attrs=frozen)
    return tuple(found) if isinstance(found, tuple) else (np.asarray(found),)
