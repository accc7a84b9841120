"""Vectors of a panel that is read once: where they lie, that they are read side by side, and what stays as it is."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from kernel_examples import Writer, tensor
from nests import block, buffer, output
from operator_kernels import one

from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.kernel import Kernel
from kernelgen.nest import index as ix
from kernelgen.nest.extents import extent
from kernelgen.nest.nodes import (
    Accumulate,
    Block,
    Call,
    Expr,
    For,
    Literal,
    Load,
    LoopKind,
    Nest,
    Num,
    Prefetch,
    Space,
    Statement,
    Store,
    Var,
)
from kernelgen.nest.verify import verify
from kernelgen.nest.walk import loads_of, statements
from kernelgen.plan import CpuPlan, Plan
from kernelgen.tensor.dtypes import FLOAT32
from kernelgen.transforms.cpu.jam_panels import jam_panels
from kernelgen.transforms.cpu.prefetching.panels import AHEAD_BYTES

LINE, LANES, STREAMS = 16, 16, 8
UNIT = 2.0**-24


def fused(terms: int, columns: int, rows: int = 1) -> KernelDesc:
    w = Writer()
    a, b, c = tensor("a", rows, terms), tensor("b", terms, columns), tensor("c", columns)
    found = w.op("Add", w.op("MatMul", a, b, shape=(rows, columns)), c, shape=(rows, columns))
    return w.desc("fused", (a, b, c), w.op("Exp", found, shape=(rows, columns)))


def made(desc: KernelDesc, threads: int = 1) -> Kernel:
    return compile(desc, constants=range(1, len(desc.inputs)), plan=Plan(replace(CpuPlan(), threads=threads)))


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize(("terms", "columns"), [(1, 128), (7, 33), (40, 31), (40, 300), (96, 1000)])
def test_few_rows_times_a_constant_are_right_and_the_same_on_all_threads(rows: int, terms: int, columns: int) -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((rows, terms), (terms, columns), (columns,)))
    found = [
        kernel(*kernel.call_inputs([a, b, c]))[0] for kernel in (made(fused(terms, columns, rows), n) for n in (1, 2))
    ]
    wide = [each.astype(np.float64) for each in (a, b, c)]
    sums, sizes = wide[0] @ wide[1] + wide[2], abs(wide[0]) @ abs(wide[1]) + abs(wide[2])
    np.testing.assert_array_less(
        abs(found[0] - np.exp(sums)), np.exp(sums) * (np.expm1((terms + 2) * UNIT * sizes) + 4 * UNIT)
    )
    np.testing.assert_array_equal(found[0].view(np.uint32), found[1].view(np.uint32))


def test_each_vector_of_a_panel_is_a_stream_and_what_follows_is_in_lanes() -> None:
    kernel = made(fused(96, 3 * 128))
    assert kernel.nest.preparation is not None
    (panel,) = [each for each in kernel.nest.preparation.buffers if each.space is Space.OUTPUT]
    assert panel.shape == (3, STREAMS, 96, LANES)
    (loop,) = kernel.nest.body.statements
    sums = [part for part in statements(loop) if isinstance(part, For) and part.kind is LoopKind.SERIAL]
    (vector,) = [part for part in sums[0].body.statements if isinstance(part, For)]
    read = {load.index[1] for part in statements(vector) for load in loads_of(part) if load.buffer.name == panel.name}
    assert len(sums) == 1
    assert read == set(map(Num, range(STREAMS)))
    assert not [part for part in statements(loop) if isinstance(part, For) and part.kind is LoopKind.INTERLEAVE]


def test_each_stream_is_asked_for_line_by_line() -> None:
    (loop,) = made(fused(96, 2 * 128)).nest.body.statements
    assert isinstance(loop, For)
    hints = [part for part in statements(loop) if isinstance(part, Prefetch)]
    (terms,) = [part for part in statements(loop) if isinstance(part, For) and part.kind is LoopKind.SERIAL]
    places = product(range(0, 2 * 128, 128), range(0, 96, terms.step))
    asked = [extent(hint.place, {loop.var: c, terms.var: k}) // LINE for c, k in places for hint in hints]
    ahead = AHEAD_BYTES // STREAMS // (4 * LINE)
    assert {hint.level for hint in hints} == {2}
    assert sorted(asked) == [*range(ahead, ahead + 2 * 96 * STREAMS)]


def test_streams_of_halves_are_whole_lines() -> None:
    desc = one("StoredMatMul", [("float32", (1, 96)), ("float16", (1, 96, 256))], [("float32", (1, 256))])
    kernel = made(desc)
    assert kernel.nest.preparation is not None
    (panel,) = [each for each in kernel.nest.preparation.buffers if each.space is Space.OUTPUT]
    assert panel.shape == (2, STREAMS // 2, 96, 2 * LANES)
    (loop,) = kernel.nest.body.statements
    assert len([part for part in statements(loop) if isinstance(part, Prefetch)]) == STREAMS // 2


@pytest.mark.parametrize("columns", [1, 8, 31])
def test_sums_of_a_few_columns_are_taken_along_their_terms(columns: int) -> None:
    kernel = made(fused(96, columns))
    vectors = [part for part in statements(kernel.nest.body) if isinstance(part, For) and part.kind is LoopKind.VECTOR]
    assert Num(96) in [part.upper for part in vectors]


WIDTH, PART = 8, 4
P, X, Y = buffer("p", 3, 2, 5, PART), buffer("x", 5), output("y", 24)
C, D, K, J = Var("c"), Var("d"), Var("k"), Var("j")
FACTOR = Load(P, (ix.floor_divide(C, Num(WIDTH)), ix.floor_divide(ix.subtract(D, C), Num(PART)), K, ix.subtract(J, D)))
TERM = Call("mul", (Load(X, (K,)), FACTOR), FLOAT32)
ZERO = Literal(0.0, FLOAT32)


def columns(*body: Statement, upper: ix.Index | None = None) -> For:
    return For("j", D, upper or ix.add(D, Num(PART)), Block(body), LoopKind.VECTOR)


def case(*parts: Statement, upper: ix.Index | None = None) -> Nest:
    """A loop over the vectors of each panel."""
    vectors = For("d", C, upper or ix.add(C, Num(WIDTH)), Block(parts), step=PART)
    loop = For("c", Num(0), Num(24), block(vectors), LoopKind.PARALLEL, WIDTH)
    before = Nest("before", (), (replace(P, space=Space.OUTPUT),), Block())
    return Nest("case", (), (X, P, Y), block(loop), preparation=before, panels=frozenset({"p"}))


def summed(place: ix.Index = J, value: Expr = TERM, end: int = 5) -> For:
    return For("k", Num(0), Num(end), block(columns(Accumulate(Y, (place,), "add", value))))


START = columns(Store(Y, (J,), ZERO))


def test_iterations_of_a_loop_over_vectors_become_one() -> None:
    found = jam_panels(case(START, summed()))
    verify(replace(found, preparation=None))
    (loop,) = found.body.statements
    assert isinstance(loop, For)
    *starts, terms = loop.body.statements
    assert len(starts) == 2
    assert isinstance(terms, For)
    places = [part.index for part in statements(terms) if isinstance(part, Accumulate)]
    for first, (place,) in zip((0, PART), places, strict=True):
        assert extent(place, {"c": 8, "j": 3}) == 8 + first + 3


ELSEWHERE = Call("add", (TERM, Load(Y, (J,))), FLOAT32)


@pytest.mark.parametrize(
    "kept",
    [
        case(START, summed(), upper=ix.add(C, Num(PART))),
        case(START, summed(Num(0))),
        case(START, summed(ix.subtract(J, D))),
        case(START, For("k", Num(0), D, summed().body)),
        case(START, summed(value=ELSEWHERE)),
        case(START, summed(value=Load(X, (K,)))),
    ],
    ids=["half a tile", "one element of all", "the same of all", "other terms", "reads results", "no panel"],
)
def test_other_loops_stay_as_they_are(kept: Nest) -> None:
    assert jam_panels(kept).body == kept.body


def test_nests_without_preparation_stay_as_they_are() -> None:
    plain = replace(case(START, summed()), preparation=None)
    assert jam_panels(plain) is plain
