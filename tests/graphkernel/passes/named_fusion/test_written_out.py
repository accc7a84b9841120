"""What exporters of models write out in several operators: every spelling is recognised, and nothing that only looks like it.

Each form is traced from Python over all its spellings; the numbers stay, and a near miss stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest

from graphkernel import ops
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import OPS, Tensor
from graphkernel.passes.named_fusion import FUSION_GROUP, WRITTEN_OUT
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.verify import verify
from tests.support.fusion_cases import assert_near

Function = Callable[..., Any]
PASSES = {entry.name: entry for entry in (*WRITTEN_OUT, *FUSION_GROUP)}
ROWS, COLUMNS = 5, 8

SQUARES: Mapping[str, Function] = {
    "mul": lambda x: x * x,
    "pow": lambda x: ops.pow(x, 2.0),
    "square": ops.square,
}
ROOTS: Mapping[str, Function] = {
    "rsqrt": lambda x, v: x * ops.rsqrt(v),
    "reciprocal": lambda x, v: ops.reciprocal(ops.sqrt(v)) * x,
    "one over": lambda x, v: x * (1.0 / ops.sqrt(v)),
    "over": lambda x, v: x / ops.sqrt(v),
    "over pow": lambda x, v: x / ops.pow(v, 0.5),
    "pow": lambda x, v: x * ops.pow(v, -0.5),
}


def written_rms(square: Function, root: Function, *, epsilon: float = 1e-3, axis: Any = -1) -> Function:
    def norm(x: Tensor, gamma: Tensor) -> Tensor:
        mean = ops.reduce_mean(square(x), axis, keep_dims=True)
        return gamma * root(x, mean + epsilon)

    return norm


def fused(graph: Graph, name: str) -> Graph:
    after = PASSES[name](graph)
    verify(after)
    return after


def names(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.operators]


def arrays_for(graph: Graph, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal([int(str(d)) for d in v.type.shape]).astype(v.type.dtype.numpy) for v in graph.inputs]


def same_numbers(before: Graph, after: Graph) -> None:
    for seed in range(3):
        arrays = arrays_for(before, seed)
        for found, expected in zip(evaluate(after, arrays), evaluate(before, arrays), strict=True):
            assert_near(found, expected)


@pytest.mark.parametrize(("square", "root"), list(product(SQUARES, ROOTS)))
def test_every_spelling_of_an_rms_norm(square: str, root: str) -> None:
    graph = trace(written_rms(SQUARES[square], ROOTS[root]), spec((ROWS, COLUMNS)), spec((COLUMNS,)))
    after = fused(graph, "written_rms_norm")
    assert names(after) == ["RmsNorm"]
    same_numbers(graph, after)


def test_an_rms_norm_over_two_axes() -> None:
    norm = written_rms(SQUARES["pow"], ROOTS["rsqrt"], axis=(1, 2))
    graph = trace(norm, spec((3, 4, 5)), spec((4, 5)))
    after = fused(graph, "written_rms_norm")
    assert names(after) == ["RmsNorm"]
    same_numbers(graph, after)


@pytest.mark.parametrize("of_the_residual", ["float16", "float32"])
def test_an_rms_norm_in_float32_that_is_rounded_before_gamma(of_the_residual: str) -> None:
    def norm(x: Tensor, gamma: Tensor) -> Tensor:
        wide = ops.cast(x, "float32")
        mean = ops.reduce_mean(ops.pow(wide, 2.0), -1, keep_dims=True)
        return gamma * ops.cast(wide * ops.rsqrt(mean + 1e-3), "float16")

    graph = trace(norm, spec((ROWS, COLUMNS), of_the_residual), spec((COLUMNS,), "float16"))
    after = fused(graph, "written_rms_norm")
    assert "RmsNorm" in names(after)
    assert set(names(after)) <= {"RmsNorm", "Cast"}
    same_numbers(graph, after)


def third_power(x: Tensor) -> Tensor:
    return ops.pow(x, 3.0)


RMS_NEAR_MISSES: Mapping[str, Function] = {
    "another power": written_rms(third_power, ROOTS["rsqrt"]),
    "another axis": written_rms(SQUARES["mul"], ROOTS["rsqrt"], axis=0),
    "no root": written_rms(SQUARES["mul"], lambda x, v: x / v),
    "two over the root": written_rms(SQUARES["mul"], lambda x, v: x * (2.0 / ops.sqrt(v))),
    "the root over x": written_rms(SQUARES["mul"], lambda x, v: ops.sqrt(v) / x),
    "a cube root": written_rms(SQUARES["mul"], lambda x, v: x * ops.pow(v, -0.25)),
    "squares of something else": written_rms(lambda x: ops.exp(x) * ops.exp(x), ROOTS["rsqrt"]),
    "a product that is no square": written_rms(lambda x: x * ops.exp(x), ROOTS["rsqrt"]),
    "squares of what was rounded": written_rms(
        lambda x: ops.square(ops.cast(ops.cast(x, "float16"), "float32")), ROOTS["rsqrt"]
    ),
    "a sum": lambda x, g: g * (x * ops.rsqrt(ops.reduce_sum(x * x, -1, keep_dims=True) + 1e-3)),
    "gamma for each row": lambda x, g: (
        ops.reshape(g, (COLUMNS, 1)) * (x * ops.rsqrt(ops.reduce_mean(x * x, -1, keep_dims=True) + 1e-3))
    ),
    "epsilon for each column": lambda x, g: g * (x * ops.rsqrt(ops.reduce_mean(x * x, -1, keep_dims=True) + g)),
}


@pytest.mark.parametrize("name", RMS_NEAR_MISSES)
def test_what_is_no_rms_norm(name: str) -> None:
    graph = trace(RMS_NEAR_MISSES[name], spec((COLUMNS, COLUMNS)), spec((COLUMNS,)))
    assert PASSES["written_rms_norm"](graph) is graph


def written_layer_norm(square: Function, root: Function, axis: Any = -1) -> Function:
    def norm(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
        centred = x - ops.reduce_mean(x, axis, keep_dims=True)
        variance = ops.reduce_mean(square(centred), axis, keep_dims=True)
        return root(centred, variance + 1e-3) * gamma + beta

    return norm


@pytest.mark.parametrize(("square", "root"), list(product(SQUARES, ROOTS)))
def test_every_spelling_of_a_layer_norm(square: str, root: str) -> None:
    norm = written_layer_norm(SQUARES[square], ROOTS[root])
    graph = trace(norm, spec((ROWS, COLUMNS)), spec((COLUMNS,)), spec((COLUMNS,)))
    after = fused(graph, "written_layer_norm")
    assert names(after) == ["LayerNorm"]
    same_numbers(graph, after)


def off_centre(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    centred = x - ops.reduce_max(x, -1, keep_dims=True)
    return centred * ops.rsqrt(ops.reduce_mean(centred * centred, -1, keep_dims=True) + 1e-3) * gamma + beta


def variance_of_the_tensor(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    centred = x - ops.reduce_mean(x, -1, keep_dims=True)
    return centred * ops.rsqrt(ops.reduce_mean(x * x, -1, keep_dims=True) + 1e-3) * gamma + beta


def two_axes(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    centred = x - ops.reduce_mean(x, 0, keep_dims=True)
    return centred * ops.rsqrt(ops.reduce_mean(centred * centred, -1, keep_dims=True) + 1e-3) * gamma + beta


@pytest.mark.parametrize("norm", [off_centre, variance_of_the_tensor, two_axes])
def test_what_is_no_layer_norm(norm: Function) -> None:
    graph = trace(norm, spec((COLUMNS, COLUMNS)), spec((COLUMNS,)), spec((COLUMNS,)))
    assert PASSES["written_layer_norm"](graph) is graph


def test_a_value_times_its_sigmoid_is_silu_and_another_is_not() -> None:
    graph = trace(lambda x: ops.sigmoid(x) * x, spec((ROWS, COLUMNS)))
    after = fused(graph, "written_silu")
    assert names(after) == ["SiLU"]
    same_numbers(graph, after)
    other = trace(lambda x, y: ops.sigmoid(x) * y, spec((ROWS, COLUMNS)), spec((ROWS, COLUMNS)))
    assert PASSES["written_silu"](other) is other


def halves(x: Tensor, *, sliced: bool) -> tuple[Tensor, Tensor]:
    whole = int(str(x.shape[-1]))
    if not sliced:
        first, second = ops.split(x, 2, x.ndim - 1)
        return first, second
    return x[..., : whole // 2], x[..., whole // 2 :]


def rotary(*, sliced: bool, turn: Function) -> Function:
    def embed(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        return x * cos + turn(*halves(x, sliced=sliced)) * sin

    return embed


def turned(a: Tensor, b: Tensor) -> Tensor:
    return ops.concat([-b, a], a.ndim - 1)


ROTARY = (spec((2, 3, 5, 8)), spec((1, 1, 5, 8)), spec((1, 1, 5, 8)))


@pytest.mark.parametrize("sliced", [True, False])
def test_a_rotary_embedding(sliced: bool) -> None:
    graph = trace(rotary(sliced=sliced, turn=turned), *ROTARY)
    after = fused(graph, "rotary_position_embedding")
    assert names(after) == ["RotaryPositionEmbedding"]
    same_numbers(graph, after)


ROTARY_NEAR_MISSES: Mapping[str, Function] = {
    "not negated": lambda a, b: ops.concat([b, a], 3),
    "the first half negated": lambda a, b: ops.concat([-a, b], 3),
    "halves in order": lambda a, b: ops.concat([-a, a], 3),
    "the wrong half negated behind": lambda a, b: ops.concat([b, -a], 3),
    "twice the second": lambda a, b: ops.concat([-b, b], 3),
}


@pytest.mark.parametrize("sliced", [True, False])
@pytest.mark.parametrize("name", ROTARY_NEAR_MISSES)
def test_what_is_no_rotary_embedding(name: str, sliced: bool) -> None:
    graph = trace(rotary(sliced=sliced, turn=ROTARY_NEAR_MISSES[name]), *ROTARY)
    assert PASSES["rotary_position_embedding"](graph) is graph


def test_a_quarter_is_no_half() -> None:
    def embed(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        return x * cos + ops.concat([-x[..., 2:6], x[..., :4]], 3) * sin

    graph = trace(embed, *ROTARY)
    assert PASSES["rotary_position_embedding"](graph) is graph


def test_the_operator_is_declared_with_its_meaning() -> None:
    op = OPS["RotaryPositionEmbedding"]
    x = np.arange(4, dtype=np.float32)[None]
    one, zero = np.ones_like(x), np.zeros_like(x)
    graph = trace(lambda x, c, s: ops.apply(op, x, c, s), *(spec((1, 4)) for _ in range(3)))
    assert evaluate(graph, [x, one, zero])[0].tolist() == x.tolist()
    assert evaluate(graph, [x, zero, one])[0].tolist() == [[-2, -3, 0, 1]]
