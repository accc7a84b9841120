"""Loops that a plan unrolls are written out while isl's syntax is read: the nests are those in which isl unrolls itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import islpy as isl
import pytest
from operator_kernels import one

from kernelgen.composite.description import KernelDesc
from kernelgen.driver import planned
from kernelgen.poly.schedule import generate_loops
from kernelgen.targets import find_target

F = "float32"
IN_ROW: dict[str, Any] = {"format": "NHWC", "pad": (1, 1, 1, 1), "stride": (1, 1), "dilation": (1, 1)}
STATIC = {
    "windows by channels": one(
        "Conv2D", [(F, (1, 28, 28, 88)), (F, (3, 3, 1, 88))], [(F, (1, 28, 28, 88))], **IN_ROW, group=88
    ),
    "windows": one("Conv2D", [(F, (1, 9, 9, 16)), (F, (3, 3, 16, 40))], [(F, (1, 9, 9, 40))], **IN_ROW, group=1),
    "rows below whole blocks": one("MatMul", [(F, (21, 40)), (F, (40, 50))], [(F, (21, 50))]),
}


def loops_of(desc: KernelDesc) -> str:
    """The nest as it is before its first pass, with the second operand a constant."""
    return planned(desc, find_target("cpu"), constants=[1]).trail.texts["loops"]()


@pytest.fixture
def unrolled_by_isl(monkeypatch: pytest.MonkeyPatch) -> list[isl.Schedule]:
    """The schedules of which isl made syntax, all loops that are to be unrolled among them."""
    seen: list[isl.Schedule] = []
    build = isl.AstBuild.node_from_schedule

    def counted(self: isl.AstBuild, schedule: isl.Schedule) -> isl.AstNode:
        if "unroll[" in schedule.to_str():
            seen.append(schedule)
        return build(self, schedule)

    monkeypatch.setattr(isl.AstBuild, "node_from_schedule", counted)
    return seen


@pytest.mark.parametrize("name", STATIC)
def test_they_are_what_isl_unrolls(
    name: str, unrolled_by_isl: list[isl.Schedule], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = loops_of(STATIC[name])
    assert not unrolled_by_isl
    monkeypatch.setattr(generate_loops._Reader, "can_write_out", lambda self, syntax: False)
    assert loops_of(STATIC[name]) == text
    assert unrolled_by_isl


def test_isl_unrolls_where_tiles_are_cut_off(unrolled_by_isl: list[isl.Schedule]) -> None:
    desc = STATIC["rows below whole blocks"]
    plan = planned(desc, find_target("cpu")).plan
    assert plan.bands is not None
    (band,) = plan.bands
    tiles = replace(band, pieces=(replace(band.pieces[0], whole=()),))
    assert any(loop.unroll for loop in tiles.pieces[0].loops)
    lowered = planned(desc, find_target("cpu"), replace(plan, bands=(tiles,), code=None))
    assert unrolled_by_isl
    assert lowered.trail.texts["loops"]().count("+=") >= plan.cpu.block[0]
