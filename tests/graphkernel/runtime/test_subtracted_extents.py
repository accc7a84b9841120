"""Kernels over extents that are differences of symbols, as slices from a place that is computed leave them."""

from __future__ import annotations

import numpy as np
import pytest

import graphkernel as gk


@pytest.mark.parametrize(("whole", "part"), [("n", "z"), ("z", "n")])
@pytest.mark.parametrize("more", ["", " + m"])
def test_kernels_over_differences_of_symbols(whole: str, part: str, more: str) -> None:
    graph = gk.parse(
        f"""graph f(w: f32[{whole}, 2], a: i64[m, {whole} - {part}{more}, 1], c: i64[3]) {{
          s: i64[m, {whole} - {part}{more}, 3] = Add(a, c)
          return s
        }}"""
    )
    a, c = np.arange(12).reshape(3, 4, 1), np.arange(3)
    exe = gk.compile(graph, strict=True)
    np.testing.assert_array_equal(exe(np.ones((9, 2), np.float32), a, c)[0], a + c)
    assert exe.report.kernel_calls == 1
