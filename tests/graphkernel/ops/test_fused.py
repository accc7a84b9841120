"""The fused operators of transformers and of quantization against their formulas, and what their type rules refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphkernel import ops
from graphkernel.errors import TypeRuleError
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import OPS

Array = np.ndarray[Any, np.dtype[Any]]

RNG = np.random.default_rng(5)
X, Y = (RNG.standard_normal((3, 8)).astype(np.float32) for _ in range(2))
GAMMA, BETA = (RNG.standard_normal(8).astype(np.float32) for _ in range(2))


def array_of(of: str, content: object) -> Array:
    return np.asarray(content, of)


def normal(x: Array) -> Array:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def rms(x: Array) -> Array:
    return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-5)


def near(found: Array, expected: Array) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_layer_norms() -> None:
    y, mean, rstd, total = ops.add_layer_norm(X, Y, GAMMA, BETA, epsilon=1e-5)
    near(y, normal(X + Y) * GAMMA + BETA)
    near(mean, (X + Y).mean(-1, keepdims=True))
    near(rstd, 1 / np.sqrt((X + Y).var(-1, keepdims=True) + 1e-5))
    near(total, X + Y)
    near(ops.layer_norm_v3(X, GAMMA, BETA, epsilon=1e-5)[0], normal(X) * GAMMA + BETA)
    near(ops.layer_norm_ext(X, (8,), GAMMA, BETA)[0], normal(X) * GAMMA + BETA)


def test_statistics_are_wider_than_half_precision() -> None:
    half = X.astype(np.float16)
    _, mean, rstd = ops.layer_norm_v3(half, GAMMA.astype(np.float16), BETA.astype(np.float16))
    assert (mean.dtype, rstd.dtype) == (np.float32, np.float32)


def test_rms_norm_of_a_sum() -> None:
    y, rstd, total = ops.add_rms_norm(X, Y, GAMMA, epsilon=1e-5)
    near(y, rms(X + Y) * GAMMA)
    near(total * rstd * GAMMA, y)


def test_quantization_saturates_and_forgets_nan() -> None:
    x = np.array([0.5, 1.5, -1.5, 300, -300, np.inf, -np.inf, np.nan], np.float32)
    one, zero = array_of("float32", [1]), array_of("int8", [0])
    assert ops.quant_v2(x, one, zero).tolist() == [0, 2, -2, 127, -128, 127, -128, 0]
    assert ops.quant_v2(x, one, zero, rounding_mode="FLOOR").tolist() == [0, 1, -2, 127, -128, 127, -128, 0]
    assert ops.quant_v2(x, one, zero, rounding_mode="CEIL").tolist() == [1, 2, -1, 127, -128, 127, -128, 0]
    assert ops.quant_v2(x, one, zero, rounding_mode="TRUNC").tolist() == [0, 1, -1, 127, -128, 127, -128, 0]
    assert ops.quant_v2(
        array_of("float32", [3]), array_of("float32", [2]), array_of("int8", [1]), sqrt_mode=True
    ).tolist() == [13]


def test_rows_are_quantized_by_their_largest_element() -> None:
    x = array_of("float32", [[127, -63.5, 1], [0, 0, 0], [-254, 2, 4]])
    quantized, scale = ops.dynamic_quant(x)
    assert quantized.tolist() == [[127, -64, 1], [0, 0, 0], [-127, 1, 2]]
    assert scale.tolist() == [1, 0, 2]
    smoothed, _ = ops.dynamic_quant(x, array_of("float32", [1, 2, 127]))
    assert smoothed.tolist() == [[127, -127, 127], [0, 0, 0], [-64, 1, 127]]


def test_quantized_product() -> None:
    x1 = RNG.integers(-128, 128, (5, 4)).astype(np.int8)
    x2 = RNG.integers(-128, 128, (4, 3)).astype(np.int8)
    scale, rows = RNG.uniform(1e-4, 1e-3, 3).astype(np.float32), RNG.uniform(0.5, 2, 5).astype(np.float32)
    bias = RNG.integers(-999, 999, 3).astype(np.int32)
    exact = (x1.astype(np.int64) @ x2.astype(np.int64) + bias) * scale.astype(np.float64) * rows[:, None]
    near(ops.quant_batch_matmul(x1, x2, scale, bias, rows, result_dtype="float32"), exact)
    turned = ops.quant_batch_matmul(x1.T, x2.T, scale, bias, rows, transpose_x1=True, transpose_x2=True)
    assert turned.dtype == np.float16
    np.testing.assert_allclose(turned.astype(np.float64), exact, rtol=1e-3)


def test_attention() -> None:
    q, k, v = (RNG.standard_normal((2, 2, 3, 4)).astype(np.float32) for _ in range(3))
    mask = array_of("float32", [[1, 1, 0]]).reshape(1, 1, 1, 3)
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) * 0.5
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    near(ops.prompt_flash_attention(q, k, v, scale_value=0.5), weights / weights.sum(-1, keepdims=True) @ v)
    weights[..., 2] = 0
    near(ops.prompt_flash_attention(q, k, v, mask, scale_value=0.5), weights / weights.sum(-1, keepdims=True) @ v)


def test_swiglu_gates_with_the_first_half() -> None:
    near(ops.swiglu(X), X[:, :4] / (1 + np.exp(-X[:, :4])) * X[:, 4:])
    near(ops.swiglu(X.T, axis=0), ops.swiglu(X).T)


def test_reshapes_by_others() -> None:
    assert ops.dynamic_reshape(X, array_of("int64", [4, 6]), (4, 6)).shape == (4, 6)
    assert ops.reshape_ext(X, [np.zeros((6, 4))], (6, 4)).shape == (6, 4)
    graph = trace(lambda x, y: ops.reshape_ext(x, [y], y.shape), spec(("N*2",)), spec(("N", 2)))
    assert str(graph.outputs[0].type) == "f32[N, 2]"


REFUSED: tuple[tuple[str, tuple[tuple[tuple[int, ...], str], ...], dict[str, object], str], ...] = (
    ("Swiglu", (((3, 5), "float32"),), {}, "axis 1 of extent 5 has no halves"),
    ("QuantV2", (((3,), "float32"), ((4,), "float32"), ((1,), "int8")), {}, "do not broadcast"),
    ("QuantV2", (((1,), "float32"), ((4,), "float32"), ((1,), "int8")), {}, "must broadcast to [1]"),
    (
        "QuantV2",
        (((3,), "float32"), ((1,), "float32"), ((1,), "int8")),
        {"rounding_mode": "UP"},
        "rounding_mode must be",
    ),
    ("DynamicQuant", (((3, 4), "float32"), ((3,), "float32")), {}, "smooth scales for its last axis"),
    ("QuantBatchMatmul", (((3, 4), "int8"), ((4, 2), "int8"), ((2,), "float16")), {}, "scale float32"),
    ("QuantBatchMatmul", (((3, 4), "int8"), ((4, 2), "int8"), ((3,), "float32")), {}, "scale must be a vector of 2"),
    ("QuantBatchMatmul", (((3, 4), "int8"), ((4, 2), "int8"), ((2,), "float32"), ((2,), "int32")), {}, "does not name"),
    (
        "QuantBatchMatmul",
        (((3, 4), "int8"), ((4, 2), "int8"), ((2,), "float32"), ((2,), "float32")),
        {"optional": ("bias",)},
        "bias must be int32",
    ),
    (
        "LayerNormExt",
        (((3, 4), "float32"), ((4,), "float32"), ((4,), "float32")),
        {"normalized_shape": (3,)},
        "is not how",
    ),
    (
        "MatmulSplitOut2",
        (((2, 4), "float32"), ((3, 4), "float32")),
        {"n_lens": (1, 1, 1)},
        "n_lens must have 2 entries",
    ),
    ("MatmulSplitOut2", (((2, 4), "float32"), ((3, 4), "float32")), {"n_lens": (1, 1)}, "add up to 2"),
    (
        "MatmulSplitSiluOut2",
        (((2, 4), "float32"), ((3, 4), "float32")),
        {"n_lens": (1, 2), "silu_index": 2},
        "silu_index 2",
    ),
    (
        "FusedMatmulElemUnary",
        (((2, 4), "float32"), ((4, 3), "float32")),
        {"elemwise": "tanh"},
        "elemwise must be one of",
    ),
    ("DynamicReshape", (((2, 4), "float32"), ((3,), "int64")), {"shape": (8,)}, "must hold the extents of [8]"),
    ("ReshapeExt", (((2, 4), "float32"), ((3,), "int64")), {"shape": (8,)}, "only_depend_shape must name"),
    ("PromptFlashAttention", (((2, 4), "float32"),) * 3, {"num_heads": 1, "num_key_value_heads": 1}, "rank 4"),
    (
        "PromptFlashAttention",
        (((1, 2, 3, 4), "float32"),) * 3,
        {"num_heads": 1, "num_key_value_heads": 1, "scale_value": 1.0},
        "have not the 1 heads",
    ),
)


@pytest.mark.parametrize(("name", "operands", "attrs", "reason"), REFUSED)
def test_refused(
    name: str, operands: tuple[tuple[tuple[int, ...], str], ...], attrs: dict[str, object], reason: str
) -> None:
    arrays = [np.ones(shape, of) for shape, of in operands]
    with pytest.raises(TypeRuleError) as caught:
        ops.apply_all(OPS[name], *arrays, **attrs)
    assert reason in str(caught.value)
    assert str(caught.value).startswith(f"{name}(")
