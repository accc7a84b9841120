from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphkernel.runtime.plan.buffers import (
    ALIGNED_FROM,
    ALIGNMENT,
    HUGE_FROM,
    HUGE_PAGE,
    Lifetime,
    aligned_array,
    place,
)

spans = st.tuples(st.integers(0, 5000), st.integers(0, 20), st.integers(0, 10))
lifetimes = st.lists(spans.map(lambda span: Lifetime(span[0], span[1], span[1] + span[2])), max_size=30)


@given(lifetimes)
def test_buffers_that_live_at_one_time_are_disjoint(found: list[Lifetime]) -> None:
    offsets, total = place(found)
    for i, a in enumerate(found):
        assert offsets[i] % ALIGNMENT == 0
        assert offsets[i] + a.size <= total
        for j, b in enumerate(found[:i]):
            alive_together = a.first <= b.last and b.first <= a.last
            apart = offsets[i] + a.size <= offsets[j] or offsets[j] + b.size <= offsets[i]
            assert apart or not alive_together


def test_memory_is_reused_after_the_last_read() -> None:
    chain = [Lifetime(640, step, step + 1) for step in range(10)]
    assert place(chain)[1] == 2 * 640


def test_a_gap_between_two_buffers_is_filled() -> None:
    offsets, total = place([Lifetime(256, 0, 9), Lifetime(128, 0, 1), Lifetime(192, 0, 9), Lifetime(128, 3, 9)])
    assert total == 256 + 192 + 128
    assert offsets[1] == offsets[3]


def test_arrays_are_aligned() -> None:
    small = aligned_array((3, ALIGNED_FROM), np.dtype("uint8"))
    assert small.shape == (3, ALIGNED_FROM)
    assert small.ctypes.data % ALIGNMENT == 0
    assert aligned_array((HUGE_FROM,), np.dtype("uint8")).ctypes.data % HUGE_PAGE == 0
    assert aligned_array((0, 4), np.dtype("int64")).shape == (0, 4)
