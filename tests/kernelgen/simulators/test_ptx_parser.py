"""Reading PTX: declarations, scopes, operands, places, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgen.errors import ArgumentError
from kernelgen.simulators.ptx import PtxError, parse, run
from kernelgen.simulators.ptx.language.nodes import Address, Immediate, Negated, Pair, Register, Symbol, Vector
from kernelgen.simulators.ptx.machine.flow import chunks_of, unsure_registers
from tests.support import cuda_kernels as kernels
from tests.support.cuda_runs import compiled

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
SMALL = (
    HEAD
    + """
.extern .shared .align 16 .b8 pool[];
.const .align 4 .u32 table[3] = {1, 2, 0xFFFFFFFF};
.visible .entry small(.param .u64 small_0, .param .align 4 .b8 small_1[12]) // a struct
.maxntid 128, 1, 1
{
  .reg .pred %p<3>;
  .reg .b32 %r<5>; /* two
  lines */
  .reg .b64 %rd<3>;
  .shared .align 8 .f64 mine[4];
  .loc 1 7 3
  ld.param.u64 %rd1, [small_0+0];
  @!%p1 bra $there;
  shfl.sync.down.b32 %r1|%p2, %r2, -1, 0x1f, %r3;
  { .reg .b32 %r1; mov.u32 %r1, %tid.x; }
  .loc 2 90 1, function_name $x, inlined_at 1 9 2
$there:
  st.global.v2.f32 [%rd1+-8], {%r1, 0f3F800000};
  mov.u64 %rd2, mine+16;
  ret;
}
"""
)
DISORDERED = (
    HEAD
    + """
.entry far(.param .u32 n) {
  .reg .pred %p;
  .reg .b32 %r<3>;
  ld.param.u32 %r0, [n];
  setp.eq.s32 %p, %r0, 0;
  @%p bra $late;
$end:
  ret;
$late:
  mov.u32 %r1, 1;
$loop:
  add.s32 %r1, %r1, 1;
  setp.lt.s32 %p, %r1, %r0;
  @%p bra $loop;
  bra $end;
}
"""
)


def test_declarations() -> None:
    module = parse(SMALL)
    (kernel,) = module.kernels.values()
    assert module.target == "sm_90"
    assert [(one.name, one.size, one.align) for one in kernel.parameters] == [("small_0", 8, 8), ("small_1", 12, 4)]
    assert [(one.space, one.name, one.size) for one in module.variables] == [
        ("shared", "pool", 0),
        ("const", "table", 12),
    ]
    assert np.frombuffer(module.variables[1].data or b"", np.uint32).tolist() == [1, 2, 2**32 - 1]
    assert [(one.space, one.size, one.align) for one in kernel.variables] == [("shared", 32, 8)]


def test_operands_and_places() -> None:
    load, branch, shuffle, move, store, address, _ = parse(SMALL).kernels["small"].instructions
    assert load.operands == (Register("%rd1"), Address(Symbol("small_0")))
    assert branch.guard == Negated(Register("%p1"))
    assert shuffle.operands[0] == Pair(Register("%r1"), Register("%p2"))
    assert shuffle.operands[2:4] == (Immediate(-1), Immediate(31))
    assert move.operands[0] == Register("%r1@2"), "an inner block's register hides the outer one"
    assert store.operands == (Address(Register("%rd1"), -8), Vector((Register("%r1"), Immediate(0x3F800000, 32))))
    assert address.operands[1] == Symbol("mine", 16)
    assert [one.place.source_line for one in (load, store)] == [7, 9], "inlined code counts for where it was inlined"
    assert load.place.line == SMALL.splitlines().index("  ld.param.u64 %rd1, [small_0+0];") + 1
    assert str(store) == "st.global.v2.f32 [%rd1+-8], {%r1, 0f3F800000}"


def test_chunks_are_ordered_so_that_lanes_meet_again() -> None:
    kernel = parse(DISORDERED).kernels["far"]
    chunks = chunks_of(kernel)
    texts = [str(kernel.instructions[chunk.start]) for chunk in chunks]
    assert texts == ["ld.param.u32 %r0, [n]", "mov.u32 %r1, 1", "add.s32 %r1, %r1, 1", "bra $end", "ret"]
    assert all(target > number or target == 2 for number, chunk in enumerate(chunks) for target in chunk.targets)


def test_registers_that_some_path_reads_too_early() -> None:
    kernel = parse(SMALL).kernels["small"]
    assert unsure_registers(kernel, chunks_of(kernel)) == {"%p1", "%r1", "%r2", "%r3"}
    sure = parse(compiled(kernels.SOFTMAX).ptx).kernels["softmax"]
    assert unsure_registers(sure, chunks_of(sure)) == set()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tex.2d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [t, {%r1, %r2}];", "PTX line 6"),
        ("wgmma.fence.sync.aligned;", "wgmma.*is not implemented by the interpreter"),
        ("min.xorsign.abs.f32 %r1, %r2, %r3;", "PTX line 6: `min.xorsign.abs.f32"),
        ("call.uni foo, (%r1);", "PTX line 6: `call.uni foo, {%r1}` is a call that cannot be put in place"),
        ("add.s64 %r1, %r2, %r3;", "too narrow"),
        ("mov.u32 %r1, %nothing;", "special register %nothing is not known"),
        ("bra $nowhere;", "no label '\\$nowhere'"),
        ("mov.u32 %r1, #;", "PTX line 6: no token begins"),
    ],
)
def test_what_is_not_known_is_refused_with_its_line(line: str, message: str) -> None:
    text = f"{HEAD}.entry k() {{\n.reg .b32 %r<4>;\n{line}\nret;\n}}\n"
    with pytest.raises(PtxError, match=message):
        run(text, 1, 32, [])


def test_arguments_are_checked() -> None:
    text = compiled(kernels.ADD).ptx
    x = np.zeros(8, np.float32)
    with pytest.raises(ArgumentError, match="takes 4 arguments, 2 are given"):
        run(text, 1, 32, [x, x])
    with pytest.raises(ArgumentError, match="has 4 bytes"):
        run(text, 1, 32, [x, x, x, np.int64(8)])
    with pytest.raises(ArgumentError, match="overlaps another buffer in part"):
        run(text, 1, 32, [x, x[2:], x[:4], 2])
    with pytest.raises(ArgumentError, match="no kernel 'sub'"):
        run(text, 1, 32, [x, x, x, 8], kernel="sub")
    with pytest.raises(ArgumentError, match="more than 1024 threads"):
        run(text, 1, (32, 33), [x, x, x, 8])
    with pytest.raises(ArgumentError, match="more than 2097152 run"):
        run(text, (1 << 12, 1 << 10), 32, [x, x, x, 8])


def test_a_sample_may_be_of_any_grid() -> None:
    """Blocks are told apart by their places among those that run."""
    n = 100
    x, z = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    report = run(compiled(kernels.ADD).ptx, 1 << 26, 32, [x, x, z, n], blocks=[0, 1, 2, 3, 1 << 25, (1 << 26) - 1])
    assert report.clean
    np.testing.assert_array_equal(z, 2 * x)


def test_findings_of_a_sample_name_blocks_of_the_grid() -> None:
    text = compiled('extern "C" __global__ void all(int* z) { z[blockIdx.x % 8 * 1024 + threadIdx.x] = 1; }').ptx
    report = run(text, 1 << 20, 1024, [np.zeros(8192, np.int32)], blocks=range(500, 509))
    assert "block 508 thread 0: byte 16384 of all_param_0 is also touched by thread 0 of block 500" in str(
        report.findings[0]
    )
