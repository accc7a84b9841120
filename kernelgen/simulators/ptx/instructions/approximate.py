"""The approximate functions of PTX. They are computed in float64 and rounded, so they are nearer than the device's.

:data:`ERRORS` holds what the PTX ISA (version 9.0, floating-point instructions) promises of the device: the largest
error in units of the last place, or absolute where that is how it is given. A test that compares with a device, or a
tolerance for one, has to allow for these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

ERRORS: Mapping[str, str] = {
    "ex2.approx": "relative 2^-22.5, about 2 ulp",
    "lg2.approx": "absolute 2^-22 near 1, else relative 2^-22",
    "sin.approx": "absolute 2^-20.5 in [-pi, pi]",
    "cos.approx": "absolute 2^-20.5 in [-pi, pi]",
    "tanh.approx": "relative 2^-11",
    "rcp.approx": "1 ulp",
    "sqrt.approx": "relative 2^-23",
    "rsqrt.approx": "relative 2^-22.9",
    "div.approx": "2 ulp",
    "div.full": "2 ulp",
}

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
