"""Registers that only some threads wrote may be computed with, as compilers do ahead of a branch, but not be used."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgen.simulators.ptx import run

TEXT = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 k_param_0)
{{
  .reg .pred %p<5>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [k_param_0];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %tid.x;
  setp.lt.s32 %p1, %r1, 16;
  not.pred %p4, %p1;
  @%p4 bra $L;
  mov.u32 %r2, 7;
$L:
  setp.eq.s32 %p2, %r2, 7;
  {result}
  mul.wide.s32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r3;
  ret;
}}
"""
HALF = np.arange(32) < 16


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("and.pred %p3, %p2, %p1; selp.b32 %r3, 1, 0, %p3;", HALF * 1),
        ("or.pred %p3, %p2, %p4; selp.b32 %r3, 1, 0, %p3;", np.ones(32)),
        ("add.s32 %r4, %r2, 1; selp.b32 %r3, %r4, 5, %p1;", np.where(HALF, 8, 5)),
    ],
)
def test_what_is_masked_may_be_missing(result: str, expected: np.ndarray) -> None:
    found = np.zeros(32, np.int32)
    report = run(TEXT.format(result=result), 1, 32, [found])
    assert report.clean, report
    assert (found == expected).all()


@pytest.mark.parametrize(
    "result",
    [
        "selp.b32 %r3, 1, 0, %p2;",
        "or.pred %p3, %p2, %p1; selp.b32 %r3, 1, 0, %p3;",
        "add.s32 %r3, %r2, 1;",
        "selp.b32 %r3, %r2, 5, %p4;",
        "mov.u32 %r3, 0; @%p2 mov.u32 %r3, 1;",
        "mov.u32 %r3, 0; mov.u32 %r1, %r2;",
    ],
)
def test_what_is_used_must_be_there(result: str) -> None:
    report = run(TEXT.format(result=result), 1, 32, [np.zeros(32, np.int32)])
    assert "uninitialised-register" in report.kinds()
    assert report.findings[0].where == "block 0 thread 16"
