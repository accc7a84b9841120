"""Kernels on several kinds of cores: a cube core with its vector cores, cores that are not split, more blocks than cores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernelgen.ascendc.errors import AscendError
from kernelgen.errors import ArgumentError
from kernelgen.machines.ascend.machines import ASCEND_910A, ASCEND_910B
from tests.kernelgen.targets.ascend.kernels import HEAD, SAMPLES, Sample

# The cube multiplies into GM, its vector cores wait and add one, half of the rows each.
MIXED = (
    HEAD
    + """extern "C" __global__ __aicore__ void mixed(GM_ADDR a, GM_ADDR b, GM_ADDR w, GM_ADDR c) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    InitSocState();
    GlobalTensor<half> a_gm;
    a_gm.SetGlobalBuffer((__gm__ half*)a, GetBlockNum() * 256);
    GlobalTensor<half> b_gm;
    b_gm.SetGlobalBuffer((__gm__ half*)b, 256);
    GlobalTensor<float> w_gm;
    w_gm.SetGlobalBuffer((__gm__ float*)w, GetBlockNum() * 256);
    GlobalTensor<float> c_gm;
    c_gm.SetGlobalBuffer((__gm__ float*)c, GetBlockNum() * 256);
    if ASCEND_IS_AIC {
        int32_t block = GetBlockIdx();
        LocalTensor<half> a_l1(TPosition::A1, 0, 256);
        LocalTensor<half> b_l1(TPosition::A1, 512, 256);
        LocalTensor<half> a_l0(TPosition::A2, 0, 256);
        LocalTensor<half> b_l0(TPosition::B2, 0, 256);
        LocalTensor<float> c_l0(TPosition::CO1, 0, 256);
        DataCopy(a_l1, a_gm[block * 256], Nd2NzParams{1, 16, 16, 0, 16, 16, 1, 0});
        DataCopy(b_l1, b_gm, Nd2NzParams{1, 16, 16, 0, 16, 16, 1, 0});
        SetFlag<HardEvent::MTE2_MTE1>(0);
        WaitFlag<HardEvent::MTE2_MTE1>(0);
        LoadData(a_l0, a_l1, LoadData2DParams{0, 1, 1, 0, 0, false, 0});
        LoadData(b_l0, b_l1, LoadData2DParams{0, 1, 1, 0, 0, true, 0});
        SetFlag<HardEvent::MTE1_M>(0);
        WaitFlag<HardEvent::MTE1_M>(0);
        Mmad(c_l0, a_l0, b_l0, MmadParams{16, 16, 16, 0, false, true});
        SetFlag<HardEvent::M_FIX>(0);
        WaitFlag<HardEvent::M_FIX>(0);
        int32_t at = block * 256;
        FixpipeParams
        CrossCoreSetFlag<2, PIPE_FIX>(3);
    } else {
        int32_t at = GetBlockIdx() * 128;
        LocalTensor<float> w_ub(TPosition::VECCALC, 0, 128);
        CrossCoreWaitFlag(3);
        DataCopy(w_ub, w_gm[at], 128);
        SetFlag<HardEvent::MTE2_V>(0);
        WaitFlag<HardEvent::MTE2_V>(0);
        Adds(w_ub, w_ub, 1.0f, 128);
        SetFlag<HardEvent::V_MTE3>(0);
        WaitFlag<HardEvent::V_MTE3>(0);
        DataCopy(c_gm[at], w_ub, 128);
    }
    PipeBarrier<PIPE_ALL>();
}
"""
).replace(
    "FixpipeParams\n",
    "Fixpipe<float, float, CFG_ROW_MAJOR>(w_gm[at], c_l0, "
    "FixpipeParamsV220{16, 16, 16, 16, false, QuantMode_t::NoQuant, 0, 1, 0, 0, 0});\n",
)


def mixed() -> Sample:
    random = np.random.default_rng(0)
    a = random.integers(-4, 5, (3, 16, 16)).astype(np.float16)
    b = random.integers(-4, 5, (16, 16)).astype(np.float16)
    product = a.astype(np.float32) @ b.astype(np.float32)
    return Sample(MIXED, {"a": a, "b": b}, {"w": product, "c": product + 1}, blocks=3)


def test_cube_core_hands_over_to_its_vector_cores() -> None:
    sample = mixed()
    report, outputs = sample.run()
    assert report.clean, report
    np.testing.assert_array_equal(outputs["w"], sample.expected["w"])
    np.testing.assert_array_equal(outputs["c"], sample.expected["c"])


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("        CrossCoreWaitFlag(3);\n", "", "cores-conflict"),
        ("        CrossCoreSetFlag<2, PIPE_FIX>(3);\n", "", "deadlock"),
        ("CrossCoreSetFlag<2, PIPE_FIX>(3)", "CrossCoreSetFlag<2, PIPE_M>(3)", "cores-conflict"),
        ("CrossCoreWaitFlag(3)", "CrossCoreWaitFlag(4)", "deadlock"),
        ("CrossCoreWaitFlag(3)", "CrossCoreWaitFlag(11)", "bad-event"),
        ("GetBlockIdx() * 128", "GetBlockIdx() / 2 * 256", "cores-conflict"),
        ("if ASCEND_IS_AIC", "if ASCEND_IS_AIV", "wrong-memory"),
    ],
)
def test_planted_faults_between_cores(old: str, new: str, kind: str) -> None:
    assert kind in mixed().run(old, new)[0].kinds()


def test_cores_that_are_not_split_have_no_mixed_kernels() -> None:
    with pytest.raises(AscendError, match="910A has no split cores"):
        mixed().run(machine=ASCEND_910A)


def test_kernel_of_the_subset_that_910a_has() -> None:
    report, outputs = SAMPLES["single"].run(machine=ASCEND_910A)
    assert report.clean, report
    np.testing.assert_array_equal(outputs["z"], SAMPLES["single"].expected["z"])


def test_more_blocks_than_cores_take_turns() -> None:
    few = replace(ASCEND_910B, vector_cores=1)
    once, _ = SAMPLES["single"].run()
    twice, outputs = SAMPLES["single"].run(machine=few)
    assert twice.clean
    assert twice.pipeline_cycles == pytest.approx(2 * once.pipeline_cycles, rel=0.1)
    np.testing.assert_array_equal(outputs["z"], SAMPLES["single"].expected["z"])


def test_wait_that_is_issued_before_its_set() -> None:
    blank = " " * 8
    the_set = f"{blank}SetFlag<HardEvent::V_MTE3>(0);\n"
    the_rest = f"{blank}WaitFlag<HardEvent::V_MTE3>(0);\n{blank}DataCopy(z_gm[at], z_ub, 256);\n"
    swapped = (the_set + the_rest, the_rest + the_set)
    report, outputs = SAMPLES["single"].run(*swapped)
    assert report.clean, report
    np.testing.assert_array_equal(outputs["z"], SAMPLES["single"].expected["z"])


def test_arguments_that_do_not_fit() -> None:
    sample = SAMPLES["single"]
    with pytest.raises(ArgumentError, match="add_exp takes x, y, z; given: x, z"):
        replace(sample, inputs={"x": sample.inputs["x"]}).run()
    with pytest.raises(ArgumentError, match="the tiling struct has tiles; given: rows"):
        replace(sample, tiling={"rows": 1}).run()
    with pytest.raises(ArgumentError, match="x: arrays must be contiguous"):
        replace(sample, inputs={**sample.inputs, "x": sample.inputs["x"][::2]}).run()
