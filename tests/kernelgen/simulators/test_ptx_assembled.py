"""What the assembler makes of PTX: what is free, what is one instruction, what is a sequence."""

from __future__ import annotations

import pytest

from kernelgen.simulators.ptx import parse
from kernelgen.simulators.ptx.machine.assembled import assembled

KERNEL = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x)
{{
.reg .f32 %f<4>; .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .f64 %g<4>; .reg .b16 %h<4>; .reg .pred %p<4>;
{line}
ret;
}}
"""
TOTALS = {
    "mov.f32 %f1, 0f3F800000;": 0,
    "ld.param.u64 %d1, [x];": 0,
    "cvta.to.global.u64 %d1, %d2;": 0,
    "neg.f32 %f1, %f2;": 0,
    "cvt.sat.f32.f32 %f1, %f2;": 0,
    "neg.s32 %r1, %r2;": 1,
    "fma.rn.f32 %f1, %f2, %f3, %f1;": 1,
    "ex2.approx.ftz.f32 %f1, %f2;": 1,
    "cvt.rn.f16.f32 %h1, %f1;": 0.5,
    "cvt.f32.f16 %f1, %h1;": 1,
    "mul.wide.s32 %d1, %r1, 4;": 1,
    "add.s64 %d1, %d2, %d3;": 2,
    "div.rn.f32 %f1, %f2, %f3;": 9,
    "sqrt.rn.f32 %f1, %f2;": 9,
    "rem.u32 %r1, %r2, %r3;": 16,
}


def of(line: str) -> dict[str, float]:
    first, *_ = parse(KERNEL.format(line=line)).kernels["k"].instructions
    return dict(assembled(first))


@pytest.mark.parametrize("line", TOTALS)
def test_machine_instructions_of(line: str) -> None:
    assert sum(of(line).values()) == TOTALS[line]


def test_a_division_takes_one_reciprocal() -> None:
    assert of("div.rn.f32 %f1, %f2, %f3;")["special"] == 1


def test_long_integers_cost_more_than_short_ones() -> None:
    short, long = (
        sum(of(f"rem.u{width} %{kind}1, %{kind}2, %{kind}3;").values()) for width, kind in ((32, "r"), (64, "d"))
    )
    assert long > 4 * short
