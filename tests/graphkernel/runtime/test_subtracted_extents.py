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


def test_pieces_behind_one_whose_extent_is_a_difference() -> None:
    """Where a piece begins is no difference of sizes alone: the extent of the one before it is not negative."""
    graph = gk.parse(
        """graph f(a: f32[m, n - z], b: f32[m, n], c: f32[m, u]) {
          e: f32[m, n] = Exp(b)
          s: f32[m, 2*n - z + u] = Concat(a, e, c, axis=1)
          return s
        }"""
    )
    draw = np.random.default_rng(0).standard_normal
    exe = gk.compile(graph, strict=True)
    for part, others in ((5, 3), (7, 1), (0, 4)):
        arrays = [draw((2, extent)).astype(np.float32) for extent in (7 - part, 7, others)]
        expected = np.concatenate([arrays[0], np.exp(arrays[1]), arrays[2]], axis=1)
        np.testing.assert_allclose(exe(*arrays)[0], expected, rtol=1e-6)
    assert exe.report.kernel_calls == 1
