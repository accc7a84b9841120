"""Activations keep their digits where they are small: as long as the result is a number, on every target."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.declarations import builtin_catalogue
from graphkernel.expanders.base import expand
from graphkernel.ops import OPS
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.types import parse_type

LEAST_NORMAL = 2.0**-126
EXPANDERS = {entry.name: entry for entry in builtin_catalogue().expanders}


def gate_of_gelu(x: float) -> float:
    return 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)


def logistic(x: float) -> float:
    return math.exp(x) / (1 + math.exp(x))


# name: least argument, logarithm of the tail but for slow factors, exact value
Real = Callable[[float], float]
TAILS: dict[str, tuple[float, Real, Real]] = {
    "Sigmoid": (-103, lambda x: x, logistic),
    "SiLU": (-107, lambda x: x, lambda x: x * logistic(x)),
    "Gelu": (-14, lambda x: x * x / 2, lambda x: 0.5 * x * math.erfc(-x / math.sqrt(2))),
    "GeLU": (-10.1, gate_of_gelu, lambda x: x * logistic(gate_of_gelu(x))),
    "FastGeLU": (-60, lambda x: 1.702 * x, lambda x: x * logistic(1.702 * x)),
    "FastGelu": (-60, lambda x: 1.702 * x, lambda x: x * logistic(1.702 * x)),
    "Softplus": (-103, lambda x: x, lambda x: math.log1p(math.exp(x))),
    "SoftplusExt": (-103, lambda x: x, lambda x: math.log1p(math.exp(x))),
    "HSigmoid": (-3.1, lambda x: 0.0, lambda x: max(x + 3, 0) / 6),
    "HSwish": (-3.1, lambda x: 0.0, lambda x: x * (max(x + 3, 0) / 6)),
    "Elu": (-20, lambda x: 0.0, math.expm1),
    "SiLUGrad": (-100, lambda x: x, lambda x: logistic(x) * (1 + x * logistic(-x))),
    "SoftplusGrad": (-103, lambda x: x, logistic),
    "SoftplusGradExt": (-103, lambda x: x, logistic),
    "FastGeLUGrad": (-58, lambda x: 1.702 * x, lambda x: logistic(1.702 * x) * (1 + 1.702 * x * logistic(-1.702 * x))),
}


def arguments(least: float) -> np.ndarray:
    """All of the tail; close to where it starts, too."""
    return np.concatenate([np.linspace(least, -2, 5000), least + np.logspace(-6, -1, 200)]).astype(np.float32)


def lost(name: str, found: np.ndarray, x: np.ndarray) -> float:
    """The largest error relative to what rounding the argument of the exponential costs; 1 is all that is allowed.

    What is below the normal numbers has the absolute error of the least of them.
    """
    _, logarithm, exact = TAILS[name]
    expected = np.array([exact(float(value)) for value in x])
    allowed = np.array([8 + 4 * abs(logarithm(float(value))) for value in x]) * 2.0**-24
    return float(np.max(abs(found - expected) / (np.maximum(abs(expected), LEAST_NORMAL) * allowed)))


def operands(name: str, x: np.ndarray) -> list[np.ndarray]:
    """A gradient has dy = 1 as its first operand."""
    return [np.ones_like(x), x] if "Grad" in name else [x]


def graph_of(name: str, size: int, target: str | None = None) -> Graph:
    """The operator, or what it expands to on a target."""
    builder = Builder()
    count = 2 if "Grad" in name else 1
    inputs = tuple(builder.parameter(f"x{i}", parse_type(f"f32[{size}]")) for i in range(count))
    node = builder.node(OPS[name], inputs)
    outs = node.outs if target is None else expand(EXPANDERS[name], node, inputs, builder, target)
    assert isinstance(outs, tuple)
    return Graph(name, inputs, outs)


@pytest.mark.parametrize("name", TAILS)
def test_numpy_meaning_and_kernel(name: str) -> None:
    x = arguments(TAILS[name][0])
    graph = graph_of(name, x.size)
    assert lost(name, gk.compile(graph, opt_level=2)(*operands(name, x))[0].astype(np.float64), x) <= 1
    assert lost(name, evaluate(graph, operands(name, x))[0].astype(np.float64), x) <= 1


@pytest.mark.parametrize("target", ["cpu", "gpu", "ascend"])
@pytest.mark.parametrize("name", TAILS)
def test_expansion(name: str, target: str) -> None:
    x = arguments(TAILS[name][0])
    found = evaluate(graph_of(name, x.size, target), operands(name, x))[0]
    assert lost(name, found.astype(np.float64), x) <= 1


def test_half_precision_is_rounded_once() -> None:
    for kind in ("float16", "bfloat16"):
        type_ = gk.spec((1,), kind).dtype.numpy
        every = np.arange(1 << 16, dtype=np.uint16).view(type_)
        x = every[np.isfinite(every.astype(np.float32))]
        exact = np.array([0.5 * float(v) * math.erfc(-float(v) / math.sqrt(2)) for v in x])
        found = gk.compile(gk.trace(lambda a: ops.gelu(a), gk.spec(x.shape, kind)), opt_level=2)(x)[0]
        assert np.count_nonzero(found != exact.astype(np.float32).astype(type_)) <= 1  # nearest a tie


def test_the_textbook_forms_lose_all() -> None:
    x = arguments(-14)
    graph = gk.trace(lambda a: 0.5 * a * (1.0 + ops.erf(a * math.sqrt(0.5))), gk.spec(x.shape, "float32"))
    assert lost("Gelu", evaluate(graph, [x])[0].astype(np.float64), x) > 1000
