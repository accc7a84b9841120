"""The question whether all numbers are finite."""

from typing import Any

import numpy as np
import pytest
from pass_runs import as_kernel, checked, same_bits

from graphkernel import ops
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor
from graphkernel.passes.floatstatus_addn_fusion import floatstatus_addn_fusion
from graphkernel.passes.floatstatus_fusion import floatstatus_fusion
from kernelgen.tensor.graph import Graph


def status(x: Tensor) -> Tensor:
    """As MindSpore's loss scaling writes it."""
    finite = ops.reduce_all(ops.is_finite(ops.cast(x, "float32")))
    return ops.reshape(ops.sub(1.0, ops.cast(finite, "float32")), (1,))


def gradients(*tensors: Tensor) -> Tensor:
    return ops.add_n(*map(status, tensors))


def names(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.operators]


def arrays(kind: str, broken: tuple[float, ...]) -> list[np.ndarray]:
    found = [np.ones((2, 3), kind) for _ in range(3)]
    for array, value in zip(found, broken, strict=False):
        array[1, 2] = value
    return found


@pytest.mark.parametrize("kind", ["float16", "float32"])
@pytest.mark.parametrize("broken", [(), (np.inf,), (np.nan, -np.inf), (np.inf, np.nan, -np.inf)])
def test_one_operator_for_each_question(kind: str, broken: tuple[float, ...]) -> None:
    graph = trace(gradients, *[spec((2, 3), kind)] * 3)
    recognised = checked(floatstatus_fusion, graph)
    basic = checked(floatstatus_addn_fusion, recognised)
    assert names(recognised) == ["FloatStatus"] * 3 + ["AddN"]
    assert names(basic) == ["IsFinite", "LogicalNot", "Cast", "ElemAny"] * 3 + ["AddN"]
    same_bits(graph, recognised, arrays(kind, broken))
    same_bits(graph, basic, arrays(kind, broken))


def test_symbolic_extents_and_kernels() -> None:
    graph = as_kernel(trace(gradients, *[spec(("N", 3))] * 2))
    result = checked(floatstatus_addn_fusion, checked(floatstatus_fusion, graph))
    assert "ElemAny" in str(result)
    same_bits(graph, result, arrays("float32", (np.nan,))[:2])


def test_float64_is_not_asked_through_float32() -> None:
    """1e300 is finite in float64 and infinite in float32: the Cast is part of the question."""
    graph = trace(gradients, spec((2, 3), "float64"))
    result = checked(floatstatus_fusion, graph)
    assert names(result) == ["Cast", "FloatStatus", "AddN"]
    same_bits(graph, result, [np.full((2, 3), 1e300)])


@pytest.mark.parametrize(
    ("net", "recognised"),
    [
        (lambda x: (ops.add_n(status(x)), status(x)), 1),
        (lambda x: ops.add_n(ops.exp(status(x))), 0),
        (lambda x: ops.add_n(ops.sub(2.0, ops.cast(ops.reduce_all(ops.is_finite(x)), "float32"))), 0),
        (lambda x: ops.add_n(ops.sub(1.0, ops.cast(ops.reduce_any(ops.is_finite(x)), "float32"))), 0),
        (lambda x: ops.add_n(ops.sub(1.0, ops.cast(ops.reduce_all(ops.is_finite(x), axis=0), "float32"))), 0),
    ],
    ids=["an output", "another user", "another constant", "any", "one axis"],
)
def test_look_alikes_stay(net: Any, recognised: int) -> None:
    graph = trace(net, spec((2, 3)))
    assert names(checked(floatstatus_fusion, graph)).count("FloatStatus") == recognised
