"""Attentions divide their results: which of them, to what bound of the error, and what becomes of masked rows."""

from __future__ import annotations

import numpy as np
import pytest

import graphkernel as gk
from graphkernel.passes.precision.quotients_behind_products import quotients_behind_products
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.operators.elemwise import REAL_DIV

BATCH, ROWS, TERMS, WIDTH = 2, 12, 40, 16
UNIT = 2.0**-24


def attention(is_guarded: bool = False, gives_weights: bool = False, shifts: bool = True) -> Graph:
    """Of queries, keys, values and a mask that is added to scores."""

    def network(q, k, v, mask):
        scores = gk.ops.batch_matmul(q, k) + mask
        e = gk.ops.exp(scores - gk.ops.reduce_max(scores, (-1,), keep_dims=True) if shifts else scores)
        p = e / gk.ops.reduce_sum(e, (-1,), keep_dims=True)
        p = gk.ops.select(gk.ops.is_nan(p), 0.0, p) if is_guarded else p
        y = gk.ops.batch_matmul(p, v)
        return (y, p) if gives_weights else y

    shapes = (BATCH, ROWS, WIDTH), (BATCH, WIDTH, TERMS), (BATCH, TERMS, WIDTH), (ROWS, TERMS)
    return gk.trace(network, *(gk.spec(shape, "float32") for shape in shapes))


def divided(graph: Graph) -> list[tuple[object, ...]]:
    """The shapes of quotients."""
    return [node.out.type.shape for node in quotients_behind_products(graph).operators if node.op is REAL_DIV]


def operands() -> list[np.ndarray]:
    random = np.random.default_rng(0)
    shapes = (BATCH, ROWS, WIDTH), (BATCH, WIDTH, TERMS), (BATCH, TERMS, WIDTH)
    mask = np.where(random.random((ROWS, TERMS)) < 0.3, -np.inf, 0).astype(np.float32)
    return [*(random.standard_normal(shape).astype(np.float32) for shape in shapes), mask]


@pytest.mark.parametrize("is_guarded", [False, True])
def test_an_attention_divides_its_results(is_guarded: bool) -> None:
    assert divided(attention(is_guarded)) == [(BATCH, ROWS, WIDTH)]


def test_weights_that_somebody_else_reads_are_divided() -> None:
    assert divided(attention(gives_weights=True)) == [(BATCH, ROWS, TERMS)]


def test_powers_that_may_be_of_any_size_are_divided_first() -> None:
    assert divided(attention(shifts=False)) == [(BATCH, ROWS, TERMS)]


@pytest.mark.parametrize("is_guarded", [False, True])
def test_results_are_within_the_bound_of_the_sums_before(is_guarded: bool) -> None:
    q, k, v, mask = operands()
    exe = gk.compile(attention(is_guarded))
    assert not exe.report.host
    scores = (q @ k + mask).astype(np.float64)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    of_scores = 2 * (WIDTH + 2) * UNIT * (np.abs(q).astype(np.float64) @ np.abs(k))
    each = of_scores.max(-1, keepdims=True) * 2 + (2 * TERMS + 8) * UNIT  # of a weight, relative to it
    bound = each * (p @ np.abs(v)) * 1.01
    assert (np.abs(exe(q, k, v, mask)[0] - p @ v) <= bound).all()


def test_a_row_that_is_masked_as_a_whole_is_zeros_behind_a_guard_and_nan_without() -> None:
    q, k, v, mask = operands()
    mask[3] = -np.inf
    guarded, plain = (gk.compile(attention(is_guarded))(q, k, v, mask)[0] for is_guarded in (True, False))
    assert (guarded[:, 3] == 0).all()
    assert np.isnan(plain[:, 3]).all()
    others = [row for row in range(ROWS) if row != 3]
    np.testing.assert_allclose(guarded[:, others], plain[:, others], rtol=1e-6, atol=1e-6)


def test_a_value_that_is_no_number_reaches_masked_rows_as_zeros_times_it_do() -> None:
    q, k, v, mask = operands()
    mask[3] = -np.inf
    v[0, 5, 2] = np.nan
    found = gk.compile(attention(is_guarded=True))(q, k, v, mask)[0]
    assert np.isnan(found[0, 3, 2])
    assert (found[0, 3, :2] == 0).all()
