"""Tensors of a description that hold one constant everywhere: those are computed, not hashed.

Terms know no numbers but those that are written down: ``min(0, 0)`` would be a term of its own, where a generator may well
write 0. So operators whose operands are constants have the value that they compute.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kernelgen.composite.description import Tensor
from kernelgen.composite.document import Document, Operation
from kernelgen.composite.scalar_rules import scalar_rule
from kernelgen.semantics.algebra import ArrayAlgebra
from kernelgen.tensor.dtypes import Category

REPEATED = frozenset(
    {"Reshape", "BroadcastTo", "Transpose", "Tile", "ReduceMax", "ReduceMin", "ReduceAll", "ReduceAny"}
)
"""Operators whose result is the constant that all elements of the operand are, where it has elements."""

Constants = Mapping[str, Tensor]
"""Name -> a constant of the data type that the tensor has."""


def constants_of(desc: Document) -> Constants:
    """The constant tensors of a description without symbols; a value that is not finite counts as computed."""
    found: dict[str, Tensor] = {}
    for op in desc.ops:
        value = _value(op, found) if len(op.outs) == 1 else None
        if value is not None and np.isfinite(value):
            found[op.out.name] = Tensor("", (1,), op.out.dtype, value=value)
    return found


def _value(op: Operation, known: Constants) -> float | None:
    if op.out.dtype.category is Category.COMPLEX:
        return None
    if op.name == "ZerosLike":
        return 0
    operands = [tensor if tensor.value is not None else known.get(tensor.name) for tensor in op.args]
    values = [tensor for tensor in operands if tensor is not None]
    if len(values) < len(operands) or not values:
        return None
    rule = scalar_rule(op)
    if rule is not None:
        algebra = ArrayAlgebra()
        with np.errstate(all="ignore"):
            arrays = [np.full((1,), tensor.value, tensor.dtype.numpy) for tensor in values]
            return algebra.cast(rule(algebra, arrays, op), op.out.dtype).reshape(1)[0].item()
    repeats = op.name in REPEATED and 0 not in op.args[0].shape and values[0].dtype == op.out.dtype
    return values[0].value if repeats else None
