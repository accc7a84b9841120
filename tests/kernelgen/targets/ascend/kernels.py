"""Hand-written AscendC kernels, each with arguments and the result that numpy gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kernelgen.machines.ascend.description import Machine
from kernelgen.machines.ascend.machines import ASCEND_910B
from kernelgen.simulators.ascendc import Report, simulate

HEAD = '#include "kernel_operator.h"\nusing namespace AscendC;\n\n'


@dataclass(frozen=True)
class Sample:
    """A kernel's text with arguments for it; ``expected`` has the outputs."""

    text: str
    inputs: Mapping[str, np.ndarray]
    expected: Mapping[str, np.ndarray]
    blocks: int = 1
    tiling: Mapping[str, int] = field(default_factory=dict)
    tolerance: float = 0.0

    def run(
        self, old: str = "", new: str = "", machine: Machine = ASCEND_910B
    ) -> tuple[Report, Mapping[str, np.ndarray]]:
        """The report and outputs after ``old`` is replaced by ``new`` in the text."""
        assert old in self.text
        outputs = {name: np.zeros_like(value) for name, value in self.expected.items()}
        report = simulate(
            self.text.replace(old, new),
            {name: value for name, value in {**self.inputs, **outputs}.items()},
            machine=machine,
            blocks=self.blocks,
            outputs=tuple(outputs),
            tiling=self.tiling,
            step_limit=20_000,
        )
        return report, outputs


def _values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


SINGLE = (
    HEAD
    + """struct add_exp_tiling {
    int32_t tiles;
};

extern "C" __global__ __aicore__ void add_exp(GM_ADDR x, GM_ADDR y, GM_ADDR z, add_exp_tiling tiling) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    InitSocState();
    GlobalTensor<float> x_gm;
    x_gm.SetGlobalBuffer((__gm__ float*)x, GetBlockNum() * tiling.tiles * 256);
    GlobalTensor<float> y_gm;
    y_gm.SetGlobalBuffer((__gm__ float*)y, GetBlockNum() * tiling.tiles * 256);
    GlobalTensor<float> z_gm;
    z_gm.SetGlobalBuffer((__gm__ float*)z, GetBlockNum() * tiling.tiles * 256);
    LocalTensor<float> x_ub(TPosition::VECCALC, 0, 256);
    LocalTensor<float> y_ub(TPosition::VECCALC, 1024, 256);
    LocalTensor<float> z_ub(TPosition::VECCALC, 2048, 256);
    SetFlag<HardEvent::V_MTE2>(0);
    SetFlag<HardEvent::MTE3_V>(0);
    for (int32_t i = 0; i < tiling.tiles; i += 1) {
        int32_t at = (GetBlockIdx() * tiling.tiles + i) * 256;
        WaitFlag<HardEvent::V_MTE2>(0);
        DataCopy(x_ub, x_gm[at], 256);
        DataCopy(y_ub, y_gm[at], 256);
        SetFlag<HardEvent::MTE2_V>(0);
        WaitFlag<HardEvent::MTE2_V>(0);
        WaitFlag<HardEvent::MTE3_V>(0);
        Add(z_ub, x_ub, y_ub, 64, 4, BinaryRepeatParams{1, 1, 1, 8, 8, 8});
        PipeBarrier<PIPE_V>();
        Exp(z_ub, z_ub, 256);
        SetFlag<HardEvent::V_MTE2>(0);
        SetFlag<HardEvent::V_MTE3>(0);
        WaitFlag<HardEvent::V_MTE3>(0);
        DataCopy(z_gm[at], z_ub, 256);
        SetFlag<HardEvent::MTE3_V>(0);
    }
    WaitFlag<HardEvent::V_MTE2>(0);
    WaitFlag<HardEvent::MTE3_V>(0);
    PipeBarrier<PIPE_ALL>();
}
"""
)

DOUBLE = (
    HEAD
    + """struct add_exp_tiling {
    int32_t tiles;
};

extern "C" __global__ __aicore__ void add_exp(GM_ADDR x, GM_ADDR y, GM_ADDR z, add_exp_tiling tiling) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    InitSocState();
    GlobalTensor<float> x_gm;
    x_gm.SetGlobalBuffer((__gm__ float*)x, GetBlockNum() * tiling.tiles * 4096);
    GlobalTensor<float> y_gm;
    y_gm.SetGlobalBuffer((__gm__ float*)y, GetBlockNum() * tiling.tiles * 4096);
    GlobalTensor<float> z_gm;
    z_gm.SetGlobalBuffer((__gm__ float*)z, GetBlockNum() * tiling.tiles * 4096);
    LocalTensor<float> x_ub(TPosition::VECCALC, 0, 8192);
    LocalTensor<float> y_ub(TPosition::VECCALC, 33024, 8192);
    LocalTensor<float> z_ub(TPosition::VECCALC, 66048, 8192);
    SetFlag<HardEvent::V_MTE2>(0);
    SetFlag<HardEvent::V_MTE2>(1);
    SetFlag<HardEvent::MTE3_V>(0);
    SetFlag<HardEvent::MTE3_V>(1);
    for (int32_t i = 0; i < tiling.tiles; i += 1) {
        int32_t at = (GetBlockIdx() * tiling.tiles + i) * 4096;
        int32_t half = i % 2;
        WaitFlag<HardEvent::V_MTE2>(half);
        DataCopy(x_ub[half * 4096], x_gm[at], 4096);
        DataCopy(y_ub[half * 4096], y_gm[at], 4096);
        SetFlag<HardEvent::MTE2_V>(half);
        WaitFlag<HardEvent::MTE2_V>(half);
        WaitFlag<HardEvent::MTE3_V>(half);
        Add(z_ub[half * 4096], x_ub[half * 4096], y_ub[half * 4096], 4096);
        PipeBarrier<PIPE_V>();
        Exp(z_ub[half * 4096], z_ub[half * 4096], 4096);
        SetFlag<HardEvent::V_MTE2>(half);
        SetFlag<HardEvent::V_MTE3>(half);
        WaitFlag<HardEvent::V_MTE3>(half);
        DataCopy(z_gm[at], z_ub[half * 4096], 4096);
        SetFlag<HardEvent::MTE3_V>(half);
    }
    WaitFlag<HardEvent::V_MTE2>(0);
    WaitFlag<HardEvent::V_MTE2>(1);
    WaitFlag<HardEvent::MTE3_V>(0);
    WaitFlag<HardEvent::MTE3_V>(1);
    PipeBarrier<PIPE_ALL>();
}
"""
)

ROW_SUMS = (
    HEAD
    + """extern "C" __global__ __aicore__ void row_sums(GM_ADDR x, GM_ADDR y) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    InitSocState();
    GlobalTensor<float> x_gm;
    x_gm.SetGlobalBuffer((__gm__ float*)x, 1000);
    GlobalTensor<float> y_gm;
    y_gm.SetGlobalBuffer((__gm__ float*)y, 20);
    LocalTensor<float> x_ub(TPosition::VECCALC, 0, 640);
    LocalTensor<float> y_ub(TPosition::VECCALC, 4096, 16);
    int32_t at = GetBlockIdx() * 500;
    DataCopyPad(x_ub, x_gm[at], DataCopyExtParams{10, 200, 0, 0, 0}, DataCopyPadExtParams<float>{true, 0, 6, 0.0f});
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
    WholeReduceSum(y_ub, x_ub, 56, 10, 1, 1, 7);
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    DataCopyPad(y_gm[GetBlockIdx() * 10], y_ub, DataCopyExtParams{1, 40, 0, 0, 0});
    PipeBarrier<PIPE_ALL>();
}
"""
)

BROADCAST = (
    HEAD
    + """extern "C" __global__ __aicore__ void scale_rows(GM_ADDR x, GM_ADDR s, GM_ADDR y) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    InitSocState();
    GlobalTensor<half> x_gm;
    x_gm.SetGlobalBuffer((__gm__ half*)x, 16 * 128);
    GlobalTensor<half> s_gm;
    s_gm.SetGlobalBuffer((__gm__ half*)s, 16);
    GlobalTensor<half> y_gm;
    y_gm.SetGlobalBuffer((__gm__ half*)y, 16 * 128);
    LocalTensor<half> x_ub(TPosition::VECCALC, 0, 2048);
    LocalTensor<half> s_ub(TPosition::VECCALC, 4096, 16);
    LocalTensor<half> b_ub(TPosition::VECCALC, 4128, 256);
    DataCopy(x_ub, x_gm, 2048);
    DataCopy(s_ub, s_gm, 16);
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
    Brcb(b_ub, s_ub, 2, BrcbRepeatParams{1, 8});
    PipeBarrier<PIPE_V>();
    Mul(x_ub, x_ub, b_ub, 128, 16, BinaryRepeatParams{1, 1, 0, 8, 8, 1});
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    DataCopy(y_gm, x_ub, DataCopyParams{16, 8, 0, 0});
    PipeBarrier<PIPE_ALL>();
}
"""
)

SELECT = (
    HEAD
    + """extern "C" __global__ __aicore__ void clip(GM_ADDR x, GM_ADDR y) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    InitSocState();
    GlobalTensor<float> x_gm;
    x_gm.SetGlobalBuffer((__gm__ float*)x, 256);
    GlobalTensor<float> y_gm;
    y_gm.SetGlobalBuffer((__gm__ float*)y, 256);
    LocalTensor<float> x_ub(TPosition::VECCALC, 0, 256);
    LocalTensor<float> y_ub(TPosition::VECCALC, 1024, 256);
    LocalTensor<uint8_t> m_ub(TPosition::VECCALC, 2048, 32);
    DataCopy(x_ub, x_gm, 256);
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
    CompareScalar(m_ub, x_ub, 0.0f, CMPMODE::GT, 256);
    Muls(y_ub, x_ub, 0.25f, 64, 4, UnaryRepeatParams{1, 1, 8, 8});
    PipeBarrier<PIPE_V>();
    Select(y_ub, m_ub, x_ub, y_ub, SELMODE::VSEL_TENSOR_TENSOR_MODE, 256);
    PipeBarrier<PIPE_V>();
    Compare(m_ub, x_ub, y_ub, CMPMODE::EQ, 64, 4, BinaryRepeatParams{1, 1, 1, 8, 8, 8});
    PipeBarrier<PIPE_V>();
    Select(y_ub, m_ub, y_ub, -1.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64, 4, BinaryRepeatParams{1, 1, 1, 8, 8, 8});
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    DataCopy(y_gm, y_ub, 256);
    PipeBarrier<PIPE_ALL>();
}
"""
)

CAST = (
    HEAD
    + """extern "C" __global__ __aicore__ void double_it(GM_ADDR x, GM_ADDR y) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    InitSocState();
    GlobalTensor<half> x_gm;
    x_gm.SetGlobalBuffer((__gm__ half*)x, 512);
    GlobalTensor<int32_t> y_gm;
    y_gm.SetGlobalBuffer((__gm__ int32_t*)y, 512);
    LocalTensor<half> x_ub(TPosition::VECCALC, 0, 512);
    LocalTensor<float> f_ub(TPosition::VECCALC, 1024, 512);
    LocalTensor<int32_t> y_ub(TPosition::VECCALC, 3072, 512);
    uint64_t even[2] = {0x5555555555555555, 0x0};
    DataCopy(x_ub, x_gm, 512);
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
    Cast(f_ub, x_ub, RoundMode::CAST_NONE, 64, 8, UnaryRepeatParams{1, 1, 8, 4});
    PipeBarrier<PIPE_V>();
    Muls(f_ub, f_ub, 2.0f, even, 8, UnaryRepeatParams{1, 1, 8, 8});
    PipeBarrier<PIPE_V>();
    Cast(y_ub, f_ub, RoundMode::CAST_FLOOR, 512);
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    DataCopy(y_gm, y_ub, 512);
    PipeBarrier<PIPE_ALL>();
}
"""
)

SCALAR_LOOKUP = (
    HEAD
    + """extern "C" __global__ __aicore__ void lookup(GM_ADDR table, GM_ADDR ids, GM_ADDR y) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    InitSocState();
    GlobalTensor<float> table_gm;
    table_gm.SetGlobalBuffer((__gm__ float*)table, 10 * 16);
    GlobalTensor<int32_t> ids_gm;
    ids_gm.SetGlobalBuffer((__gm__ int32_t*)ids, 8);
    GlobalTensor<float> y_gm;
    y_gm.SetGlobalBuffer((__gm__ float*)y, 8 * 16);
    LocalTensor<int32_t> ids_ub(TPosition::VECCALC, 0, 8);
    LocalTensor<float> y_ub(TPosition::VECCALC, 32, 128);
    DataCopy(ids_ub, ids_gm, 8);
    SetFlag<HardEvent::MTE2_S>(0);
    WaitFlag<HardEvent::MTE2_S>(0);
    for (int32_t i = 0; i < 8; i += 1) {
        int32_t id = ids_ub.GetValue(i);
        DataCopy(y_ub[i * 16], table_gm[id * 16], 16);
        if (id == 3) {
            SetFlag<HardEvent::MTE2_S>(1);
            WaitFlag<HardEvent::MTE2_S>(1);
            y_ub.SetValue(i * 16, -1.0f);
        }
    }
    SetFlag<HardEvent::S_MTE3>(0);
    WaitFlag<HardEvent::S_MTE3>(0);
    SetFlag<HardEvent::MTE2_MTE3>(0);
    WaitFlag<HardEvent::MTE2_MTE3>(0);
    DataCopy(y_gm, y_ub, 128);
    PipeBarrier<PIPE_ALL>();
}
"""
)

MATMUL = (
    HEAD
    + """extern "C" __global__ __aicore__ void matmul(GM_ADDR a, GM_ADDR b, GM_ADDR c) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    InitSocState();
    GlobalTensor<half> a_gm;
    a_gm.SetGlobalBuffer((__gm__ half*)a, 20 * 64);
    GlobalTensor<half> b_gm;
    b_gm.SetGlobalBuffer((__gm__ half*)b, 64 * 48);
    GlobalTensor<half> c_gm;
    c_gm.SetGlobalBuffer((__gm__ half*)c, 20 * 48);
    LocalTensor<half> a_l1(TPosition::A1, 0, 32 * 32);
    LocalTensor<half> b_l1(TPosition::B1, 2048, 32 * 48);
    LocalTensor<half> a_l0(TPosition::A2, 0, 32 * 32);
    LocalTensor<half> b_l0(TPosition::B2, 0, 32 * 48);
    LocalTensor<float> c_l0(TPosition::CO1, 0, 32 * 48);
    SetFlag<HardEvent::MTE1_MTE2>(0);
    SetFlag<HardEvent::M_MTE1>(0);
    for (int32_t k = 0; k < 2; k += 1) {
        WaitFlag<HardEvent::MTE1_MTE2>(0);
        DataCopy(a_l1, a_gm[k * 32], Nd2NzParams{1, 20, 32, 0, 64, 32, 1, 0});
        DataCopy(b_l1, b_gm[k * 32 * 48], Nd2NzParams{1, 32, 48, 0, 48, 32, 1, 0});
        SetFlag<HardEvent::MTE2_MTE1>(0);
        WaitFlag<HardEvent::MTE2_MTE1>(0);
        WaitFlag<HardEvent::M_MTE1>(0);
        for (int32_t i = 0; i < 2; i += 1) {
            LoadData(a_l0[i * 512], a_l1, LoadData2DParams{static_cast<uint16_t>(i * 2), 2, 1, 0, 0, false, 0});
            LoadData(b_l0[i * 768], b_l1, LoadData2DParams{static_cast<uint16_t>(i), 3, 2, 0, 0, true, 0});
        }
        SetFlag<HardEvent::MTE1_MTE2>(0);
        SetFlag<HardEvent::MTE1_M>(0);
        WaitFlag<HardEvent::MTE1_M>(0);
        for (int32_t i = 0; i < 2; i += 1) {
            Mmad(c_l0, a_l0[i * 512], b_l0[i * 768], MmadParams{20, 48, 16, 0, false, k == 0 && i == 0});
            PipeBarrier<PIPE_M>();
        }
        SetFlag<HardEvent::M_MTE1>(0);
    }
    WaitFlag<HardEvent::MTE1_MTE2>(0);
    WaitFlag<HardEvent::M_MTE1>(0);
    SetFlag<HardEvent::M_FIX>(0);
    WaitFlag<HardEvent::M_FIX>(0);
    Fixpipe<half, float, CFG_ROW_MAJOR>(c_gm, c_l0, \
FixpipeParamsV220{48, 20, 32, 48, true, QuantMode_t::F322F16, 0, 1, 0, 0, 0});
    PipeBarrier<PIPE_ALL>();
}
"""
)

EXCHANGE = (
    HEAD
    + """extern "C" __global__ __aicore__ void exchange(GM_ADDR x, GM_ADDR w, GM_ADDR y) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    InitSocState();
    GlobalTensor<float> x_gm;
    x_gm.SetGlobalBuffer((__gm__ float*)x, 256);
    GlobalTensor<float> w_gm;
    w_gm.SetGlobalBuffer((__gm__ float*)w, 256);
    GlobalTensor<float> y_gm;
    y_gm.SetGlobalBuffer((__gm__ float*)y, 256);
    LocalTensor<float> x_ub(TPosition::VECCALC, 0, 64);
    DataCopy(x_ub, x_gm[GetBlockIdx() * 64], 64);
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
    Adds(x_ub, x_ub, 1.0f, 64);
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    DataCopy(w_gm[GetBlockIdx() * 64], x_ub, 64);
    CrossCoreSetFlag<0, PIPE_MTE3>(0);
    CrossCoreWaitFlag(0);
    DataCopy(x_ub, w_gm[(3 - GetBlockIdx()) * 64], 64);
    SetFlag<HardEvent::MTE2_MTE3>(0);
    WaitFlag<HardEvent::MTE2_MTE3>(0);
    DataCopy(y_gm[GetBlockIdx() * 64], x_ub, 64);
    PipeBarrier<PIPE_ALL>();
}
"""
)


def _add_exp(text: str, blocks: int, tiles: int, tile: int) -> Sample:
    x, y = _values(blocks * tiles * tile), _values(blocks * tiles * tile, seed=1)
    return Sample(text, {"x": x, "y": y}, {"z": np.exp(x + y)}, blocks, {"tiles": tiles})


def _row_sums() -> Sample:
    x = _values(20, 50)
    padded = np.pad(x, ((0, 0), (0, 14)))
    while padded.shape[1] > 1:
        padded = padded[:, ::2] + padded[:, 1::2]
    return Sample(ROW_SUMS, {"x": x}, {"y": padded[:, 0]}, 2)


def _broadcast() -> Sample:
    x, s = _values(16, 128).astype(np.float16), _values(16, seed=1).astype(np.float16)
    return Sample(BROADCAST, {"x": x, "s": s}, {"y": x * s[:, None]})


def _select() -> Sample:
    x = _values(256)
    return Sample(SELECT, {"x": x}, {"y": np.where(x > 0, x, np.float32(-1))})


def _cast() -> Sample:
    x = (_values(512) * 5).astype(np.float16)
    doubled = x.astype(np.float32) * np.where(np.arange(512) % 2, 1, 2)
    return Sample(CAST, {"x": x}, {"y": np.floor(doubled).astype(np.int32)})


def _lookup() -> Sample:
    table, ids = _values(10, 16), np.array([2, 7, 3, 0, 9, 9, 1, 3], np.int32)
    expected = table[ids].copy()
    expected[ids == 3, 0] = -1
    return Sample(SCALAR_LOOKUP, {"table": table, "ids": ids}, {"y": expected})


def _matmul() -> Sample:
    a, b = _values(20, 64).astype(np.float16), _values(64, 48, seed=1).astype(np.float16)
    product = a.astype(np.float64) @ b.astype(np.float64)
    return Sample(MATMUL, {"a": a, "b": b}, {"c": np.maximum(product, 0).astype(np.float16)}, tolerance=2e-3)


def _exchange() -> Sample:
    x = _values(4, 64)
    return Sample(EXCHANGE, {"x": x}, {"w": x + 1, "y": (x + 1)[::-1]}, 4)


SAMPLES = {
    "single": _add_exp(SINGLE, 2, 4, 256),
    "double": _add_exp(DOUBLE, 2, 5, 4096),
    "row_sums": _row_sums(),
    "broadcast": _broadcast(),
    "select": _select(),
    "cast": _cast(),
    "lookup": _lookup(),
    "matmul": _matmul(),
    "exchange": _exchange(),
}
