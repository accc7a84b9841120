"""Operators that read and write at indices, against loops that say what they mean."""

import numpy as np
import pytest

from graphkernel import ops
from graphkernel.errors import TypeRuleError
from graphkernel.frontends.trace import spec, trace

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((4, 5, 3)).astype(np.float32)


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_gather_nd(depth):
    indices = RANDOM.integers(-2, 7, (6, 2, depth))
    found = ops.gather_nd(X, indices)
    for place in np.ndindex(6, 2):
        address = tuple(indices[place])
        inside = all(0 <= i < extent for i, extent in zip(address, X.shape, strict=False))
        np.testing.assert_array_equal(found[place], X[address] if inside else np.zeros_like(X[(0,) * depth]))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_tensor_scatter_add(depth):
    indices = RANDOM.integers(-2, 7, (30, depth))
    updates = RANDOM.standard_normal((30, *X.shape[depth:])).astype(np.float32)
    expected = X.astype(np.float64)
    for address, update in zip(indices, updates, strict=True):
        if all(0 <= i < extent for i, extent in zip(address, X.shape, strict=False)):
            expected[tuple(address)] += update
    np.testing.assert_allclose(ops.tensor_scatter_add(X, indices, updates), expected, rtol=1e-6)


@pytest.mark.parametrize("rank", [1, 2])
def test_unsorted_segment_sum(rank):
    ids = RANDOM.integers(-2, 5, X.shape[:rank])
    expected = np.zeros((4, *X.shape[rank:]))
    for place in np.ndindex(*ids.shape):
        if 0 <= ids[place] < 4:
            expected[ids[place]] += X[place]
    np.testing.assert_allclose(ops.unsorted_segment_sum(X, ids, 4), expected, rtol=1e-6)


def test_many_small_addends_are_not_lost():
    found = ops.unsorted_segment_sum(np.full(4096, 0.5, np.float16), np.zeros(4096, np.int32), 1)
    assert found.tolist() == [2048]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, i: ops.gather_nd(x, i), "an address of 3 numbers is too long"),
        (lambda x, i: ops.tensor_scatter_add(x, i[:, :1], x), r"updates need the shape \[N, 4\]"),
        (lambda x, i: ops.gather_nd(x, x), "expects integers"),
        (lambda x, i: ops.unsorted_segment_sum(x, i, 3), "ids need leading extents"),
    ],
)
def test_misfits(function, message):
    with pytest.raises(TypeRuleError, match=message):
        trace(function, spec((2, 4)), spec(("N", 3), "int32"))
