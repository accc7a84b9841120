"""A softmax multiplies by the inverse of its total: where, how far from the quotient, and what becomes of special rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.ops import Tensor
from kernelgen.tensor.operators.elemwise import REAL_DIV, RECIPROCAL

Network = Callable[[Tensor], Tensor]
UNIT = 2.0**-24


def softmax(x: Tensor) -> Tensor:
    return ops.softmax(x, axis=-1)


def written_out(x: Tensor) -> Tensor:
    e = ops.exp(x - ops.reduce_max(x, (-1,), keep_dims=True))
    return e / ops.reduce_sum(e, (-1,), keep_dims=True)


def unshifted(x: Tensor) -> Tensor:
    e = ops.exp(x)
    return e / ops.reduce_sum(e, (-1,), keep_dims=True)


def of_other_powers(x: Tensor) -> Tensor:
    e = ops.exp(x - ops.reduce_max(x, (-1,), keep_dims=True))
    return e / ops.reduce_sum(ops.exp(x), (-1,), keep_dims=True)


def divided_by_columns(x: Tensor) -> Tensor:
    e = ops.exp(x - ops.reduce_max(x, (-1,), keep_dims=True))
    return e / ops.reduce_sum(e, (0,), keep_dims=True)


def operators(network: Network, type_: str = "float32", target: str = "cpu", flags: str = "") -> set[str]:
    """Those in kernels that divide or invert."""
    graph = gk.optimize(gk.trace(network, gk.spec((8, 64), type_)), target=target, flags=flags)
    inside = {each.op for node in graph.operators if node.body is not None for each in node.body.operators}
    return {op.name for op in inside & {REAL_DIV, RECIPROCAL}}


@pytest.mark.parametrize("network", [softmax, written_out])
@pytest.mark.parametrize("type_", ["float32", "float64"])
def test_a_softmax_of_rows_inverts_its_totals(network: Network, type_: str) -> None:
    assert operators(network, type_) == {RECIPROCAL.name}


@pytest.mark.parametrize("network", [unshifted, of_other_powers, divided_by_columns])
def test_totals_of_any_size_are_divided_by(network: Network) -> None:
    """Their inverse may be too small to be a normal number, or infinite."""
    assert operators(network) == {REAL_DIV.name}


@pytest.mark.parametrize("target", ["gpu", "ascend"])
def test_other_machines_divide(target: str) -> None:
    assert operators(softmax, target=target) == {REAL_DIV.name}


@pytest.mark.parametrize("flags", ["", "--disable_pass=highlevelopt1.raise_reduction_precision"])
def test_narrow_floats_are_divided(flags: str) -> None:
    """An inverse of 11 bits is too coarse."""
    assert operators(written_out, "float16", flags=flags) == {REAL_DIV.name}


def test_operators_of_several_results_stay() -> None:
    """Halves of a softmax beside it in one kernel."""

    def network(x: Tensor) -> tuple[Tensor, Tensor]:
        first, second = ops.split(ops.exp(x), 2, axis=-1)
        return softmax(x), first + second

    exe = gk.compile(gk.trace(network, gk.spec((8, 64), "float32")))
    x = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)
    np.testing.assert_allclose(exe(x)[1], np.exp(x[:, :32]) + np.exp(x[:, 32:]), rtol=1e-6)


def test_the_pass_can_be_switched_off() -> None:
    assert operators(softmax, flags="--disable_pass=highlevelopt1.inverse_totals") == {REAL_DIV.name}


@pytest.mark.parametrize("columns", [1, 2, 3, 17, 512, 1000])
def test_results_are_within_their_bound_of_the_quotient(columns: int) -> None:
    """Of exponentials, their sum, the inverse and the product, each relative to the result."""
    x = np.random.default_rng(columns).standard_normal((64, columns)).astype(np.float32) * 4
    found = gk.compile(gk.trace(softmax, gk.spec(x.shape, "float32")))(x)[0]
    shifted = (x - x.max(-1, keepdims=True)).astype(np.float64)
    e = np.exp(shifted)
    bound = (2 * 2.5 + columns + 2) * UNIT
    np.testing.assert_array_less(
        np.abs(found - e / e.sum(-1, keepdims=True)), bound * e / e.sum(-1, keepdims=True) + 1e-45
    )


def test_special_rows_are_what_their_quotients_are() -> None:
    x = np.zeros((5, 40), np.float32)
    x[0, 3] = np.nan
    x[1] = -np.inf
    x[2, 7] = np.inf
    x[3, :39] = -np.inf
    x[4, :20] = -1e30
    found = gk.compile(gk.trace(softmax, gk.spec(x.shape, "float32")))(x)[0]
    assert np.isnan(found[:3, [3, 7]]).any(axis=1).all()
    assert np.isnan(found[:2]).all()
    np.testing.assert_array_equal(found[3], [0] * 39 + [1])
    np.testing.assert_allclose(found[4], [0] * 20 + [1 / 20] * 20, rtol=2e-7)
