"""The expander pass on operators that need more than their name: complex arithmetic, thin products, random tensors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import graphkernel as gk
from graphkernel import ops
from graphkernel.declarations import builtin_catalogue
from graphkernel.ops import Tensor
from graphkernel.options import Options
from graphkernel.passes.expand import graph_kernel_expander
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.evaluation.evaluate import evaluate

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((3, 4)).astype(np.float32)
C = (X + 1j * RANDOM.standard_normal((3, 4))).astype(np.complex64)


def kernels(graph: gk.Graph) -> list[list[str]]:
    """The operators of each kernel."""
    return [[inner.op.name for inner in node.body.operators] for node in graph.operators if node.body is not None]


def test_complex_arithmetic_is_one_kernel_of_real_numbers() -> None:
    def net(x: Tensor, y: Tensor) -> Tensor:
        return ops.cabs(x * y - y + x)

    graph = gk.trace(net, *[gk.spec((3, 4), "complex64")] * 2)
    fused = gk.optimize(graph)
    (kernel,) = kernels(fused)
    assert not {"CReal", "CImag", "Complex", "CMul"} & set(kernel)
    np.testing.assert_allclose(evaluate(fused, [C, C[::-1]])[0], np.abs(C * C[::-1] - C[::-1] + C), rtol=1e-5)


def test_a_real_operand_has_no_imaginary_part() -> None:
    graph = gk.trace(lambda x, y: ops.csub(x, y), gk.spec((3, 4), "complex64"), gk.spec((3, 4)))
    np.testing.assert_array_equal(evaluate(gk.optimize(graph), [C, X])[0], C - X)


def test_only_products_over_one_element_are_expanded() -> None:
    thin = gk.trace(lambda a, b: ops.matmul(a, b) + 1.0, gk.spec(("N", 1)), gk.spec((1, 4)))
    assert kernels(gk.optimize(thin)) == [["Mul", "Add"]]
    thick = gk.trace(lambda a, b: ops.matmul(a, b), gk.spec(("N", 2)), gk.spec((2, 4)))
    assert [node.op.name for node in gk.optimize(thick).operators] == ["MatMul"]
    (decision,) = (one for one in gk.explain(thick).decisions if one.code == "not-expanded-declined")
    assert "the inner extent is 2" in decision.message


def test_what_is_not_random_of_dropout_is_a_kernel() -> None:
    graph = gk.trace(lambda x: ops.dropout(x, keep_prob=0.7, seed0=1)[0] * 2.0, gk.spec(("N", 4)))
    fused = gk.optimize(graph)
    assert [node.op.name for node in fused.operators] == ["UniformReal", "Fused"]
    np.testing.assert_allclose(evaluate(fused, [X])[0], evaluate(graph, [X])[0], rtol=1e-6)


def test_random_numbers_without_operands_are_expanded_too() -> None:
    text = "graph main(x: f32[4]) {\n  u: f32[4] = StandardNormal(shape=(4,), seed=3)\n  y: f32[4] = Mul(x, u)\n  return y\n}\n"
    graph = gk.parse(text)
    fused = gk.optimize(graph)
    assert [node.op.name for node in fused.operators] == ["UniformReal", "UniformReal", "Fused"]
    x = np.ones(4, np.float32)
    np.testing.assert_allclose(evaluate(fused, [x])[0], evaluate(graph, [x])[0], rtol=1e-5)


def test_operators_alike_are_expanded_once_and_each_keeps_its_operands_and_labels() -> None:
    weights = [RANDOM.standard_normal(4).astype(np.float32) for _ in range(6)]

    def net(x: Tensor) -> Tensor:
        for gamma, beta in zip(weights[::2], weights[1::2], strict=True):
            x = ops.layer_norm(x, gamma, beta, begin_norm_axis=1, begin_params_axis=1)[0]
        row = x[0]
        return ops.layer_norm(x, row, row, begin_norm_axis=1, begin_params_axis=1)[0]

    asked = []
    own = builtin_catalogue().context(Options())
    entry = own.expanders["LayerNorm"]

    def counted(*operands: Tensor, attrs: Attrs) -> object:
        asked.append(operands)
        return entry.function(*operands, attrs=attrs)

    expanders = {**own.expanders, "LayerNorm": replace(entry, function=counted)}
    graph = gk.trace(net, gk.spec((3, 4)))
    expanded = graph_kernel_expander(graph, replace(own, expanders=expanders))
    assert len(asked) == 2, "the last one's weights are one value"
    labels = [node.name for node in expanded.operators]
    assert len(set(labels)) == len(labels)
    norms = [node.name for node in graph.operators if node.op.name == "LayerNorm"]
    parts = {norm: [label for label in labels if label.startswith(f"{norm}.")] for norm in norms}
    assert len({len(found) for found in parts.values()}) == 1
    np.testing.assert_allclose(evaluate(expanded, [X])[0], evaluate(graph, [X])[0], rtol=1e-4, atol=1e-5)


def test_numbers_that_expanders_may_ask_for_tell_operators_apart() -> None:
    def net(x: Tensor) -> tuple[Tensor, ...]:
        return tuple(ops.squared_difference(x, number) for number in (1.0, 2.0, 1.0))

    graph = gk.trace(net, gk.spec((3, 4)))
    for found, number in zip(evaluate(gk.optimize(graph), [X]), (1.0, 2.0, 1.0), strict=True):
        np.testing.assert_allclose(found, (X - np.float32(number)) ** 2, rtol=1e-6)
