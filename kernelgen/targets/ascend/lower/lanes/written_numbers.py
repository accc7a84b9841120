"""Constants as instructions take them: with the digits of float32, or as two words of 32 bits."""

from __future__ import annotations

import numpy as np

from kernelgen.targets.ascend.lower.program.names import Constant
from kernelgen.tensor.dtypes import FLOAT64, DType


def written(number: float, dtype: DType) -> int | float:
    """A number as the text has it: floats with the digits of float32."""
    with np.errstate(over="ignore"):
        return float(np.float32(number)) if dtype.is_float else int(number)


def words_of(constant: Constant) -> tuple[int, int]:
    """The low and the high 32 bits of a number, with their signs; of a float64 those of its form in memory."""
    value = constant.value
    bits = int(np.float64(value).view(np.int64)) if constant.dtype == FLOAT64 else int(value)
    low, high = ((bits >> shift ^ 1 << 31) % (1 << 32) - (1 << 31) for shift in (0, 32))
    return low, high
