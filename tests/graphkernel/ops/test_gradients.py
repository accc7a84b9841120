"""Gradient operators against central differences of the operators that they belong to, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphkernel import ops

Function = Callable[..., Any]
STEP = 1e-6
RNG = np.random.default_rng(5)


def normal(*shape: int) -> np.ndarray:
    """Away from 0, where some activations have no derivative."""
    values = RNG.standard_normal(shape)
    return values + 0.05 * np.sign(values)


def check(forward: Function, operands: list[np.ndarray], dy: np.ndarray, found: tuple[np.ndarray, ...]) -> None:
    """Each of ``found`` is the derivative of ``sum(forward(*operands) * dy)`` by the operand in its place."""
    for place, gradient in enumerate(found):
        expected = np.empty(operands[place].shape)
        for index in np.ndindex(expected.shape):
            sums: list[float] = []
            for step in (STEP, -STEP):
                moved = [operand.copy() for operand in operands]
                moved[place][index] += step
                sums.append(float(np.sum(forward(*moved) * dy)))
            expected[index] = (sums[0] - sums[1]) / (2 * STEP)
        np.testing.assert_allclose(gradient, expected, rtol=2e-7, atol=2e-8, err_msg=f"operand {place}")


FROM_OPERAND: dict[str, tuple[Function, Function]] = {
    "GeLUGrad": (lambda x: ops.gelu(x, approximate="tanh"), ops.gelu_grad),
    "FastGeLUGrad": (ops.fast_gelu, ops.fast_gelu_grad),
    "SiLUGrad": (ops.silu, ops.silu_grad),
    "SoftplusGrad": (ops.softplus, ops.softplus_grad),
    "SoftplusGradExt": (
        lambda x: ops.softplus_ext(x, 2.0, 1.0),
        lambda dy, x: ops.softplus_grad_ext(dy, x, 2.0, 1.0),
    ),
}
FROM_RESULT: dict[str, tuple[Function, Function]] = {
    "TanhGrad": (ops.tanh, ops.tanh_grad),
    "SigmoidGrad": (ops.sigmoid, ops.sigmoid_grad),
    "SqrtGrad": (ops.sqrt, ops.sqrt_grad),
    "RsqrtGrad": (ops.rsqrt, ops.rsqrt_grad),
    "ReluGrad": (ops.relu, lambda y, dy: ops.relu_grad(dy, y)),
    "SoftmaxGrad": (ops.softmax, ops.softmax_grad),
    "SoftmaxBackward": (ops.softmax, lambda y, dy: ops.softmax_backward(dy, y)),
    "LogSoftmaxGrad": (ops.log_softmax, ops.log_softmax_grad),
}


@pytest.mark.parametrize("name", FROM_OPERAND)
def test_from_dy_and_the_operand(name: str) -> None:
    forward, gradient = FROM_OPERAND[name]
    x, dy = normal(3, 4), normal(3, 4)
    check(forward, [x], dy, (gradient(dy, x),))


@pytest.mark.parametrize("name", FROM_RESULT)
def test_from_the_result_and_dy(name: str) -> None:
    forward, gradient = FROM_RESULT[name]
    x, dy = normal(3, 4), normal(3, 4)
    x = np.abs(x) if name in ("SqrtGrad", "RsqrtGrad") else x
    check(forward, [x], dy, (gradient(forward(x), dy),))


@pytest.mark.parametrize(("norm", "params"), [(-1, -1), (1, 1), (-2, -2), (2, 1), (1, -1), (0, 0)])
def test_layer_norm(norm: int, params: int) -> None:
    x, dy = normal(2, 3, 4), normal(2, 3, 4)
    gamma, beta = normal(*x.shape[params:]), normal(*x.shape[params:])
    where: dict[str, Any] = {"begin_norm_axis": norm, "begin_params_axis": params, "epsilon": 1e-3}
    _, mean, variance = ops.layer_norm(x, gamma, beta, **where)
    found = ops.layer_norm_grad(x, dy, variance, mean, gamma, **where)
    check(lambda *operands: ops.layer_norm(*operands, **where)[0], [x, gamma, beta], dy, found)


@pytest.mark.parametrize("rank", [1, 2])
def test_rms_norm(rank: int) -> None:
    x, dy, gamma = normal(2, 3, 4), normal(2, 3, 4), normal(*(2, 3, 4)[3 - rank :])
    _, rstd = ops.rms_norm(x, gamma, 1e-3)
    check(
        lambda *operands: ops.rms_norm(*operands, epsilon=1e-3)[0],
        [x, gamma],
        dy,
        ops.rms_norm_grad(dy, x, rstd, gamma),
    )


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(layout: str, training: bool) -> None:
    shape = (2, 3, 2, 2) if layout == "NCHW" else (2, 2, 2, 3)
    x, dy = normal(*shape), normal(*shape)
    scale, bias, mean, variance = normal(3), normal(3), normal(3), np.abs(normal(3))

    def forward(x: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
        results = ops.batch_norm(x, scale, bias, mean, variance, 1e-3, data_format=layout, is_training=training)
        return results[0] if training else results

    if training:
        *_, mean_used, spread = ops.batch_norm(
            x, scale, bias, mean, variance, 1e-3, data_format=layout, is_training=True
        )
    else:
        mean_used, spread = mean, variance
    found = ops.batch_norm_grad(dy, x, scale, mean_used, spread, 1e-3, layout, is_training=training)
    check(forward, [x, scale, bias], dy, found)


def test_the_losses() -> None:
    logits, labels = normal(3, 4), ops.softmax(normal(3, 4))
    _, dlogits = ops.softmax_cross_entropy_with_logits(logits, labels)
    check(lambda x: ops.softmax_cross_entropy_with_logits(x, labels)[0], [logits], np.ones(3), (dlogits,))
    dout = normal(3, 4)
    found = ops.sigmoid_cross_entropy_with_logits_grad(logits, labels, dout)
    check(lambda x: ops.sigmoid_cross_entropy_with_logits(x, labels), [logits], dout, (found,))


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes_of_broadcast_operands(name: str) -> None:
    x, y, dout = normal(2, 1, 4), normal(3, 1), normal(2, 3, 4)
    found = getattr(ops, f"{name}_grad")(x, y, dout)
    check(getattr(ops, name), [x, y], dout, found)


def test_equal_operands_give_all_to_the_first() -> None:
    x, dout = np.zeros(2), np.array([1.0, 2.0])
    for gradient in (ops.maximum_grad, ops.minimum_grad):
        dx, dy = gradient(x, x, dout)
        assert (list(dx), list(dy)) == ([1.0, 2.0], [0.0, 0.0])


def test_a_wrong_gradient_is_found() -> None:
    x, dy = normal(3), normal(3)
    with pytest.raises(AssertionError, match="operand 0"):
        check(ops.silu, [x], dy, (dy * ops.sigmoid(x),))
