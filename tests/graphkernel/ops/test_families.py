"""Small operators: communication, complex numbers, scans, pools, sparse rows, groups and status."""

from typing import Any

import numpy as np
import pytest

from graphkernel import ops
from graphkernel.errors import RuntimeFailure, TypeRuleError
from graphkernel.frontends.trace import spec, trace

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((3, 4)).astype(np.float32)


@pytest.mark.parametrize("function", [ops.all_reduce, ops.all_gather, ops.reduce_scatter])
def test_a_group_of_one_device_has_nothing_to_say(function):
    np.testing.assert_array_equal(function(X), X)
    with pytest.raises(RuntimeFailure, match="over 3 devices cannot be computed by one process"):
        function(X, rank_size=3)


def test_types_of_larger_groups():
    graph = trace(lambda x: (ops.all_gather(x, rank_size=4), ops.reduce_scatter(x, rank_size=4)), spec((8, "N")))
    assert [str(value.type) for value in graph.outputs] == ["f32[32, N]", "f32[2, N]", "bool[0]"]
    for function, message in (
        (lambda x: ops.reduce_scatter(x, rank_size=3), "does not divide into 3 parts"),
        (lambda x: ops.all_reduce(x, op="mean"), "op must be one of sum, max, min, prod"),
    ):
        with pytest.raises(TypeRuleError, match=message):
            trace(function, spec((8, 2)))


def test_complex_numbers():
    x, y = X[0] + 1j * X[1], X[2] - 2j * X[0]
    x, y = x.astype(np.complex64), y.astype(np.complex64)
    np.testing.assert_array_equal(ops.complex(ops.creal(x), ops.cimag(x)), x)
    for ours, theirs in ((ops.cadd, np.add), (ops.csub, np.subtract), (ops.cmul, np.multiply), (ops.cdiv, np.divide)):
        for pair in ((x, y), (x, X[2]), (X[2], y)):
            np.testing.assert_allclose(ours(*pair), theirs(*pair), rtol=1e-6)
    np.testing.assert_allclose(ops.cabs(x), np.abs(x), rtol=1e-6)
    with pytest.raises(TypeRuleError, match="one precision"):
        ops.cadd(x, X[0].astype(np.float64))


def test_a_real_factor_keeps_infinities_apart():
    x = np.array([complex(np.inf, 1)], np.complex64)
    assert ops.cmul(x, np.array([2], np.float32))[0] == complex(np.inf, 2)
    assert ops.complex(np.array([np.inf], np.float32), np.array([1], np.float32))[0] == complex(np.inf, 1)


@pytest.mark.parametrize("reverse", [False, True])
def test_running_products(reverse):
    along = X[:, ::-1] if reverse else X
    plain, exclusive = np.cumprod(along, 1), np.cumprod(np.insert(along, 0, 1, 1)[:, :-1], 1)
    for expected, flag in ((plain, False), (exclusive, True)):
        found = ops.cum_prod(X, 1, exclusive=flag, reverse=reverse)
        np.testing.assert_allclose(found, expected[:, ::-1] if reverse else expected, rtol=1e-6)


def test_extremes_with_their_places():
    index, value = ops.arg_max_with_value(X, axis=1, keep_dims=True)
    np.testing.assert_array_equal(index, X.argmax(1)[:, None])
    np.testing.assert_array_equal(np.take_along_axis(X, index, 1), value)
    index, value = ops.arg_min_with_value(X, axis=0)
    np.testing.assert_array_equal(X[index, np.arange(4)], value)


@pytest.mark.parametrize(("x", "finite"), [([1, -2], True), ([1, np.nan], False), ([-np.inf, 0], False), ([], True)])
def test_float_status(x, finite):
    assert ops.float_status(np.array(x, np.float16)).tolist() == [0.0 if finite else 1.0]


def test_elem_any_asks_for_positive_elements():
    for x, expected in (([0, -1], 0), ([0, 2], 1), ([], 0), ([np.nan], 0)):
        assert ops.elem_any(np.array(x, np.float32), dst_type="int32").tolist() == [expected]


def test_groups_of_rows():
    x, weight = RANDOM.standard_normal((6, 4)), RANDOM.standard_normal((3, 4, 2))
    found = ops.grouped_matmul(x, weight, np.array([2, 2, 5]))
    expected = np.concatenate([x[:2] @ weight[0], x[2:5] @ weight[2], np.zeros((1, 2))])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    parts = ops.grouped_matmul(x, weight[0], np.array([1, 4]), group_type=2)
    np.testing.assert_allclose(parts, [x[:, :1] @ weight[0, :1], x[:, 1:] @ weight[0, 1:]], rtol=1e-12)
    with pytest.raises(TypeRuleError, match="split_item 3"):
        ops.grouped_matmul(x, weight, np.array([2, 2, 5]), split_item=0)


def test_sparse_rows_are_the_dense_matrix():
    matrix = np.where(RANDOM.uniform(size=(5, 7)) < 0.4, RANDOM.standard_normal((5, 7)), 0)
    rows, columns = np.nonzero(matrix)
    indptr = ops.coo2csr(rows, height=5)
    values, dense, right = matrix[rows, columns], RANDOM.standard_normal((5, 7)), RANDOM.standard_normal((7, 3))
    np.testing.assert_array_equal(ops.csr2coo(indptr, nnz=len(rows)), rows)
    np.testing.assert_allclose(ops.csr_mm(indptr, columns, values, right), matrix @ right)
    np.testing.assert_allclose(ops.csr_mv(indptr, columns, values, right[:, :1]), matrix @ right[:, :1])
    found = ops.csr_reduce_sum(indptr, columns, values, dense_shape=(5, 7), axis=1)
    np.testing.assert_allclose(found, matrix.sum(1, keepdims=True))
    times = ops.csr_mul(indptr, columns, values, dense, dense_shape=(5, 7))
    np.testing.assert_allclose(times, (matrix * dense)[rows, columns])
    np.testing.assert_array_equal(ops.csr_gather(indptr, columns, dense, dense_shape=(5, 7)), dense[rows, columns])


def test_whole_pools_and_the_last_window():
    x = RANDOM.standard_normal((1, 2, 5, 5)).astype(np.float32)
    whole = ops.pool2d(x, pool_type="avg", global_=True)
    np.testing.assert_allclose(whole, x.mean((2, 3), keepdims=True), rtol=1e-5)
    window: dict[str, Any] = {"kernel_size": (2, 2), "strides": (2, 2), "round_mode": "ceil"}
    assert ops.pool2d(x, pool_type="avg", **window)[0, 0, 2, 2] == x[0, 0, 4, 4] / 4
    assert ops.pool2d(x, pool_type="max", **window)[0, 1, 2, 0] == x[0, 1, 4, :2].max()


@pytest.mark.parametrize(
    ("mode", "expected"), [("none", [-3.5, 3.5, -2.5]), ("floor", [-4, 3, -3]), ("trunc", [-3, 3, -2])]
)
def test_divisions_that_round(mode, expected):
    x, y = np.array([-7, 7, 5], np.float32), np.array([2, 2, -2], np.float32)
    assert ops.div_mod(x, y, rounding_mode=mode).tolist() == expected
    if mode != "none":
        assert ops.div_mod(x.astype(np.int32), y.astype(np.int32), rounding_mode=mode).tolist() == expected


def test_bounds_and_factors_must_fit_integers():
    x = np.array([-3, 0, 3], np.int8)
    assert ops.clamp_scalar(x, min=-1, max=2).tolist() == [-1, 0, 2]
    assert ops.clamp_scalar(X, min=1, max=-1).tolist() == np.full((3, 4), -1).tolist()
    for bounds in ({"min": 0.5}, {"max": 300}):
        with pytest.raises(TypeRuleError, match="a whole number that i8 can hold"):
            ops.clamp_scalar(x, **bounds)
    with pytest.raises(TypeRuleError, match="needs min, max or both"):
        ops.clamp_scalar(x)


def test_sums_in_another_data_type():
    assert ops.sum_ext(np.full(300, True)) == 300
    assert ops.sum_ext(np.full(300, 100, np.int8)).dtype == np.int64
    assert ops.sum_ext(np.full(300, 100, np.int8), dtype="float32") == 30000
    assert ops.equal_count(np.array([1, 2, 3]), np.array([1, 0, 3])).tolist() == [2]


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [False, True])
def test_triangular_systems(lower, trans):
    a, b = RANDOM.standard_normal((2, 5, 5)) + 4 * np.eye(5), RANDOM.standard_normal((2, 5, 3))
    triangle = np.tril(a) if lower else np.triu(a)
    expected = np.linalg.solve(np.swapaxes(triangle, 1, 2) if trans else triangle, b)
    np.testing.assert_allclose(ops.solve_triangular(a, b, lower=lower, trans=trans), expected, rtol=1e-9)


def test_factors_multiply_to_the_matrix():
    x = RANDOM.standard_normal((2, 6, 6))
    factors, permutation = ops.lu(x)
    for matrix, both, order in zip(x, factors, permutation, strict=True):
        np.testing.assert_allclose((np.tril(both, -1) + np.eye(6)) @ np.triu(both), matrix[order], atol=1e-12)
        assert np.abs(np.tril(both, -1)).max() <= 1
