"""What Ascend computes by exp and log keeps its digits where the result is small; the textbook forms do not."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.expanders.accurate import erf_by_fraction, expm1_by_exp, log1p_by_log, sinh_by_exp, tanh_by_exp
from graphkernel.expanders.activation_ext import acosh_by_log, asinh_by_log
from graphkernel.ops import Tensor
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.types import Attrs

UP = np.logspace(-8, 1, 2000).astype(np.float32)
BOTH = np.concatenate([UP, -UP])
FROM_ONE = (1 + np.logspace(-6, 12, 2000)).astype(np.float32)
FAR = np.concatenate([np.logspace(-8, 12, 2000), -np.logspace(-8, 12, 2000)]).astype(np.float32)

Function = Callable[[Tensor], Tensor]
FUNCTIONS: dict[str, tuple[Function, Callable[[np.ndarray], np.ndarray], np.ndarray]] = {
    "tanh": (tanh_by_exp, np.tanh, BOTH),
    "sinh": (sinh_by_exp, np.sinh, BOTH),
    "erf": (erf_by_fraction, np.vectorize(math.erf), BOTH),
    "log1p": (log1p_by_log, np.log1p, UP),
    "expm1": (expm1_by_exp, np.expm1, -FAR[:2000]),
    "acosh": (lambda x: acosh_by_log(x, attrs=Attrs()), np.arccosh, FROM_ONE),
    "asinh": (lambda x: asinh_by_log(x, attrs=Attrs()), np.arcsinh, FAR),
}


def error(function: Function, exact: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> float:
    """The largest relative error in float32."""
    graph = gk.trace(function, gk.spec(x.shape, "float32"))
    found, expected = evaluate(graph, [x])[0].astype(np.float64), exact(x.astype(np.float64))
    return float(np.max(np.abs(found - expected) / np.abs(expected)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_relative_error(name: str) -> None:
    assert error(*FUNCTIONS[name]) < 5e-7


def test_the_textbook_form_is_worse() -> None:
    assert error(lambda x: 1.0 - 2.0 / (ops.exp(2.0 * x) + 1.0), np.tanh, BOTH) > 0.1
