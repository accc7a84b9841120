"""The attention cache: what is stored is found again, and attention over pages is attention over the tokens."""

import numpy as np
import pytest

from graphkernel import ops
from graphkernel.errors import FrontendError, TypeRuleError
from graphkernel.frontends.trace import spec, trace
from kernelgen.tensor.graph import Alias

RANDOM = np.random.default_rng(0)
BLOCKS, BLOCK, HEADS, SIZE = 5, 4, 2, 8


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def dense(query, keys, values, heads, scale):
    """Attention of one token over [length, key-value heads, size], head by head."""
    rows = []
    for head in range(heads):
        shared = head * keys.shape[1] // heads
        scores = keys[:, shared].astype(np.float64) @ query[head] * scale
        weights = np.exp(scores - scores.max())
        rows.append(weights / weights.sum() @ values[:, shared])
    return np.stack(rows)


@pytest.mark.parametrize("heads", [HEADS, 3 * HEADS])
def test_attention_over_pages(heads):
    lengths = np.array([7, 1, 12], np.int32)
    tables = np.array([[4, 0, 3], [2, 2, 2], [1, 4, 0]], np.int32)
    key_cache, value_cache = normal(BLOCKS, BLOCK, HEADS, SIZE), normal(BLOCKS, BLOCK, HEADS, SIZE)
    query = normal(3, heads * SIZE)
    found = ops.paged_attention(query, key_cache, value_cache, tables, lengths, head_num=heads)
    for row, length in enumerate(lengths):
        keys, values = (cache[tables[row]].reshape(-1, HEADS, SIZE)[:length] for cache in (key_cache, value_cache))
        expected = dense(query[row].reshape(heads, SIZE), keys, values, heads, SIZE**-0.5)
        np.testing.assert_allclose(found[row], expected.reshape(-1), rtol=1e-5, atol=1e-6)


def test_stored_tokens_are_found_again():
    caches = normal(BLOCKS, BLOCK, HEADS, SIZE), normal(BLOCKS, BLOCK, HEADS, SIZE)
    key, value = normal(3, HEADS * SIZE), normal(3, HEADS * SIZE)
    slots = np.array([6, -1, 19], np.int32)
    stored = ops.reshape_and_cache(key, value, *caches, slots)
    for given, before, after in zip((key, value), caches, stored, strict=True):
        expected = before.reshape(-1, HEADS * SIZE).copy()
        expected[[6, 19]] = given[[0, 2]]
        np.testing.assert_array_equal(after.reshape(-1, HEADS * SIZE), expected)


def types(cache="float32"):
    caches = [spec((BLOCKS, BLOCK, HEADS, SIZE), cache)] * 2
    return [*[spec(("N", HEADS * SIZE))] * 2, *caches, spec(("N",), "int32")]


def test_the_caches_are_written_in_place():
    graph = trace(lambda *x: ops.reshape_and_cache(*x), *types())
    assert graph.aliases == (Alias(0, 2), Alias(1, 3))
    with pytest.raises(FrontendError, match="only an input of the graph"):
        trace(lambda k, v, kc, vc, s: ops.reshape_and_cache(k, v, kc + 1.0, vc, s), *types())


def test_misfits():
    with pytest.raises(TypeRuleError, match="one data type"):
        trace(lambda *x: ops.reshape_and_cache(*x), *types("float16"))
    operands = [normal(1, 24), normal(2, 2, 2, 8), normal(2, 2, 2, 8), np.zeros((1, 1), int), np.ones(1, int)]
    with pytest.raises(TypeRuleError, match="2 heads of 8 do not make 24"):
        ops.paged_attention(*operands, head_num=2)
    with pytest.raises(TypeRuleError, match="3 heads do not share 2 key-value heads"):
        ops.paged_attention(*operands, head_num=3)
