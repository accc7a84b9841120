"""Device functions and sums with a carry: what the compiler leaves of double precision's longer functions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.cuda_runs import clean, compiled

FUNCTION = """extern "C" __global__ void apply(const double* x, double* y) {{
  int t = threadIdx.x;
  y[t] = {expression};
}}"""
TWICE = """
struct Two { double sum, product; };
__device__ __noinline__ Two both(double a, double b) { return {a + b, a * b}; }
__device__ __noinline__ double chosen(double a, int k) {
  double kept[4] = {a, a * 2, a * 3, a * 4};
  if (k < 0) return -a;
  return kept[k & 3] + both(a, k).product;
}
extern "C" __global__ void apply(const double* x, double* y) {
  int t = threadIdx.x;
  y[t] = both(x[t], 1.0).sum + (t % 2 ? chosen(x[t], t) : chosen(x[t], -1));
}"""
X = np.concatenate([np.linspace(-40, 40, 60), [1e6, -1e9, 1e12, 3e300]])


DOT = """extern "C" __global__ void dot(const int* a, const int* b, int* y) {
  int t = threadIdx.x;
  asm("dp2a.lo.s32.s32 %0, %1, %2, %3;" : "=r"(y[2 * t]) : "r"(a[t]), "r"(b[t]), "r"(7));
  asm("dp2a.hi.s32.u32 %0, %1, %2, %3;" : "=r"(y[2 * t + 1]) : "r"(a[t]), "r"(b[t]), "r"(-7));
}"""


def test_products_of_halves_and_bytes() -> None:
    random = np.random.default_rng(5)
    halves, parts = (random.integers(-(1 << 31), 1 << 31, 32, dtype=np.int64).astype(np.int32) for _ in range(2))
    y = np.zeros(64, np.int32)
    clean(DOT, 1, 32, [halves, parts, y])
    a = halves.view(np.int16).reshape(32, 2).astype(int)
    low = parts.view(np.int8).reshape(32, 4)[:, :2].astype(int)
    high = parts.view(np.uint8).reshape(32, 4)[:, 2:].astype(int)
    np.testing.assert_array_equal(y[0::2], (a * low).sum(1) + 7)
    np.testing.assert_array_equal(y[1::2], (a * high).sum(1) - 7)


def applied(source: str) -> np.ndarray:
    y = np.zeros_like(X)
    clean(source, 1, len(X), [X, y])
    return y


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("sin(x[t])", np.sin(X)),
        ("cos(x[t])", np.cos(X)),
        ("tan(x[t])", np.tan(X)),
        ("pow(fabs(x[t]), 0.7)", np.abs(X) ** 0.7),
        ("pow(x[t] / 1e200, 3.0)", (X / 1e200) ** 3),
        ("sin(x[t]) + cos(x[t] + 1.0)", np.sin(X) + np.cos(X + 1.0)),
    ],
)
def test_long_functions_of_doubles(expression: str, expected: np.ndarray) -> None:
    np.testing.assert_allclose(applied(FUNCTION.format(expression=expression)), expected, rtol=1e-13, atol=1e-13)


def test_functions_keep_what_is_theirs_and_call_others() -> None:
    assert "call" in compiled(TWICE).ptx
    t = np.arange(len(X))
    expected = X + 1 + np.where(t % 2, X * (t % 4 + 1) + X * t, -X)
    np.testing.assert_allclose(applied(TWICE), expected, rtol=1e-14)
