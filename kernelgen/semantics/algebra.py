"""The vocabulary's rules on numpy arrays. Half precision computes in float32 and rounds after every scalar function."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelgen.composite.scalar_rules import constant, operand_dtypes
from kernelgen.nest.scalars import SCALARS, Result
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, DType, dtype

Array = np.ndarray[Any, Any]


class ArrayAlgebra:
    """An :class:`~kernelgen.composite.scalar_rules.Algebra` whose values are numpy arrays."""

    def call(self, function: str, *args: Array | float) -> Array:
        """The scalar function on every element, operands broadcast."""
        kinds = operand_dtypes(
            function, tuple(None if isinstance(a, bool | int | float) else self.dtype(a) for a in args)
        )
        operands = [self._operand(a, kind) for a, kind in zip(args, kinds, strict=True)]
        result = BOOL if SCALARS[function].result is Result.BOOL else kinds[-1]
        found = np.asarray(SCALARS[function].numpy(*(_widened(x) for x in operands)))
        return found if found.dtype == result.numpy else found.astype(result.numpy)

    def cast(self, value: Array, target: DType) -> Array:
        """Floats truncate towards zero, complex numbers to reals keep the real part, bool tests != 0."""
        if self.dtype(value) == target:
            return value
        wide = _widened(value)
        if np.iscomplexobj(wide) and target != BOOL and not np.issubdtype(target.numpy, np.complexfloating):
            wide = wide.real
        return wide != 0 if target == BOOL else wide.astype(target.numpy)

    def literal(self, value: float, target: DType) -> Array:
        """A constant of rank 0."""
        return np.asarray(constant(value, target), target.numpy)

    def dtype(self, value: Array) -> DType:
        """The array's data type."""
        return dtype(value.dtype)

    def _operand(self, value: Array | float, target: DType) -> Array:
        return self.literal(value, target) if isinstance(value, bool | int | float) else self.cast(value, target)


def _widened(value: Array) -> Array:
    """Half precision as float32, for numpy has few functions of bfloat16 and is slow on float16."""
    return value.astype(np.float32) if value.dtype in (FLOAT16.numpy, BFLOAT16.numpy) else value
