"""Quantization as ONNX defines it and onnxruntime computes it, in operators that kernels hold.

Operands are traced tensors or numpy arrays; a scale is float32, a zero point of the data type that is quantized to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphkernel.ops import apply
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.elemwise import MAXIMUM, MINIMUM, ROUND
from kernelgen.tensor.operators.reduce import REDUCE_MAX, REDUCE_MIN
from kernelgen.tensor.operators.select import EQUAL, SELECT

Array = np.ndarray[Any, np.dtype[Any]]
FLOAT, INT32, UINT8 = "float32", "int32", "uint8"
BYTES = frozenset({"int8", UINT8})
BYTE_HALF = 128


def cast(x: Any, to: str) -> Any:
    """The tensor or array in the data type ``to``."""
    return apply(CAST, x, dst_type=to)


def with_sign(numbers: Array, zeros: Array) -> tuple[Array, Array]:
    """Bytes as int8, those without a sign less 128, and their zero points ``zeros`` as int32, in a row."""
    middle = BYTE_HALF if numbers.dtype == np.uint8 else 0
    signed = (numbers.astype(np.int16) - middle).astype(np.int8)
    return signed, zeros.reshape(-1).astype(np.int32) - np.int32(middle)


def quantized(x: Any, scale: Any, zero: Any, of: str) -> Any:
    """The nearest integer to each ``x / scale``, to even halfway, plus the zero point; saturated to the data type ``of``."""
    bounds = np.iinfo(np.dtype(of))
    nearest = apply(ROUND, x / scale)
    nearest = nearest + cast(zero, FLOAT) if not isinstance(zero, np.ndarray) or zero.any() else nearest
    from_low = apply(MAXIMUM, nearest, np.float32(bounds.min))
    return cast(apply(MINIMUM, from_low, np.float32(bounds.max)), of)


def dequantized(x: Any, scale: Any, zero: Any) -> Any:
    """The float32 numbers that the integers ``x`` stand for, by their ``scale`` and ``zero`` point."""
    return cast(cast(x, INT32) - cast(zero, INT32), FLOAT) * scale


def dynamically_quantized(x: Any, rank: int, is_positive: bool = False) -> tuple[Any, Any, Any]:
    """(x as uint8, scale, zero point) by the least and the greatest element of ``x`` and 0: ONNX's DynamicQuantizeLinear.

    ``rank`` is that of ``x``. If it ``is_positive``, without numbers below 0, the least is 0, and so is the zero point, then an
    array.
    """
    axes, top = tuple(range(rank)), np.float32(np.iinfo(np.uint8).max)
    high = apply(MAXIMUM, apply(REDUCE_MAX, x, axis=axes), np.float32(0))
    low = np.float32(0) if is_positive else apply(MINIMUM, apply(REDUCE_MIN, x, axis=axes), np.float32(0))
    span = high if is_positive else high - low
    scale = apply(SELECT, apply(EQUAL, span, np.float32(0)), np.float32(1), span / top)
    if is_positive:
        zero = np.zeros((), UINT8)
    else:
        nearest = apply(ROUND, apply(MAXIMUM, apply(MINIMUM, -(low / scale), top), np.float32(0)))
        zero = cast(nearest, UINT8)
    return quantized(x, scale, zero, UINT8), scale, zero
