"""Whole kernels: what NVRTC makes of CUDA text, interpreted, gives numpy's results, and nothing is found."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.support import cuda_kernels as kernels
from tests.support.cuda_runs import clean

RANDOM = np.random.default_rng(7)


def singles(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_add(arch: str) -> None:
    x, y, z = singles(1000), singles(1000), singles(1000)
    clean(kernels.ADD, 8, 128, [x, y, z, 1000], arch=arch)
    assert (z == x + y).all()


def test_vectors_of_four() -> None:
    x, y = singles(1000), singles(1000)
    report = clean(kernels.ADD_FLOAT4, 2, 128, [x, y, 0.5, 250])
    assert (y == x + np.float32(0.5)).all()
    assert report.counts.of("global load").requests == 8


def test_grid_stride() -> None:
    x, y = singles(1000), np.zeros(1000, np.float32)
    clean(kernels.GRID_STRIDE, 3, 64, [x, y, 3.0, 1000])
    assert (y == 3 * x).all()


@pytest.mark.parametrize("width", [7, 256, 1000])
def test_row_sum(width: int) -> None:
    x, y = singles(5, width), np.zeros(5, np.float32)
    clean(kernels.ROW_SUM, 5, 256, [x, y, width])
    np.testing.assert_allclose(y, x.sum(1, dtype=np.float64), rtol=0, atol=1e-4)


def test_tree_sum() -> None:
    x, y = singles(4, 128), np.zeros(4, np.float32)
    clean(kernels.TREE_SUM, 4, 128, [x, y])
    np.testing.assert_allclose(y, x.sum(1, dtype=np.float64), rtol=0, atol=1e-4)


def test_column_sum() -> None:
    x, y = singles(50, 70), np.zeros(70, np.float32)
    clean(kernels.COLUMN_SUM, 3, (32, 8), [x, y, 50, 70])
    np.testing.assert_allclose(y, x.sum(0, dtype=np.float64), rtol=0, atol=1e-4)


@pytest.mark.parametrize("width", [3, 128, 500])
def test_softmax(width: int) -> None:
    x, y = singles(3, width), np.zeros((3, width), np.float32)
    clean(kernels.SOFTMAX, 3, 128, [x, y, width])
    wide = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, wide / wide.sum(1, keepdims=True), rtol=1e-5)


def test_transpose() -> None:
    x, y = singles(40, 70), np.zeros((70, 40), np.float32)
    clean(kernels.TRANSPOSE, (3, 2), (32, 8), [x, y, 40, 70])
    assert (y == x.T).all()


def test_atomics() -> None:
    x = RANDOM.integers(0, 16, 700).astype(np.int32)
    counts, total = np.zeros(16, np.int32), np.zeros(1, np.float32)
    clean(kernels.HISTOGRAM, 6, 128, [x, counts, total, 700])
    assert (counts == np.bincount(x, minlength=16)).all()
    assert total[0] == 350


def test_halves() -> None:
    x, y = singles(200).astype(np.float16), np.zeros(200, np.float16)
    b = singles(100).astype(ml_dtypes.bfloat16)
    c = np.zeros_like(b)
    clean(kernels.HALVES, 1, 128, [x, y, b, c, 100])
    assert (y == (x.astype(np.float64) ** 2 + 0.25).astype(np.float16)).all()
    product = np.multiply(b, np.array(1.5, ml_dtypes.bfloat16))
    assert (c == np.add(product, b)).all()


def test_tensor_cores() -> None:
    a, b = singles(16, 16).astype(np.float16), singles(8, 16).astype(np.float16)
    c, d = singles(16, 8), np.zeros((16, 8), np.float32)
    clean(kernels.MATMUL, 1, 32, [a, b, c, d])
    np.testing.assert_allclose(d, a.astype(np.float64) @ b.T.astype(np.float64) + c, rtol=1e-6, atol=1e-6)


def test_tensor_cores_through_shared_memory() -> None:
    a, b, d = singles(16, 16).astype(np.float16), singles(8, 16).astype(np.float16), np.zeros((16, 8), np.float32)
    clean(kernels.STAGED_MATMUL, 1, 32, [a, b, d])
    np.testing.assert_allclose(d, a.astype(np.float64) @ b.T.astype(np.float64), rtol=1e-6, atol=1e-6)


def test_warps_keep_order_by_their_own_barrier() -> None:
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    clean(kernels.WARP_ROWS, 1, 64, [x, y])
    assert (y == (x ^ 31)).all()


def test_split_reduction_by_atomics() -> None:
    x, total = singles(512), np.zeros(1, np.float32)
    clean(kernels.PARTIAL_SUMS, 4, 128, [x, total])
    np.testing.assert_allclose(total[0], x.sum(dtype=np.float64), atol=1e-4)


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("blocks", [5, 150])
def test_split_reduction_by_the_last_block(blocks: int, seed: int | None) -> None:
    x, parts, ticket, total = singles(blocks, 128), np.zeros(blocks, np.float32), np.zeros(1, np.uint32), singles(1)
    clean(kernels.LAST_BLOCK, blocks, 128, [x, parts, ticket, total], seed=seed)
    np.testing.assert_allclose(total[0], x.sum(dtype=np.float64), atol=1e-3)
    assert ticket[0] == 0


def test_local_memory() -> None:
    x, y = np.arange(8, dtype=np.int32)[::-1].copy(), np.zeros(32, np.int32)
    clean(kernels.LOCAL_TABLE, 1, 32, [x, y])
    assert (y == np.arange(32) * (np.arange(32) & 7)).all()


def test_order_of_blocks_changes_nothing_but_rounding() -> None:
    x, totals = singles(2048), []
    for seed in (None, 1, 2):
        total = np.zeros(1, np.float32)
        report = clean(kernels.PARTIAL_SUMS, 16, 128, [x, total], seed=seed)
        totals.append(float(total[0]))
        assert sorted(report.blocks) == list(range(16))
    np.testing.assert_allclose(totals, x.sum(dtype=np.float64), atol=1e-4)


def test_some_blocks_of_a_large_grid() -> None:
    x, y = singles(1 << 16), np.zeros(1 << 16, np.float32)
    report = clean(kernels.ADD, 512, 128, [x, x, y, 1 << 16], blocks=4)
    assert report.sampled
    assert report.blocks == (0, 170, 341, 511)
    assert (np.flatnonzero(y.reshape(512, 128).any(1)) == report.blocks).all()
