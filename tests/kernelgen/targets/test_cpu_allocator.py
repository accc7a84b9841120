"""The pool of large arrays."""

from __future__ import annotations

import gc

import numpy as np

from kernelgen.targets.cpu.runtime.allocator import ALIGNMENT, PAGE_BYTES, POOLED_BYTES, Pool


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_large_arrays_are_aligned_and_staggered() -> None:
    pool = Pool()
    arrays = [pool.empty((1024, 1024), np.float32) for _ in range(4)]
    assert all(a.flags.c_contiguous and a.flags.writeable and a.shape == (1024, 1024) for a in arrays)
    assert all(address(a) % ALIGNMENT == 0 for a in arrays)
    assert len({address(a) % 4096 for a in arrays}) == 4
    for number, array in enumerate(arrays):
        array[...] = number
    assert [float(a.min()) for a in arrays] == [float(a.max()) for a in arrays] == [0.0, 1.0, 2.0, 3.0]


def test_blocks_come_back_when_the_last_view_dies() -> None:
    pool = Pool()
    array = pool.empty((PAGE_BYTES,), np.uint8)
    first, view = address(array) // PAGE_BYTES, array[5:].reshape(-1, 1)
    del array
    gc.collect()
    assert pool.free_bytes == 0
    del view
    gc.collect()
    assert pool.free_bytes > 0
    again = pool.empty((PAGE_BYTES,), np.uint8)
    assert address(again) // PAGE_BYTES == first
    assert pool.free_bytes == 0


def test_small_arrays_come_from_numpy() -> None:
    pool = Pool()
    array = pool.empty((POOLED_BYTES // 4 - 1,), np.float32)
    assert array.base is None


def test_the_pool_keeps_no_more_than_its_capacity() -> None:
    pool = Pool(capacity=8 << 20)
    arrays = [pool.empty((4 << 20,), np.uint8) for _ in range(5)]
    del arrays
    gc.collect()
    assert 0 < pool.free_bytes <= 8 << 20
    pool.clear()
    assert pool.free_bytes == 0
