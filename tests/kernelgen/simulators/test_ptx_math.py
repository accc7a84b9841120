"""CUDA's own math functions as NVRTC expands them: hundreds of instructions each, compared with numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support.cuda_runs import clean

X = np.concatenate([np.linspace(-9, 9, 333), [1e-30, -1e-5, 40.0, 1e6, -1e6, 123456.0]])
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "expf(x)": (np.exp, "x"),
    "exp2f(x)": (np.exp2, "x"),
    "expm1f(x)": (np.expm1, "x"),
    "logf(x)": (np.log, "positive"),
    "log1pf(x)": (np.log1p, "positive"),
    "sqrtf(x)": (np.sqrt, "positive"),
    "rsqrtf(x)": (lambda x: 1 / np.sqrt(x), "positive"),
    "cbrtf(x)": (np.cbrt, "x"),
    "tanhf(x)": (np.tanh, "x"),
    "sinf(x)": (np.sin, "x"),
    "cosf(x)": (np.cos, "x"),
    "atanf(x)": (np.arctan, "x"),
    "asinhf(x)": (np.arcsinh, "x"),
    "erff(x)": (lambda x: np.array([math.erf(value) for value in x]), "x"),
    "powf(x, 2.5f)": (lambda x: x**2.5, "positive"),
    "1.f / (1.f + expf(-x))": (lambda x: 1 / (1 + np.exp(-x)), "x"),
    "x / 3.f": (lambda x: x / 3, "x"),
    "floorf(x) + ceilf(x) * rintf(x)": (lambda x: np.floor(x) + np.ceil(x) * np.rint(x), "small"),
    "(float)(int)x": (np.trunc, "x"),
    "fmodf(x, 1.5f)": (lambda x: np.fmod(x, 1.5), "small"),
    "(float)erf((double)x)": (lambda x: np.array([math.erf(value) for value in x]), "small"),
    "(float)exp((double)x)": (np.exp, "small"),
    "(float)tanh((double)x)": (np.tanh, "small"),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_single_precision(function: str) -> None:
    meaning, domain = FUNCTIONS[function]
    chosen = {"x": X, "positive": np.abs(X) + 1e-20, "small": X[:333]}[domain].astype(np.float32)
    source = f"""
    extern "C" __global__ void k(const float* a, float* y, int n) {{
      int i = threadIdx.x;
      if (i < n) {{ float x = a[i]; y[i] = {function}; }}
    }}"""
    y = np.zeros_like(chosen)
    clean(source, 1, 352, [chosen, y, len(chosen)])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(y, meaning(chosen.astype(np.float64)).astype(np.float32), rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize(
    ("kind", "dtype", "function", "meaning"),
    [
        ("__half", np.float16, "hexp(x)", np.exp),
        ("__half", np.float16, "htanh(x)", np.tanh),
        ("__half", np.float16, "hsqrt(x * x) + hrsqrt(__half(1.f) + x * x)", lambda x: np.abs(x) + 1 / np.sqrt(1 + x * x)),
        ("__half", np.float16, "__hmax(x, __half(0.f)) / __half(2.f)", lambda x: np.maximum(x, 0) / 2),
        ("__half", np.float16, "x > __half(0.5f) ? -x : __habs(x)", lambda x: np.where(x > 0.5, -x, np.abs(x))),
        ("__nv_bfloat16", ml_dtypes.bfloat16, "hexp(x)", np.exp),
        ("__nv_bfloat16", ml_dtypes.bfloat16, "__hfma(x, x, x)", lambda x: x * x + x),
        ("__nv_bfloat16", ml_dtypes.bfloat16, "__hmin(x, __nv_bfloat16(1.f)) - x", lambda x: np.minimum(x, 1) - x),
        ("__nv_bfloat16", ml_dtypes.bfloat16, "__nv_bfloat16(logf(fabsf(float(x))))", lambda x: np.log(np.abs(x))),
    ],
)  # fmt: skip
def test_halves(arch: str, kind: str, dtype: Any, function: str, meaning: Callable[[Any], Any]) -> None:
    source = f"""
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    extern "C" __global__ void k(const {kind}* a, {kind}* y) {{ {kind} x = a[threadIdx.x]; y[threadIdx.x] = {function}; }}
    """
    x = np.linspace(-4, 4.1, 128).astype(dtype)
    y = np.zeros_like(x)
    clean(source, 1, 128, [x, y], arch=arch)
    step = 2.0**-10 if dtype is np.float16 else 2.0**-7
    np.testing.assert_allclose(y.astype(np.float64), meaning(x.astype(np.float64)), rtol=2 * step, atol=4 * step)


def test_conversions_between_all_widths() -> None:
    source = """
    extern "C" __global__ void k(const long long* a, signed char* b, unsigned short* c, double* d, unsigned long long* e) {
      int i = threadIdx.x; long long x = a[i];
      b[i] = (signed char)x; c[i] = (unsigned short)x; d[i] = (double)x / 3;
      e[i] = (unsigned long long)(x * 0x123456789LL) / 10u + (unsigned long long)x % 7u;
    }
    """
    x = np.random.default_rng(5).integers(-(2**40), 2**40, 64)
    b, c, d, e = (np.zeros(64, kind) for kind in (np.int8, np.uint16, np.float64, np.uint64))
    clean(source, 1, 64, [x, b, c, d, e])
    assert (b == x.astype(np.int8)).all()
    assert (c == x.astype(np.uint16)).all()
    assert (d == x / 3).all()
    wrapped = [(int(value) * 0x123456789) % 2**64 // 10 + int(value) % 2**64 % 7 for value in x]
    assert e.tolist() == wrapped
