"""What is one operator to the user becomes one kernel: softmax, layer norm, their gradients, losses, optimizer steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.decisions import DecisionLog
from graphkernel.declarations import builtin_catalogue
from graphkernel.options import Options, Target
from graphkernel.passes.base import run_steps
from graphkernel.pipeline import steps_for
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.types import TensorType

TARGETS: tuple[Target, ...] = ("cpu", "gpu", "ascend")
X, COLUMN, ROW, SCALAR = (64, 128), (64, 1), (128,), ()

NETS: dict[str, tuple[Callable[..., Any], Sequence[tuple[int, ...]]]] = {
    "Softmax": (ops.softmax, [X]),
    "LogSoftmax": (ops.log_softmax, [X]),
    "SoftmaxGrad": (ops.softmax_grad, [X, X]),
    "LogSoftmaxGrad": (ops.log_softmax_grad, [X, X]),
    "LayerNorm": (ops.layer_norm, [X, ROW, ROW]),
    "LayerNormGrad": (ops.layer_norm_grad, [X, X, COLUMN, COLUMN, ROW]),
    "RmsNorm": (ops.rms_norm, [X, ROW]),
    "RmsNormGrad": (ops.rms_norm_grad, [X, X, COLUMN, ROW]),
    "SoftmaxCrossEntropyWithLogits": (ops.softmax_cross_entropy_with_logits, [X, X]),
    "SigmoidCrossEntropyWithLogits": (ops.sigmoid_cross_entropy_with_logits, [X, X]),
    "GeLUGrad": (ops.gelu_grad, [X, X]),
    "Adam": (ops.adam, [X, X, X, *[SCALAR] * 6, X]),
    "AdamWeightDecay": (ops.adam_weight_decay, [X, X, X, *[SCALAR] * 5, X]),
    "ApplyMomentum": (ops.apply_momentum, [X, X, SCALAR, X, SCALAR]),
}


def traced(name: str, dtype: str = "float32") -> Graph:
    function, shapes = NETS[name]
    return gk.trace(lambda *operands: function(*operands), *[gk.spec(shape, dtype) for shape in shapes], name=name)


def optimized(graph: Graph, target: Target) -> tuple[Graph, str]:
    """The graph at opt_level 2, and why what is not one kernel is not."""
    options, log = Options(target=target), DecisionLog()
    result = run_steps(graph, steps_for(options), builtin_catalogue().context(options, log))
    return result, "\n".join(str(decision) for decision in log if decision.code.startswith("not-"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NETS)
def test_one_kernel(name: str, target: Target) -> None:
    graph = traced(name)
    result, reasons = optimized(graph, target)
    assert [node.body is not None for node in result.operators] == [True], f"{result}\n{reasons}"
    assert result.aliases == graph.aliases
    arrays = [array(value.type, place) for place, value in enumerate(graph.inputs)]
    for found, expected in zip(evaluate(result, arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("rows", [1, 4, 64, 127, 128])
@pytest.mark.parametrize("columns", [512, 8192])
def test_one_launch_on_a_gpu_for_any_number_of_rows(rows: int, columns: int) -> None:
    """Threads share rows, so that few of them are no reason to go to memory between the phases."""
    row = gk.spec(columns)
    softmax = gk.trace(ops.softmax, gk.spec((rows, columns)))
    norm = gk.trace(ops.layer_norm, gk.spec((rows, columns)), row, row)
    for graph in (softmax, norm):
        report = gk.compile(graph, target="gpu").report
        assert (report.kernel_calls, report.launches) == (1, 1), report


def array(type_: TensorType, seed: int) -> np.ndarray:
    """Between 0.1 and 0.9, where every operand of every net is defined."""
    shape = tuple(dim for dim in type_.shape if isinstance(dim, int))
    return np.asarray(np.random.default_rng(seed).uniform(0.1, 0.9, shape)).astype(type_.dtype.numpy)


@pytest.mark.parametrize("name", ["LayerNorm", "LayerNormGrad", "SoftmaxCrossEntropyWithLogits", "Adam"])
def test_one_kernel_for_float16(name: str) -> None:
    result, reasons = optimized(traced(name, "float16"), "cpu")
    assert len(result.operators) == 1, f"{result}\n{reasons}"


def test_the_kernels_compile_and_compute() -> None:
    """On the CPU each is compiled and gives what the operator means."""
    for name in NETS:
        graph = traced(name)
        arrays = [array(value.type, place) for place, value in enumerate(graph.inputs)]
        expected = evaluate(graph, arrays)
        exe = gk.compile(graph)
        found = exe(*arrays)
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-5, err_msg=name)
