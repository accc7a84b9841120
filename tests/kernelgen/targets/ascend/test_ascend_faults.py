"""Planted faults in the text: each broken twin of a kernel is rejected, by the right kind; the untouched text passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernelgen.ascendc.errors import AscendError
from kernelgen.machines.ascend.machines import ASCEND_910A
from kernelgen.simulators.ascendc import KINDS
from tests.kernelgen.targets.ascend.kernels import SAMPLES


def line(text: str) -> str:
    return f"        {text};\n"


def pair(event: str, identity: int = 0, indent: int = 4) -> str:
    """A set and its wait."""
    blank = " " * indent
    return f"{blank}SetFlag<HardEvent::{event}>({identity});\n{blank}WaitFlag<HardEvent::{event}>({identity});\n"


def tensor(spelling: str) -> str:
    """How the cast's input is declared."""
    return f"GlobalTensor<{spelling}> x_gm;\n    x_gm.SetGlobalBuffer((__gm__ {spelling}*)"


MEETING = "    CrossCoreSetFlag<0, PIPE_MTE3>(0);\n    CrossCoreWaitFlag(0);\n"
EARLY_INPUT = line("SetFlag<HardEvent::V_MTE2>(0)") + line("Add(z_ub, z_ub, x_ub, 256)")
LATE_INPUT = line("Exp(z_ub, z_ub, 256)") + line("SetFlag<HardEvent::V_MTE2>(0)")
OUT, BACK = line("DataCopy(z_gm[at], z_ub, 256)"), line("SetFlag<HardEvent::MTE3_V>(0)")
COPY_OUT = "y_ub, DataCopyExtParams{1, 40,"
COPY_TWICE = (
    "y_ub, DataCopyExtParams{1, 40, 0, 0, 0});\n    DataCopyPad(y_gm[GetBlockIdx() * 5], y_ub, DataCopyExtParams{1, 20,"
)
MULS = "Muls(f_ub, f_ub, 2.0f, even, 8, UnaryRepeatParams{1, 1, 8, 8})"
MULS_SHIFTED = "Muls(f_ub[64], f_ub, 2.0f, even, 7, UnaryRepeatParams{1, 1, 8, 8})"
TO_L1, TO_L0 = (
    "DataCopy(a_l1, a_gm[k * 32], Nd2NzParams{1, 20, 32, 0, 64, 32, 1, 0})",
    "DataCopy(a_l0, a_gm[k * 32], 1024)",
)
SET = "    CrossCoreSetFlag<0, PIPE_MTE3>(0);\n"
SET_BY_SOME = "    if (GetBlockIdx() < 3) {\n        CrossCoreSetFlag<0, PIPE_MTE3>(0);\n    }\n"
LOOP = "    for (int32_t i = 0; i < tiling.tiles; i += 1) {"
LONG_LOOP = "    for (int32_t w = 0; w < 30000; w += 1) {\n        PipeBarrier<PIPE_V>();\n    }\n"

FAULTS = [
    # what is wrong, kernel, what is replaced, by what, the kind that must be found
    ("no flag before the vector unit", "single", pair("MTE2_V", indent=8), "", "read-after-write"),
    ("no wait for the inputs' reader", "single", line("WaitFlag<HardEvent::V_MTE2>(0)"), "", "double-set"),
    ("no wait for the output's reader", "single", line("WaitFlag<HardEvent::MTE3_V>(0)"), "", "double-set"),
    ("inputs are given back too early", "single", LATE_INPUT, EARLY_INPUT, "write-after-read"),
    ("output is given back too early", "single", OUT + BACK, BACK + OUT, "write-after-read"),
    ("no barrier between vector calls", "single", line("PipeBarrier<PIPE_V>()"), "", "read-after-write"),
    ("no barrier between matrix calls", "matmul", "    " + line("PipeBarrier<PIPE_M>()"), "", "read-after-write"),
    ("barrier of another pipe", "single", "PipeBarrier<PIPE_V>", "PipeBarrier<PIPE_MTE2>", "read-after-write"),
    ("two copies into one place", "single", "DataCopy(y_ub, y_gm", "DataCopy(x_ub, y_gm", "write-after-write"),
    ("no flag before the scalar unit", "lookup", pair("MTE2_S"), "", "read-after-write"),
    ("no flag after the scalar unit", "lookup", pair("S_MTE3"), "", "read-after-write"),
    ("no flag before fixpipe", "matmul", pair("M_FIX"), "", "read-after-write"),
    ("no flag before the cube", "matmul", pair("MTE1_M", indent=8), "", "read-after-write"),
    ("buffers overlap", "single", "x_ub(TPosition::VECCALC, 0,", "x_ub(TPosition::VECCALC, 512,", "write-after-write"),
    ("both halves are in one place", "double", "half * 4096", "half * 0", "write-after-read"),
    ("lost set", "single", line("SetFlag<HardEvent::V_MTE3>(0)"), "", "deadlock"),
    ("lost set of a pair", "double", "    SetFlag<HardEvent::MTE3_V>(1);\n    for", "    for", "deadlock"),
    (
        "waits for another id",
        "single",
        "    WaitFlag<HardEvent::MTE2_V>(0)",
        "    WaitFlag<HardEvent::MTE2_V>(1)",
        "deadlock",
    ),
    ("waits for another pair", "row_sums", "WaitFlag<HardEvent::V_MTE3>", "WaitFlag<HardEvent::MTE2_MTE3>", "deadlock"),
    (
        "flag is never waited for",
        "single",
        "    WaitFlag<HardEvent::MTE3_V>(0);\n    Pipe",
        "    Pipe",
        "leftover-flag",
    ),
    (
        "set twice",
        "single",
        line("SetFlag<HardEvent::V_MTE3>(0)"),
        2 * line("SetFlag<HardEvent::V_MTE3>(0)"),
        "double-set",
    ),
    ("set again before its wait is over", "select", "    Muls(", pair("MTE2_V") + "    Muls(", "flag-reused"),
    ("event id too high", "single", "SetFlag<HardEvent::MTE2_V>(0)", "SetFlag<HardEvent::MTE2_V>(8)", "bad-event"),
    ("event id of the vendor", "single", "SetFlag<HardEvent::MTE2_V>(0)", "SetFlag<HardEvent::MTE2_V>(6)", "bad-event"),
    ("pair without flags", "select", "<HardEvent::V_MTE3>", "<HardEvent::V_FIX>", "bad-event"),
    ("reads past its tensor", "single", "Exp(z_ub, z_ub, 256)", "Exp(z_ub, z_ub, 257)", "out-of-bounds"),
    ("reads past GM", "single", "DataCopy(x_ub, x_gm[at]", "DataCopy(x_ub, x_gm[at + 8]", "out-of-bounds"),
    ("more repeats than elements", "cast", "CAST_NONE, 64, 8,", "CAST_NONE, 64, 9,", "out-of-bounds"),
    ("tensor past the unified buffer", "double", "VECCALC, 66048", "VECCALC, 180000", "capacity"),
    ("Select's reserve is used", "select", "VECCALC, 2048", "VECCALC, 190464", "capacity"),
    ("GM tensor larger than its buffer", "select", "(__gm__ float*)x, 256)", "(__gm__ float*)x, 257)", "capacity"),
    ("misaligned tensor", "single", "VECCALC, 1024,", "VECCALC, 1040,", "misaligned"),
    ("misaligned operand", "single", "Exp(z_ub, z_ub, 256)", "Exp(z_ub[4], z_ub[4], 252)", "misaligned"),
    ("misaligned fractal", "matmul", "LoadData(a_l0[i * 512]", "LoadData(a_l0[i * 496]", "misaligned"),
    ("odd length", "single", "x_gm[at], 256)", "x_gm[at], 255)", "odd-length"),
    ("wrong type", "select", "Muls(y_ub, x_ub, 0.25f", "Muls(m_ub, m_ub, 1", "bad-dtype"),
    ("types differ", "cast", "Muls(f_ub, f_ub, 2.0f", "Muls(f_ub, x_ub, 2.0f", "bad-dtype"),
    ("GM of another type", "cast", tensor("half"), tensor("float"), "bad-dtype"),
    ("no such cast", "cast", "RoundMode::CAST_FLOOR", "RoundMode::CAST_NONE", "bad-dtype"),
    ("repeat over 255", "single", "64, 4, Binary", "64, 256, Binary", "bad-parameter"),
    ("destination stands still", "single", "{1, 1, 1, 8, 8, 8}", "{0, 1, 1, 8, 8, 8}", "bad-parameter"),
    ("too many blocks", "row_sums", "DataCopyExtParams{10,", "DataCopyExtParams{4096,", "bad-parameter"),
    ("padding is no whole block", "row_sums", "{true, 0, 6,", "{true, 0, 5,", "bad-parameter"),
    ("mask larger than a repeat", "single", "64, 4, Binary", "65, 4, Binary", "bad-mask"),
    ("mask bits of lanes that are not there", "cast", "5555, 0x0}", "5555, 0x1}", "bad-mask"),
    ("comparison of a part of a repeat", "select", "CMPMODE::GT, 256", "CMPMODE::GT, 250", "bad-mask"),
    ("result over the next source", "cast", MULS, MULS_SHIFTED, "overlap"),
    ("repeats write over each other", "single", "{1, 1, 1, 8, 8, 8}", "{1, 1, 1, 7, 8, 8}", "overlap"),
    (
        "padding is read that nobody wrote",
        "row_sums",
        "x_ub, 56, 10, 1, 1, 7)",
        "x_ub, 64, 10, 1, 1, 8)",
        "uninitialised",
    ),
    ("only a part of the tile is loaded", "single", "y_gm[at], 256)", "y_gm[at], 128)", "uninitialised"),
    ("mask too small for the row", "cast", "CAST_NONE, 64,", "CAST_NONE, 60,", "uninitialised"),
    ("output is not covered", "row_sums", COPY_OUT, "y_ub, DataCopyExtParams{1, 36,", "unwritten-output"),
    ("loop ends early", "single", "i < tiling.tiles;", "i < tiling.tiles - 1;", "unwritten-output"),
    ("input is written", "row_sums", "DataCopyPad(y_gm[", "DataCopyPad(x_gm[", "read-only-written"),
    ("blocks write one region", "single", "GetBlockIdx() * tiling.tiles + i", "i", "cores-conflict"),
    ("blocks overlap", "row_sums", COPY_OUT, COPY_TWICE, "cores-conflict"),
    ("no meeting of the cores", "exchange", MEETING, "", "cores-conflict"),
    ("meeting of the wrong pipe", "exchange", "<0, PIPE_MTE3>", "<0, PIPE_V>", "cores-conflict"),
    ("one block never meets", "exchange", SET, SET_BY_SOME, "deadlock"),
    (
        "GM read back by the same block",
        "exchange",
        MEETING + "    DataCopy(x_ub, w_gm[(3 - ",
        "    DataCopy(x_ub, w_gm[(0 + ",
        "read-after-write",
    ),
    ("memory of another core", "single", "y_ub(TPosition::VECCALC,", "y_ub(TPosition::A1,", "wrong-memory"),
    (
        "cube operand in the wrong memory",
        "matmul",
        "a_l0[i * 512], b_l0[i * 768], Mmad",
        "b_l0, a_l0, Mmad",
        "wrong-memory",
    ),
    ("no way between memories", "matmul", TO_L1, TO_L0, "wrong-memory"),
    ("offset overflows", "single", "tiles + i) * 256;", "tiles + i + 2147483647) * 256;", "bad-scalar"),
    ("division by zero", "double", "i % 2", "i % (i - i)", "bad-scalar"),
    ("no InitSocState", "single", "    InitSocState();\n", "", "bad-frame"),
    ("no last barrier", "single", "    PipeBarrier<PIPE_ALL>();\n", "", "bad-frame"),
    ("single row for the cube", "matmul", "MmadParams{20, 48", "MmadParams{1, 48", "not-modelled"),
    ("step of zero", "single", "i += 1", "i += 0", "endless-loop"),
    ("too many steps", "single", LOOP, LONG_LOOP + LOOP, "endless-loop"),
]


@pytest.mark.parametrize(("name", "old", "new", "kind"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_planted_fault_is_rejected(name: str, old: str, new: str, kind: str) -> None:
    report, _ = SAMPLES[name].run(old, new)
    assert kind in report.kinds(), report


def test_every_kind_is_planted() -> None:
    assert {kind for *_, kind in FAULTS} == set(KINDS)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_flag_and_barrier_is_needed(name: str) -> None:
    text = SAMPLES[name].text
    lines = text.splitlines(keepends=True)
    for at, one in enumerate(lines[:-2]):
        if one.lstrip().startswith(("SetFlag", "WaitFlag", "PipeBarrier", "CrossCore")):
            without = "".join(lines[:at] + lines[at + 1 :])
            report, _ = SAMPLES[name].run(text, without)
            assert not report.clean, f"without line {at + 1}: {one}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Exp(z_ub, z_ub, 256)", "Expo(z_ub, z_ub, 256)"),
        ("Exp(z_ub, z_ub, 256)", "Exp(z_ub, 256)"),
        ("Exp(z_ub, z_ub, 256);", "Exp(z_ub, z_ub, 256)"),
        ("BinaryRepeatParams{1, 1, 1, 8, 8, 8}", "BinaryRepeatParams{1, 1, 8, 8}"),
        ("TPosition::VECCALC, 0", "TPosition::VECTOR, 0"),
        ("LocalTensor<float> x_ub", "LocalTensor<double> x_ub"),
        ("i < tiling.tiles", "i != tiling.tiles"),
        ("KERNEL_TYPE_AIV_ONLY", "KERNEL_TYPE_ANY"),
        ("x_gm[at]", "x_gm[here]"),
        ("int32_t at =", "int32_t i ="),
        ("i < tiling.tiles", "i < tiling.rows"),
        ("LocalTensor<float> y_ub", "LocalTensor<float> x_ub"),
        ("    PipeBarrier<PIPE_ALL>();", "    DataCopy(z_gm[at], z_ub, 256);"),
        ("Exp(z_ub, z_ub, 256)", "Exp(z_ub, w_ub, 256)"),
        ("GlobalTensor<float> x_gm;\n    x_gm", "GlobalTensor<float> x_gm;\n    y_gm"),
    ],
)
def test_text_outside_of_the_subset_is_refused_with_its_line(old: str, new: str) -> None:
    with pytest.raises(AscendError, match=r"line \d+"):
        SAMPLES["single"].run(old, new)


def test_machine_without_a_feature() -> None:
    assert "not-modelled" in SAMPLES["row_sums"].run(machine=ASCEND_910A)[0].kinds()
    assert "bad-event" in SAMPLES["single"].run("MTE2_V>(0)", "MTE2_V>(4)", machine=ASCEND_910A)[0].kinds()


def test_finding_says_line_text_block_and_what_to_do() -> None:
    report, _ = SAMPLES["single"].run("        PipeBarrier<PIPE_V>();\n", "")
    finding = report.findings[0]
    assert finding.kind == "read-after-write"
    assert finding.text == "Exp(z_ub, z_ub, 256);"
    assert finding.line == SAMPLES["single"].text.splitlines().index("        Exp(z_ub, z_ub, 256);")
    assert finding.where == "block 0"
    assert finding.count == 8
    assert "barrier" in finding.advice
    assert str(finding) in str(report)


def test_race_is_found_even_where_the_result_is_right() -> None:
    sample = SAMPLES["single"]
    report, outputs = sample.run("        PipeBarrier<PIPE_V>();\n", "")
    np.testing.assert_array_equal(outputs["z"], sample.expected["z"])
    assert not report.clean


def test_more_blocks_than_cores_cannot_meet() -> None:
    report, _ = replace(SAMPLES["exchange"], blocks=100).run()
    assert "deadlock" in report.kinds()
