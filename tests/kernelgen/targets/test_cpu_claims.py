"""What the text of a CPU kernel claims of alignment: shown for every kernel that streams, rejected where it is planted."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from kernel_examples import Writer, constant, softmax, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.errors import ProofError
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import For, Load, LoopKind, Nest, Num, Store
from kernelgen.plan import CpuPlan, Plan
from kernelgen.stages import lower
from kernelgen.targets.cpu.emit import emit_for
from kernelgen.targets.cpu.loops import streaming
from kernelgen.targets.cpu.proof.alignment_claims import check_claims
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dims import Dim, sym
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT8, DType
from tests.support.nests import I, J, block, buffer, call, loop, output

AVX2 = Host("x86-64-v3", frozenset(("avx2", "fma", "f16c")))
AVX512 = Host("x86-64-v4", frozenset(("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512vbmi2")))
HOSTS = [AVX2, AVX512]


def _text(kernel: KernelDesc | Nest, host: Host) -> str:
    return emit_for(kernel if isinstance(kernel, Nest) else lower(kernel, Plan(cpu=CpuPlan())).nest, host)


def _sums_and_rows(rows: Dim, columns: Dim) -> KernelDesc:
    """Sums of columns, and the rows that were summed."""
    w, x = Writer(), tensor("x", rows, columns)
    y = w.op("Mul", x, constant(2.0), shape=(rows, columns))
    return w.desc("sums", (x,), y, w.op("ReduceSum", y, shape=(1, columns), axis=(0,), keep_dims=True))


def _transposed(rows: Dim, columns: Dim, dtype: DType = FLOAT32) -> KernelDesc:
    w, x = Writer(), tensor("x", rows, columns, dtype=dtype)
    return w.desc("transposed", (x,), w.op("Transpose", x, shape=(columns, rows), perm=(1, 0)))


def _negated(extent: Dim, dtype: DType) -> KernelDesc:
    w, x = Writer(), tensor("x", extent, dtype=dtype)
    return w.desc("negated", (x,), w.op("Neg", x, shape=(extent,)))


def _rows_side_by_side(columns: Dim) -> Nest:
    """``y = -x``, four rows in one vector loop."""
    x, y = buffer("x", 4096, columns), output("y", 4096, columns)
    rows = [I if k == 0 else ix.add(I, Num(k)) for k in range(4)]
    body = block(loop(J, columns, *(Store(y, (row, J), call("neg", Load(x, (row, J)))) for row in rows)))
    turns = For("i", Num(0), Num(4096), body, LoopKind.SERIAL, 4)
    return Nest("rows", tuple(str(dim) for dim in (columns,) if not isinstance(dim, int)), (x, y), block(turns))


def _row_below(columns: Dim, dtype: DType) -> Nest:
    """Each row of ``x`` in the row of ``y`` below its own: both begin at a number of bytes that is a multiple of nothing."""
    x, y = buffer("x", columns, columns, dtype=dtype), output("y", columns + 1, columns, dtype=dtype)
    body = block(loop(J, columns, Store(y, (ix.add(I, Num(1)), J), Load(x, (I, J)))))
    return Nest(
        "below", (str(columns),), (x, y), block(For("i", Num(0), ix.from_dim(columns), body, LoopKind.SERIAL, 1))
    )


STREAMING: Mapping[str, KernelDesc | Nest] = {
    "rows side by side": _rows_side_by_side(sym("N")),
    "equal rows side by side": _rows_side_by_side(4096),
    "rows together": _sums_and_rows(512, 30528),
    "rows of any length": _sums_and_rows(sym("M"), sym("N")),
    "any number of rows": _sums_and_rows(sym("M"), 30528),
    "rows": softmax(2048, 8192),
    "any rows": softmax(sym("M"), sym("N")),
    "tiles of rows whose length has an odd factor": _transposed(5 * sym("N"), sym("M"), FLOAT64),
    "tiles": _transposed(8192, 4096),
    "any tiles": _transposed(sym("M"), sym("N")),
    **{f"a map of {dtype.name}": _negated(1 << 25, dtype) for dtype in (FLOAT16, BFLOAT16, FLOAT32, FLOAT64, INT8)},
    "any map": _negated(sym("N"), FLOAT32),
    **{f"rows of {dtype.name}, each a row below": _row_below(sym("N"), dtype) for dtype in (FLOAT32, FLOAT16, INT8)},
}


@pytest.mark.parametrize("host", HOSTS, ids=["avx2", "avx512"])
@pytest.mark.parametrize("name", STREAMING)
def test_what_streams_is_shown_to_be_aligned(name: str, host: Host) -> None:
    text = _text(STREAMING[name], host)
    streamed = text.count("!nontemporal")
    assert streamed or host is AVX2  # whose tiles and masks are too narrow for some
    assert sum(check_claims(text).values()) == streamed


@pytest.mark.parametrize("host", HOSTS, ids=["avx2", "avx512"])
def test_rows_that_cannot_be_aligned_together_claim_nothing(host: Host) -> None:
    assert check_claims(_text(_sums_and_rows(512, 30522), host)) == {}


def test_a_printer_that_believes_all_rows_aligned_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "distance", lambda left, right, lanes: 0)
    for columns in (30522, sym("N")):
        with pytest.raises(ProofError, match="not shown to be a multiple of 64"):
            check_claims(_text(_sums_and_rows(512, columns), AVX512))


TEST = r"icmp eq i64 (%\w+), (%\w+)"
ODD_ROWS = f"{TEST}(.*?icmp eq i64 %\\w+, %\\w+.*?){TEST}"
"""The tests of rows 1 and 3 of four: either of them decides the other."""

FAULTS = {
    "smaller mask": ("rows", r"(and i64 %\w+), 63", r"\1, 31"),
    "wider lanes": ("rows", r"(udiv i64 %\w+), 4", r"\1, 8"),
    "narrower lanes": ("rows", r"(udiv i64 %\w+), 4", r"\1, 2"),
    "head too short": ("rows", r"(head_end\.\d+:\n  %\w+ = add i64 %\w+), 16", r"\1, 15"),
    "head skipped": ("rows", r"(head_end\.\d+:\n.*?\n  %\w+ = select i1) %\w+,", r"\1 false,"),
    "head too early": ("rows", r"(udiv i64 [^\n]*\n[^\n]*\n  %\w+) = sub", r"\1 = add"),
    "smaller step": ("any rows", r"(%streamed_next\.\d+\.value = add nsw i64 %\w+), \d+", r"\1, 24"),
    "odd rows not tested": ("rows side by side", ODD_ROWS, r"icmp eq i64 0, 0\3icmp eq i64 0, 0"),
    "another test": ("rows side by side", ODD_ROWS, r"icmp sle i64 \1, 64\3icmp sle i64 \4, 64"),
    "one row tested": ("any tiles", r"or i64 (%\w+), %\w+", r"or i64 \1, 0"),
    "rows not tested": ("any tiles", r"icmp eq i64 %\w+, 0", "icmp eq i64 0, 0"),
    "plain load": ("rows", r"(load <16 x float>, ptr %\w+), align 4", r"\1, align 64"),
    "silent load": ("rows", r"(load <16 x float>, ptr %\w+), align 4", r"\1"),
    "masked store": ("short map", r"(@llvm\.masked\.store[^\n]*ptr align) 4", r"\1 64"),
    "masked load": ("short map", r"(@llvm\.masked\.load[^\n]*ptr align) 4", r"\1 16"),
    "streamed at once": ("short map", r"(store <16 x float> %\w+, ptr %\w+, align) 4", r"\1 64, !nontemporal !0"),
    "streamed and silent": (
        "short map",
        r"(store <16 x float> %\w+, ptr %\w+), align 4",
        r"\1, align 4, !nontemporal !0",
    ),
    "too much": ("rows", r"align 64, !nontemporal", "align 128, !nontemporal"),
    "the array itself": (
        "rows",
        r"(  %\w+ = getelementptr float, ptr (%p\d), )",
        r"  %planted = load <4 x float>, ptr \2, align 16\n\1",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_claims_are_rejected(name: str) -> None:
    kernel, pattern, replacement = FAULTS[name]
    desc = STREAMING[kernel] if kernel in STREAMING else _negated(5003, FLOAT32)
    text = _text(desc, AVX512)
    check_claims(text)
    planted, count = re.subn(pattern, replacement, text, count=1, flags=re.S)
    assert count == 1
    assert planted != text
    with pytest.raises(ProofError, match="alignment"):
        check_claims(planted)


def test_a_slot_is_as_aligned_as_it_says() -> None:
    body = "define void @f(i64 %i) {{\nentry:\n  %s = alloca [4 x <16 x float>], align {}\n{}  ret void\n}}\n"
    row = "  %a = getelementptr <16 x float>, ptr %s, i64 %i\n  %v = load <16 x float>, ptr %a, align 64\n"
    assert check_claims(body.format(64, row)) == {"f": 1}
    with pytest.raises(ProofError):
        check_claims(body.format(32, row))
    with pytest.raises(ProofError):
        check_claims(body.format(64, row.replace("getelementptr <16", "getelementptr <8")))


def test_a_loop_with_two_entries_is_rejected() -> None:
    text = (
        "define void @f(ptr %p, i1 %c) {\nentry:\n  br i1 %c, label %one, label %two\none:\n  br label %two\n"
        "two:\n  store <4 x float> zeroinitializer, ptr %p, align 16\n  br label %one\n}\n"
    )
    with pytest.raises(ProofError, match="two entries"):
        check_claims(text)


@pytest.mark.skipif(not detect_host().has_streaming, reason="this processor has no stores past the caches")
def test_a_compiled_kernel_carries_what_was_shown_and_a_wrong_one_is_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = kernelgen.compile(_sums_and_rows(512, 30528)).proof
    assert "does not hold" in str(proof.about("claims")[0])
    monkeypatch.setattr(streaming, "distance", lambda left, right, lanes: 0)
    with pytest.raises(ProofError, match="alignment"):
        kernelgen.compile(_sums_and_rows(512, 30522))
