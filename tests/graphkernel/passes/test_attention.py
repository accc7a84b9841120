"""Attention on a CPU is one kernel, however its scales, masks, guards and heads are written, and computes what it did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from kernelgen.tensor.graph import Graph

RNG = np.random.default_rng(0)
HEADS, SIZE = 4, 16
WIDTH = HEADS * SIZE
Function = Callable[..., Any]


def softmax(scores: Any) -> Any:
    return ops.softmax(scores, axis=-1)


def guarded(scores: Any) -> Any:
    """A row of which everything is masked has no weights."""
    weights = softmax(scores)
    return ops.select(ops.is_nan(weights), 0.0, weights)


def by_hand(scores: Any) -> Any:
    powers = ops.exp(scores - ops.reduce_max(scores, axis=-1, keep_dims=True))
    return powers / ops.reduce_sum(powers, axis=-1, keep_dims=True)


def heads_apart(x: Any, order: tuple[int, ...]) -> Any:
    batch, rows, _ = x.shape
    return ops.transpose(ops.reshape(x, (batch, rows, HEADS, SIZE)), order)


def as_bert(q: Any, k: Any, v: Any, mask: Any, weights: Function) -> Any:
    """Operands of all heads side by side, a scale on both, the heads side by side again."""
    query, key = heads_apart(q, (0, 2, 1, 3)) * 0.5, heads_apart(k, (0, 2, 3, 1)) * 0.5
    scores = ops.matmul(query, key) + ops.select(mask, 0.0, float("-inf"))
    result = ops.transpose(ops.matmul(weights(scores), heads_apart(v, (0, 2, 1, 3))), (0, 2, 1, 3))
    return ops.reshape(result, (*q.shape[:2], WIDTH))


def expected(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """In float64; rows without anything to see are zero."""

    def apart(x: np.ndarray) -> np.ndarray:
        return x.astype(np.float64).reshape(*x.shape[:2], HEADS, SIZE).transpose(0, 2, 1, 3)

    scores = np.where(mask, apart(q) @ apart(k).swapaxes(2, 3) * 0.25, -np.inf)
    powers = np.where(mask, np.exp(scores - np.max(scores, axis=-1, keepdims=True, initial=-1e9)), 0.0)
    weights = powers / np.maximum(powers.sum(-1, keepdims=True), 1e-30)
    return (weights @ apart(v)).transpose(0, 2, 1, 3).reshape(*q.shape[:2], WIDTH)


def checked(graph: Graph, arrays: list[np.ndarray], wanted: np.ndarray) -> None:
    """One kernel and nothing else, with the wanted numbers."""
    exe = gk.compile(graph)
    assert not exe.report.host
    assert sum(len(entry.calls) for entry in exe.report.kernels) == 1
    np.testing.assert_allclose(exe(*arrays)[0], wanted, rtol=2e-5, atol=2e-6)


def operands(batch: int, rows: int, keys: int) -> list[np.ndarray]:
    return [RNG.standard_normal((batch, n, WIDTH)).astype(np.float32) for n in (rows, keys, keys)]


@pytest.mark.parametrize(
    ("rows", "keys", "weights"),
    [(12, 12, guarded), (49, 50, softmax), (128, 64, by_hand), (1, 33, softmax)],
    ids=lambda value: value if isinstance(value, int) else value.__name__,
)
def test_an_exported_attention_is_one_kernel(rows: int, keys: int, weights: Function) -> None:
    given = operands(2, rows, keys)
    mask = RNG.random((2, 1, rows, keys)) > 0.4
    mask[..., 0] = True
    if weights is guarded:
        mask[0, 0, 3] = False
    specs = [gk.spec(x.shape) for x in given]
    graph = gk.trace(lambda q, k, v, m: as_bert(q, k, v, m, weights), *specs, gk.spec(mask.shape, "bool"))
    q, k, v = given
    checked(graph, [q, k, v, mask], expected(q, k, v, mask))


def test_sizes_may_be_open() -> None:
    def attention(q: Any, k: Any, v: Any, mask: Any) -> Any:
        scores = ops.matmul(q * 0.25, k, transpose_b=True) + ops.select(mask, 0.0, float("-inf"))
        return ops.matmul(guarded(scores), v)

    shape = ("B", HEADS, "S", SIZE)
    exe = gk.compile(gk.trace(attention, *[gk.spec(shape)] * 3, gk.spec(("B", 1, "S", "S"), "bool")))
    assert not exe.report.host
    for batch, rows in ((1, 1), (2, 13), (3, 70)):
        q, k, v = operands(batch, rows, rows)
        mask = np.broadcast_to(np.tri(rows, dtype=bool), (batch, 1, rows, rows)).copy()
        mask[0, 0, 0] = False
        found = exe(*(x.reshape(batch, rows, HEADS, SIZE).transpose(0, 2, 1, 3).copy() for x in (q, k, v)), mask)[0]
        wanted = expected(q, k, v, mask).reshape(batch, rows, HEADS, SIZE).transpose(0, 2, 1, 3)
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)


def test_keys_and_values_may_be_shared_by_heads() -> None:
    """Grouped query: what repeats keys and values is read where it lies."""
    groups, rows = 2, 40

    def repeated(x: Any) -> Any:
        spread = ops.broadcast_to(ops.reshape(x, (1, groups, 1, rows, SIZE)), (1, groups, 2, rows, SIZE))
        return ops.reshape(spread, (1, HEADS, rows, SIZE))

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = ops.matmul(q, repeated(k), transpose_b=True) * 0.25
        return ops.matmul(softmax(scores), repeated(v))

    graph = gk.trace(attention, gk.spec((1, HEADS, rows, SIZE)), *[gk.spec((1, groups, rows, SIZE))] * 2)
    q = RNG.standard_normal((1, HEADS, rows, SIZE)).astype(np.float32)
    k, v = (RNG.standard_normal((1, groups, rows, SIZE)).astype(np.float32) for _ in range(2))
    scores = q.astype(np.float64) @ k.repeat(2, axis=1).swapaxes(2, 3) * 0.25
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    checked(graph, [q, k, v], powers / powers.sum(-1, keepdims=True) @ v.repeat(2, axis=1))


def without_softmax(q: Any, k: Any, v: Any) -> Any:
    return ops.matmul(ops.tanh(ops.matmul(q, k, transpose_b=True)), v)


def over_columns(q: Any, k: Any, v: Any) -> Any:
    return ops.matmul(ops.softmax(ops.matmul(q, k, transpose_b=True), axis=-2), v)


def of_two_products(q: Any, k: Any, v: Any) -> Any:
    return ops.matmul(softmax(ops.matmul(q, k, transpose_b=True) + ops.matmul(k, q, transpose_b=True)), v)


@pytest.mark.parametrize("network", [without_softmax, over_columns, of_two_products], ids=lambda f: f.__name__)
def test_what_is_no_attention_keeps_its_products(network: Function) -> None:
    graph = gk.optimize(gk.trace(network, *[gk.spec((2, 24, 16))] * 3))
    assert sum(node.op.name == "BatchMatMul" for node in graph.operators) >= 2


@pytest.mark.parametrize(
    ("dtype", "flags"), [("float16", None), ("float32", "--disable_cluster_ops=BatchMatMul")], ids=["halves", "flag"]
)
def test_attention_that_is_no_kernel_of_ours(dtype: str, flags: str | None) -> None:
    def attention(q: Any, k: Any, v: Any) -> Any:
        return ops.matmul(softmax(ops.matmul(q, k, transpose_b=True)), v)

    graph = gk.optimize(gk.trace(attention, *[gk.spec((2, 24, 16), dtype)] * 3), flags=flags)
    assert sum(node.op.name == "BatchMatMul" for node in graph.operators) == 2


def test_products_with_weights_share_no_kernel_over_a_norm() -> None:
    """As kernels of their own each reads panels of its weights once for all rows."""
    first, second = (RNG.standard_normal((WIDTH, WIDTH)).astype(np.float32) for _ in range(2))

    def block(x: Any) -> Any:
        y = x + ops.matmul(x, first)
        return y, ops.matmul(y * ops.rsqrt(ops.reduce_mean(y * y, axis=-1, keep_dims=True) + 1e-5), second)

    graph = gk.optimize(gk.trace(block, gk.spec((1, 24, WIDTH))), 2)
    counts = [sum("MatMul" in inner.op.name for inner in node.body.operators) for node in graph.operators if node.body]
    assert max(counts) == 1
    assert sum(counts) == 2


def test_rows_in_several_blocks_for_any_batch() -> None:
    """The last block has fewer rows than the others."""
    rows = 100

    def attention(q: Any, k: Any, v: Any) -> Any:
        return ops.matmul(softmax(ops.matmul(q, k, transpose_b=True) * 0.25), v)

    exe = gk.compile(gk.trace(attention, *[gk.spec(("B", HEADS, rows, SIZE))] * 3))
    assert not exe.report.host
    q, k, v = (RNG.standard_normal((2, HEADS, rows, SIZE)).astype(np.float32) for _ in range(3))
    scores = q.astype(np.float64) @ k.swapaxes(2, 3) * 0.25
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(exe(q, k, v)[0], powers / powers.sum(-1, keepdims=True) @ v, rtol=2e-5, atol=2e-6)
