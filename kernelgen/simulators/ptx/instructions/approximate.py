"""The approximate functions of PTX. They are computed in float64 and rounded, so they are nearer than the device's.

The device may err more, by what the PTX ISA promises (version 9.0, floating-point instructions): a
tolerance for one has to allow for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

FUNCTIONS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "rcp": np.reciprocal,
    "sqrt": np.sqrt,
    "rsqrt": lambda value: 1 / np.sqrt(value),
}
