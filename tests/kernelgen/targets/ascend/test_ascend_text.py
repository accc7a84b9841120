"""Kernels as text: the builder writes by name, the printer prints, the reader gives the same back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgen.ascendc.builder import make_call
from kernelgen.ascendc.errors import AscendError
from kernelgen.ascendc.expression_reader import read_expression
from kernelgen.ascendc.expressions import (
    BLOCK_INDEX,
    Binary,
    Choice,
    Convert,
    Expression,
    Field,
    GetValue,
    Name,
    Number,
    Unary,
    ceil_div,
    larger,
    smaller,
    wrap,
)
from kernelgen.ascendc.instructions import Call, For
from kernelgen.ascendc.pipes import pipe_of
from kernelgen.ascendc.printer import print_kernel, show
from kernelgen.ascendc.reader import read_kernel
from kernelgen.ascendc.tokens import Cursor
from kernelgen.machines.ascend.machines import ASCEND_910B
from kernelgen.simulators.ascendc import simulate
from kernelgen.tensor.dtypes import FLOAT32, INT32
from tests.support.kernel_builder import KernelBuilder

EXP = """#include "kernel_operator.h"
using namespace AscendC;

struct exp_tiling {
    int32_t tiles;
};

extern "C" __global__ __aicore__ void exp(GM_ADDR x, GM_ADDR y, exp_tiling tiling) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    InitSocState();
    GlobalTensor<float> x_gm;
    x_gm.SetGlobalBuffer((__gm__ float*)x, tiling.tiles * 256);
    GlobalTensor<float> y_gm;
    y_gm.SetGlobalBuffer((__gm__ float*)y, tiling.tiles * 256);
    LocalTensor<float> tile(TPosition::VECCALC, 0, 256);
    SetFlag<HardEvent::MTE3_MTE2>(0);
    for (int32_t i = 0; i < tiling.tiles; i += 1) {
        WaitFlag<HardEvent::MTE3_MTE2>(0);
        DataCopy(tile, x_gm[i * 256], 256);
        SetFlag<HardEvent::MTE2_V>(0);
        WaitFlag<HardEvent::MTE2_V>(0);
        Exp(tile, tile, 64, 4, UnaryRepeatParams{1, 1, 8, 8});
        SetFlag<HardEvent::V_MTE3>(0);
        WaitFlag<HardEvent::V_MTE3>(0);
        DataCopy(y_gm[i * 256], tile, 256);
        SetFlag<HardEvent::MTE3_MTE2>(0);
    }
    WaitFlag<HardEvent::MTE3_MTE2>(0);
    PipeBarrier<PIPE_ALL>();
}
"""


def exp_kernel() -> KernelBuilder:
    kernel = KernelBuilder("exp", ("x", "y"), tiling=("tiles",))
    x = kernel.global_tensor("x_gm", FLOAT32, "x", kernel.field("tiles") * 256)
    y = kernel.global_tensor("y_gm", FLOAT32, "y", kernel.field("tiles") * 256)
    tile = kernel.local_tensor("tile", FLOAT32, address=0, size=256)
    kernel.set_flag("MTE3", "MTE2", 0)
    with kernel.loop("i", 0, kernel.field("tiles")) as i:
        kernel.wait_flag("MTE3", "MTE2", 0)
        kernel.emit("DataCopy", dst=tile, src=x[i * 256], count=256)
        kernel.set_flag("MTE2", "V", 0)
        kernel.wait_flag("MTE2", "V", 0)
        kernel.emit("Exp", dst=tile, src=tile, mask=64, repeats=4, strides=(1, 1, 8, 8))
        kernel.set_flag("V", "MTE3", 0)
        kernel.wait_flag("V", "MTE3", 0)
        kernel.emit("DataCopy", dst=y[i * 256], src=tile, count=256)
        kernel.set_flag("MTE3", "MTE2", 0)
    kernel.wait_flag("MTE3", "MTE2", 0)
    return kernel


def test_built_kernel_prints_reads_back_and_runs() -> None:
    kernel = exp_kernel().build()
    assert print_kernel(kernel) == EXP
    assert read_kernel(EXP) == kernel
    x, y = np.linspace(-2, 2, 768, dtype=np.float32), np.zeros(768, np.float32)
    report = simulate(EXP, {"x": x, "y": y}, machine=ASCEND_910B, blocks=1, outputs=["y"], tiling={"tiles": 3})
    assert report.clean, report
    np.testing.assert_array_equal(y, np.exp(x))


def test_reader_knows_the_line_of_every_statement() -> None:
    lines = EXP.splitlines()
    (loop,) = (one for one in read_kernel(EXP).body if isinstance(one, For))
    assert lines[loop.line - 1].strip().startswith("for")
    for one in loop.body:
        assert isinstance(one, Call)
        assert lines[one.line - 1].strip().startswith(one.operation)


def test_builder_names_the_prototypes() -> None:
    with pytest.raises(AscendError, match=r"\(dst, src, count\); \(dst, src, mask, repeats, strides\)"):
        make_call("Exp", dst=Number(0), source=Number(0))
    with pytest.raises(AscendError, match="UnaryRepeatParams has the fields dst_block, src_block"):
        make_call("Exp", dst=Number(0), src=Number(0), mask=64, repeats=1, strides=(1, 1))
    with pytest.raises(AscendError, match="no field 'rows'"):
        exp_kernel().field("rows")


def test_branches() -> None:
    kernel = KernelBuilder("k", ("x",))
    block = kernel.let("block", INT32, BLOCK_INDEX)
    with kernel.when(block < 3):
        kernel.barrier("V")
    with kernel.otherwise():
        kernel.barrier("MTE2")
    text = print_kernel(kernel.build())
    assert (
        "    if (block < 3) {\n        PipeBarrier<PIPE_V>();\n    } else {\n        PipeBarrier<PIPE_MTE2>();\n    }\n"
        in text
    )
    assert print_kernel(read_kernel(text)) == text


@pytest.mark.parametrize(
    ("call", "places", "pipe"),
    [
        (make_call("DataCopy", dst=Name("x"), src=Name("x"), count=8), {}, ""),
        (make_call("PipeBarrier", ("PIPE_V",)), {}, "V"),
        (make_call("SetFlag", ("HardEvent::MTE2_V",), id=0), {}, "MTE2"),
        (make_call("WaitFlag", ("HardEvent::MTE2_V",), id=0), {}, "V"),
    ],
)
def test_pipe_of_a_call(call: Call, places: dict[str, str], pipe: str) -> None:
    if pipe:
        assert pipe_of(call, places.__getitem__) == pipe
    else:
        with pytest.raises(AscendError, match="fit no prototype"):
            pipe_of(call, places.__getitem__)


def test_expressions_fold_what_is_known() -> None:
    i = Name("i")
    assert show((i + 0) * 1 + 2 * 3) == "i + 6"
    assert i * 0 == Number(0)
    assert show((i + 1) * 4 - (i - 2)) == "(i + 1) * 4 - (i - 2)"
    assert show(ceil_div(i, 8)) == "(i + 7) / 8"
    assert show(smaller(i, 4)) == "(i < 4 ? i : 4)"
    assert larger(3, 4) == Number(4)
    assert wrap(-7) // 2 == Number(-3)
    assert wrap(-7) % 2 == Number(-1)


def expressions() -> st.SearchStrategy[Expression]:
    leaves = st.one_of(
        st.integers(-(2**31), 2**31 - 1).map(Number),
        st.floats(width=32, allow_nan=False).map(Number),
        st.sampled_from([Name("i"), Field("tiling", "rows"), BLOCK_INDEX]),
    )
    operators = st.sampled_from(["+", "-", "*", "/", "%", "<", "<=", "==", "!=", "&&", "||", "<<", ">>"])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(Binary, operators, inner, inner),
            st.builds(Choice, inner, inner, inner),
            st.builds(Convert, st.just(INT32), inner),
            st.builds(GetValue, st.just("x_ub"), inner),
            st.builds(Unary, st.just("!"), inner),
        ),
        max_leaves=12,
    )


@settings(max_examples=200, deadline=None)
@given(expressions())
def test_expression_reads_back(expression: Expression) -> None:
    assert read_expression(Cursor(show(expression))) == expression
