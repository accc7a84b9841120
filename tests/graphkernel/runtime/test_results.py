"""Memory of results: used again when nobody holds it, and never before."""

from __future__ import annotations

import os

import numpy as np
import pytest

import graphkernel as gk
from graphkernel.runtime.tables.results import MOST_KEPT, REUSED_FROM, Results

COUNT = REUSED_FROM // 4


def made() -> Results:
    return Results((COUNT,), np.dtype(np.float32), 4 * COUNT)


def test_memory_that_nobody_holds_is_used_again() -> None:
    results = made()
    first = results()
    address = first.ctypes.data
    del first
    assert results().ctypes.data == address


@pytest.mark.parametrize("hold", [lambda x: x, lambda x: x[5:], lambda x: memoryview(x), lambda x: x.reshape(2, -1).T])
def test_memory_that_is_held_in_any_way_is_not(hold) -> None:
    results = made()
    first = results()
    held, address = hold(first), first.ctypes.data
    del first
    others = [results() for _ in range(3)]
    assert address not in {other.ctypes.data for other in others}
    assert np.asarray(held).size


def test_little_is_kept() -> None:
    results = made()
    several = [results() for _ in range(MOST_KEPT + 3)]
    assert len({each.ctypes.data for each in several}) == len(several)
    del several
    assert len(results.free) == MOST_KEPT


def test_a_step_may_read_what_the_step_before_returned() -> None:
    exe = gk.compile(gk.trace(lambda x: gk.ops.tanh(x) + x, gk.spec((COUNT,), "float32")), threads=1)
    x = np.linspace(-1, 1, COUNT, dtype=np.float32)
    found, expected = x, x.astype(np.float64)
    for _ in range(5):
        (found,) = exe(found)
        expected = np.tanh(expected) + expected
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_a_child_that_is_forked_writes_into_memory_of_its_own() -> None:
    first = made()()
    first[:] = 1
    if not (child := os.fork()):
        first[:] = 2
        os._exit(0)
    os.waitpid(child, 0)
    assert (first == 1).all()
