"""What vector operations compute, on whole arrays. Half results round once, as numpy rounds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

BINARY: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Max": np.maximum,
    "Min": np.minimum,
    "And": np.bitwise_and,
    "Or": np.bitwise_or,
}
UNARY: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "Exp": np.exp,
    "Ln": np.log,
    "Abs": np.abs,
    "Reciprocal": lambda values: (1 / values).astype(values.dtype),
    "Sqrt": np.sqrt,
    "Rsqrt": lambda values: (1 / np.sqrt(values.astype(np.float32))).astype(values.dtype),
    "Not": np.invert,
    "Relu": lambda values: np.maximum(values, values.dtype.type(0)),
}
SCALAR: Mapping[str, Callable[[np.ndarray, np.generic], np.ndarray]] = {
    "Adds": np.add,
    "Muls": np.multiply,
    "Maxs": np.maximum,
    "Mins": np.minimum,
    "ShiftLeft": np.left_shift,
    "ShiftRight": np.right_shift,
    "LeakyRelu": lambda values, slope: np.where(values >= 0, values, values * slope).astype(values.dtype),
}
COMPARE: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "LT": np.less,
    "GT": np.greater,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
    "LE": np.less_equal,
}


def tree_sum(values: np.ndarray) -> np.ndarray:
    """The sum over the last axis as the manual orders it: neighbours first, (0+1), (2+3), ..., then pairs of pairs."""
    while values.shape[-1] > 1:
        if values.shape[-1] % 2:
            values = np.concatenate((values, np.zeros((*values.shape[:-1], 1), values.dtype)), axis=-1)
        values = values[..., 0::2] + values[..., 1::2]
    return values[..., 0]


def reduce_lanes(operation: str, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Sum, Max or Min over the last axis of the lanes that are switched on."""
    if operation.endswith("Sum"):
        return tree_sum(np.where(mask, values, values.dtype.type(0)))
    lowest = operation.endswith("Max")
    neutral = values.dtype.type(-np.inf if lowest else np.inf)
    return (np.max if lowest else np.min)(np.where(mask, values, neutral), axis=-1)
