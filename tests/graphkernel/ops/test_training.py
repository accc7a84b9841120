"""Losses and optimizer steps: values worked out otherwise, effects, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import FrontendError, TypeRuleError
from graphkernel.ops.catalogue import OPS
from kernelgen.tensor.evaluation.evaluate import evaluate

RNG = np.random.default_rng(3)
S = gk.spec((2, 3), "float32")
SCALAR = gk.spec((), "float32")

ANY: Any = ops  # for calls with operands from lists, which a type checker does not count


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def test_cross_entropy_of_a_confident_wrong_answer_is_not_cut() -> None:
    """MindSpore holds the probability above 1e-6 and gives 13.8."""
    loss, dlogits = ops.softmax_cross_entropy_with_logits(np.array([[0.0, 50.0]]), np.array([[1.0, 0.0]]))
    np.testing.assert_allclose(loss, [50.0])
    np.testing.assert_allclose(dlogits, [[-1.0, 1.0]])


def test_binary_cross_entropy_and_its_logit_form_agree() -> None:
    x, z, weight = normal(3, 4), RNG.uniform(size=(3, 4)), normal(3, 4)
    for reduction in ("none", "mean", "sum"):
        by_p = ops.binary_cross_entropy(1 / (1 + np.exp(-x)), z, weight, reduction)
        by_x = ops.bce_with_logits_loss(x, z, weight, np.ones(4), reduction)
        np.testing.assert_allclose(by_p, by_x, rtol=1e-12)
    np.testing.assert_allclose(by_x, (weight * ops.sigmoid_cross_entropy_with_logits(x, z)).sum(), rtol=1e-12)


def test_a_certain_and_right_answer_costs_nothing() -> None:
    loss = ops.binary_cross_entropy(np.array([0.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0]), reduction="none")
    np.testing.assert_array_equal(loss, [0.0, 0.0, 100.0])


def test_adam_is_the_papers() -> None:
    """Kingma and Ba, algorithm 1, three steps; epsilon as in their remark on efficiency."""
    var, m, v = normal(4), np.zeros(4), np.zeros(4)
    expected, mean, square = var.copy(), np.zeros(4), np.zeros(4)
    lr, b1, b2 = 0.1, 0.9, 0.99
    for t in range(1, 4):
        grad = normal(4)
        var, m, v = ops.adam(var, m, v, b1**t, b2**t, lr, b1, b2, 0.0, grad)
        mean, square = b1 * mean + (1 - b1) * grad, b2 * square + (1 - b2) * grad**2
        expected = expected - lr * (mean / (1 - b1**t)) / np.sqrt(square / (1 - b2**t))
        np.testing.assert_allclose(var, expected, rtol=1e-5)


def test_weight_decay_is_decoupled() -> None:
    var, zero = normal(4), np.zeros(4)
    decayed, *_ = ops.adam_weight_decay(var, zero, zero, 0.1, 0.9, 0.99, 1e-8, 0.5, zero)
    np.testing.assert_allclose(decayed, var * 0.95)


def test_momentum() -> None:
    var, accumulation, grad = normal(4), normal(4), normal(4)
    new, kept = ops.apply_momentum(var, accumulation, 0.1, grad, 0.9)
    np.testing.assert_allclose(kept, accumulation * 0.9 + grad, rtol=1e-6)
    np.testing.assert_allclose(new, var - 0.1 * kept, rtol=1e-6)


def test_lamb_trusts_the_ratio_of_norms_only_where_both_are_positive() -> None:
    update, var = np.ones(2), np.zeros(2)
    for w, g, ratio in ((2.0, 4.0, 0.5), (0.0, 4.0, 1.0), (2.0, 0.0, 1.0)):
        found = ops.lamb_apply_weight_assign(np.array(w), np.array(g), np.array(0.1), update, var)
        np.testing.assert_allclose(found, -0.1 * ratio * update)


def test_clip_by_norm() -> None:
    x = np.array([[3.0, 4.0], [0.3, 0.4]])
    np.testing.assert_allclose(ops.clip_by_norm(x, np.array(1.0), axis=1), [[0.6, 0.8], [0.3, 0.4]])
    np.testing.assert_array_equal(ops.clip_by_norm(np.zeros(2), np.array(0.0)), np.zeros(2))


def test_batch_norm_in_training_keeps_unbiased_running_statistics() -> None:
    x = normal(4, 3, 2)
    zero, one = np.zeros(3), np.ones(3)
    y, mean, variance, batch_mean, rstd = ops.batch_norm(x, one, zero, zero, one, 0.0, 0.25, is_training=True)
    np.testing.assert_allclose(y.mean(axis=(0, 2)), zero, atol=1e-12)
    np.testing.assert_allclose(y.var(axis=(0, 2)), one)
    np.testing.assert_allclose(mean, 0.25 * x.mean(axis=(0, 2)))
    np.testing.assert_allclose(variance, 0.75 + 0.25 * x.var(axis=(0, 2), ddof=1))
    np.testing.assert_allclose((batch_mean, rstd), (x.mean(axis=(0, 2)), 1 / x.std(axis=(0, 2))))


IN_PLACE = {
    "Adam": (ops.adam, [S] * 3 + [SCALAR] * 6 + [S]),
    "AdamWeightDecay": (ops.adam_weight_decay, [S] * 3 + [SCALAR] * 5 + [S]),
    "AdamApplyOneWithDecayAssign": (ops.adam_apply_one_with_decay_assign, [S] * 4 + [SCALAR] * 7),
    "ApplyMomentum": (ops.apply_momentum, [S, S, SCALAR, S, SCALAR]),
    "LambApplyOptimizerAssign": (ops.lamb_apply_optimizer_assign, [S] * 4 + [SCALAR] * 8),
    "LambApplyWeightAssign": (ops.lamb_apply_weight_assign, [SCALAR] * 3 + [S, S]),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_results_are_written_into_operands(name: str) -> None:
    """The aliases say what the record says, through every pass, and a run changes exactly these arrays."""
    function, specs = IN_PLACE[name]
    graph = gk.trace(lambda *operands: function(*operands), *specs)
    assert {(alias.output, alias.input) for alias in graph.aliases} == set(OPS[name].traits.writes)
    shapes = [tuple(dim for dim in type_.shape if isinstance(dim, int)) for type_ in specs]
    arrays = [np.asarray(RNG.uniform(0.1, 0.9, shape), np.float32) for shape in shapes]
    expected = evaluate(graph, arrays)
    before = [array.copy() for array in arrays]
    gk.compile(gk.optimize(graph))(*arrays)
    written = {operand: expected[result] for result, operand in OPS[name].traits.writes}
    for position, array in enumerate(arrays):
        np.testing.assert_allclose(array, written.get(position, before[position]), rtol=1e-5)


def test_scalars_beside_float16_stay_float32() -> None:
    half = gk.spec((3,), "float16")
    graph = gk.trace(lambda w, m, v, g: ops.adam(w, m, v, 0.9, 0.99, 1e-3, 0.9, 0.99, 1e-8, g), *[half] * 4)
    assert "1e-08" in str(graph)
    assert "f32" in str(graph)


def test_only_inputs_can_be_written_into() -> None:
    with pytest.raises(FrontendError, match="ApplyMomentum: operand 1 is written into, so only an input"):
        gk.trace(lambda w, a, g: ops.apply_momentum(w, a + 1.0, 0.1, g, 0.9), S, S, S)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: ANY.adam(*[np.ones(3)] * 2, np.ones(4), *[0.5] * 6, np.ones(3)), "v must have the parameter's shape"),
        (lambda: ops.apply_momentum(np.ones(3), np.ones(3), np.ones(3), np.ones(3), 0.9), "lr must be a scalar"),
        (lambda: ANY.layer_norm_grad(*[np.ones((2, 3))] * 2, *[np.ones(2)] * 2, np.ones(3)), "mean and variance need"),
        (lambda: ANY.batch_norm(np.ones((2, 3)), *[np.ones(2)] * 4), "need the shape of axis 1"),
        (lambda: ops.binary_cross_entropy(np.ones(2), np.ones(2), reduction="most"), "reduction must be one of"),
        (lambda: ops.softmax_cross_entropy_with_logits(np.ones((2, 3)), np.ones(3)), "must have one shape"),
        (lambda: ops.clip_by_norm(np.ones(3), np.ones((2, 3))), "clip_norm must broadcast"),
        (lambda: ops.maximum_grad(np.ones(3), np.ones(3), np.ones(4)), "dout must have the type of the result"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(wrong, message: str) -> None:
    with pytest.raises(TypeRuleError, match=message):
        wrong()


def test_a_symbolic_extent_is_a_number_at_run_time() -> None:
    graph = gk.trace(lambda x: ops.reduce_mean(x, axis=-1), gk.spec(("N", "M"), "float32"))
    exe = gk.compile(graph)
    assert "Extent(" in str(gk.optimize(graph))
    for shape in ((2, 3), (4, 5)):
        x = normal(*shape).astype(np.float32)
        np.testing.assert_allclose(exe(x)[0], x.mean(axis=-1), rtol=1e-5)
