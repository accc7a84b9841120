"""Mean and variance in numpy, for the meanings of the norms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.tensor.operators.families import Array


def moments(x: Array, axes: Sequence[int]) -> tuple[Array, Array]:
    """Mean and variance over axes, which stay as 1, in the data type of ``x``.

    A sum rounds, so that the mean of equal numbers need not be that number. What is left has a mean that takes the error
    away: equal numbers have exactly themselves as their mean, and no variance.
    """
    along = tuple(axes)
    mean = x.mean(axis=along, keepdims=True)
    error = (x - mean).mean(axis=along, keepdims=True)
    square, excess = np.square(x - mean).mean(axis=along, keepdims=True), np.square(error)
    return mean + error, np.where(square <= excess, 0, square - excess)
