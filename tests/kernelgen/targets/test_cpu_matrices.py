"""Registers of matrices: their sums of products of bytes are exact, and what they cannot take is left to vectors."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hosts import HOSTS, run_on
from nests import I, J, block, buffer, loop
from operator_kernels import one

from kernelgen.driver import compile
from kernelgen.errors import ArgumentError
from kernelgen.native import processor as processors
from kernelgen.native.processor import MATRICES, processor
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Accumulate, Call, For, Index, Literal, Load, LoopKind, Nest, Num, Space, Store, Var
from kernelgen.nest.verify import verify
from kernelgen.nest.walk import statements
from kernelgen.plan import CpuPlan, MatrixChoice, Plan, VectorUnit
from kernelgen.targets import python
from kernelgen.targets.cpu.emit import emit_for
from kernelgen.targets.cpu.loops.code_plan import choose
from kernelgen.targets.cpu.loops.matrix_plan import MatrixPlan, MatrixSum, choose_matrices, matrix_plan
from kernelgen.targets.cpu.runtime.llvm import compile_object, detect_host
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dtypes import INT32, UINT8
from kernelgen.transforms.cpu.byte_words import word
from kernelgen.tuning.neighbours import near

K, TAP = Var("k"), Var("tap")
HERE = detect_host()
FEATURES = ("avx2", "avx512f", "avx512bw", "avx512vl", "avx512vbmi2", "avx512vnni", "amx-tile", "amx-int8")
WITH = Host("sapphirerapids", frozenset(FEATURES))
WITHOUT = replace(WITH, features=WITH.features - {"amx-int8"})
UNIT = VectorUnit(32, 16, adds_bytes=True, has_matrices=True)
needs_matrices = pytest.mark.skipif(not HERE.has_matrices, reason="this processor lacks registers of matrices (AMX)")
SIZES = [(32, 32, 32), (2, 4, 1), (17, 16, 17), (16, 33, 16), (31, 47, 24), (5, 200, 32)]


def sums(rows: int, words: int, columns: int, taps: int = 1, begins: bool = True) -> Nest:
    """``y[i, j] += byte_dot(x[tap, i, 4 k ..], w[tap, k, j])`` for rows that may be taken at once."""
    x, w = buffer("x", taps, rows, 4 * words, dtype=UINT8), buffer("w", taps, words, columns, dtype=INT32)
    y = buffer("y", rows, columns, dtype=INT32, space=Space.INOUT)
    terms = loop(K, words, kind=LoopKind.SERIAL)
    left = word(Load(x, (TAP, I, K)), terms)
    total = Accumulate(y, (I, J), "add", Call("byte_dot", (left, Load(w, (TAP, K, J))), INT32))
    inner = loop(TAP, taps, replace(terms, body=block(loop(J, columns, total))), kind=LoopKind.SERIAL)
    start = (loop(J, columns, Store(y, (I, J), Literal(0, INT32))),) if begins else ()
    return Nest("bytes", (), (x, w, y), block(loop(I, rows, *start, inner, kind=LoopKind.ROWS)))


def rows_of(nest: Nest) -> For:
    (found,) = (part for part in statements(nest.body) if isinstance(part, For) and part.kind is LoopKind.ROWS)
    return found


def arrays(nest: Nest) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Bytes, words of bytes, some numbers, and the sums of products; bytes are often the largest or least there are."""
    random = np.random.default_rng(0)
    (taps, rows, terms), _, (_, columns) = ([d for d in each.shape if isinstance(d, int)] for each in nest.buffers)
    x = np.where(random.random((taps, rows, terms)) < 0.5, 255, random.integers(0, 256, (taps, rows, terms)))
    shape = (taps, terms // 4, columns, 4)
    w = np.where(random.random(shape) < 0.5, -128, random.integers(-128, 128, shape)).astype(np.int8)
    by_term = w.transpose(0, 1, 3, 2).reshape(taps, terms, columns)
    y = random.integers(-1000, 1000, (rows, columns)).astype(np.int32)
    found = np.einsum("tik,tkj->ij", x.astype(np.int64), by_term.astype(np.int64)).astype(np.int32)
    return x.astype(np.uint8), w.view(np.int32)[..., 0], y, found


@needs_matrices
@pytest.mark.parametrize("taps", [1, 3])
@pytest.mark.parametrize("begins", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_sums_of_bytes_are_exact(size: tuple[int, int, int], begins: bool, taps: int) -> None:
    nest = sums(*size, taps=taps, begins=begins)
    x, w, y, found = arrays(nest)
    expected = found if begins else y + found
    run_on(HERE, nest, x, w, y)
    assert np.array_equal(y, expected)
    assert "tdpbusd" in emit_for(nest, HERE)


@pytest.mark.parametrize("size", SIZES)
def test_the_nest_means_the_same_without_them(size: tuple[int, int, int]) -> None:
    nest = sums(*size, taps=2)
    verify(nest)
    x, w, y, expected = arrays(nest)
    python.load(python.emit(nest), nest)((x, w, y), ())
    assert np.array_equal(y, expected)


@pytest.mark.parametrize("host", [WITHOUT, *HOSTS.values()], ids=["without", *HOSTS])
def test_other_processors_get_vectors(host: Host) -> None:
    assert "tdpbusd" in emit_for(sums(32, 32, 32), WITH)
    assert "tdpbusd" not in emit_for(sums(32, 32, 32), host)


def test_llvm_assembles_them_for_processors_that_have_them() -> None:
    assert compile_object(emit_for(sums(31, 47, 24, taps=3), WITH), replace(WITH, triple="x86_64-unknown-linux-gnu"))


def test_zeros_are_no_loop_of_their_own() -> None:
    plan = matrix_plan(rows_of(sums(32, 32, 32)), WITH)
    assert isinstance(plan, MatrixPlan)
    (only,) = plan.parts
    assert isinstance(only, MatrixSum)
    assert only.begins
    assert (only.words, only.count, only.steps) == (16, 2, (128, 128, 128))


def _other_start(nest: Nest, store: Store, columns: int) -> Nest:
    rows = rows_of(nest)
    start = loop(J, columns, store)
    return replace(nest, body=block(replace(rows, body=block(start, rows.body.statements[-1]))))


def test_other_starts_are_kept() -> None:
    nest = sums(32, 32, 32)
    y = nest.buffers[2]
    ones = _other_start(nest, Store(y, (I, J), Literal(1, INT32)), 32)
    few = _other_start(nest, Store(y, (I, J), Literal(0, INT32)), 31)
    shifted = _other_start(nest, Store(y, (I, ix.subtract(Num(31), J)), Literal(0, INT32)), 32)
    for each in (ones, few, shifted):
        plan = matrix_plan(rows_of(each), WITH)
        assert isinstance(plan, MatrixPlan)
        start, total = plan.parts
        assert isinstance(total, MatrixSum)
        assert (start, total.begins) == (rows_of(each).body.statements[0], False)


def _with_total(nest: Nest, total: Accumulate) -> For:
    rows = rows_of(nest)
    start, taps = rows.body.statements
    assert isinstance(taps, For)
    (terms,) = taps.body.statements
    assert isinstance(terms, For)
    (vector,) = terms.body.statements
    assert isinstance(vector, For)
    inner = replace(terms, body=block(replace(vector, body=block(total))))
    return replace(rows, body=block(start, replace(taps, body=block(inner))))


def test_what_registers_cannot_take_stays_with_rows() -> None:
    nest = sums(32, 32, 32)
    x, w, y = nest.buffers
    terms = loop(K, 32, kind=LoopKind.SERIAL)
    left, right = word(Load(x, (TAP, I, K)), terms), Load(w, (TAP, K, J))

    def planned(of: Call, at: tuple[Index, ...] = (I, J), function: str = "add") -> bool:
        return choose_matrices(_with_total(nest, Accumulate(y, at, function, of)), WITH).registers

    def dot(a: Call, b: Load) -> Call:
        return Call("byte_dot", (a, b), INT32)

    assert isinstance(left, Call)
    assert planned(dot(left, right))
    turned = word(Load(x, (TAP, I, K)), terms, places=(1, 0, 2, 3))
    down = word(Load(x, (TAP, K, I)), replace(terms, upper=Num(8)))
    assert isinstance(turned, Call)
    assert isinstance(down, Call)
    assert not planned(dot(turned, right)), "bytes in another order"
    assert not planned(dot(down, right)), "bytes that lie below each other"
    assert not planned(dot(left, Load(w, (TAP, J, K)))), "columns that lie below each other"
    assert not planned(dot(left, Load(w, (TAP, K, I)))), "one column for each row"
    assert not planned(dot(left, right), function="maximum")
    apart = ix.substitute_in(left, {K.name: ix.multiply(K, Num(2))})
    assert isinstance(apart, Call)
    assert not planned(dot(apart, right)), "words that do not lie side by side"
    assert not planned(dot(left, right), at=(K, J)), "sums that move with their terms"
    assert not planned(dot(left, right), at=(ix.add(I, TAP), J)), "sums that move with loops around their terms"
    assert not planned(dot(left, right), at=(J, I)), "sums that lie below each other"
    assert not planned(Call("add", (dot(left, right), Literal(1, INT32)), INT32))


def test_blocks_that_are_too_large_or_open_stay_with_rows() -> None:
    high, wide, short = (rows_of(sums(*size)) for size in ((33, 32, 32), (32, 32, 33), (32, 3, 32)))
    lines = "it is not over 2 to 32 rows"
    others = "it holds no sum of products of bytes that they take"
    assert choose_matrices(high, WITH) == MatrixChoice(False, lines)
    assert choose_matrices(replace(rows_of(sums(32, 32, 32)), upper=Var("n")), WITH) == MatrixChoice(False, lines)
    assert choose_matrices(wide, WITH) == choose_matrices(short, WITH) == MatrixChoice(False, others)


def test_what_is_no_loop_beside_sums_leaves_all_to_rows() -> None:
    nest = sums(32, 32, 32)
    rows = rows_of(nest)
    first = Store(nest.buffers[2], (I, Num(0)), Literal(0, INT32))
    assert choose_matrices(rows, WITH).registers
    mixed = replace(rows, body=block(first, *rows.body.statements))
    assert choose_matrices(mixed, WITH) == MatrixChoice(False, "it holds more than loops")


def test_it_is_a_choice_that_says_why_and_can_be_edited() -> None:
    nest = sums(31, 47, 24, taps=3)
    code = choose(nest, WITH)
    assert code.matrices == (MatrixChoice(True, "31 rows at once, sums of 45 words"),)
    assert "rows 0: registers of matrices  (31 rows at once, sums of 45 words)" in str(code)
    assert emit_for(nest, WITH, code) == emit_for(nest, WITH)
    alone = replace(code, matrices=(MatrixChoice(False),))
    assert "rows 0: row by row" in str(alone)
    assert "tdpbusd" not in emit_for(nest, WITH, alone)


def test_choices_survive_a_file() -> None:
    plan = Plan(code=choose(sums(32, 32, 32), WITH))
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_choices_that_do_not_fit_are_refused() -> None:
    nest = sums(32, 32, 32)
    code = choose(nest, WITH)
    with pytest.raises(ArgumentError, match=r"the loop over i allows no registers of matrices: the processor has none"):
        emit_for(nest, WITHOUT, code)
    with pytest.raises(ArgumentError, match="fewer matrices than the nest"):
        emit_for(nest, WITH, replace(code, matrices=()))
    with pytest.raises(ArgumentError, match="more matrices than the nest"):
        emit_for(nest, WITH, replace(code, matrices=code.matrices * 2))


def test_a_search_tries_rows_one_by_one() -> None:
    with_registers, without = (Plan(code=choose(sums(32, 32, 32), host)) for host in (WITH, WITHOUT))
    tried = dict(near(with_registers))["rows 0: row by row"].code
    assert tried is not None
    assert tried.matrices == (MatrixChoice(False),)
    assert "rows 0: row by row" not in dict(near(without))


@pytest.mark.parametrize("size", [(8, 64, 16), (49, 96, 40), (37, 72, 24), (64, 256, 100), (128, 64, 7)])
@pytest.mark.parametrize("unit", [UNIT, replace(UNIT, has_matrices=False)], ids=["with", "without"])
def test_products_are_planned_in_them_and_agree_with_numpy(size: tuple[int, int, int], unit: VectorUnit) -> None:
    rows, terms, columns = size
    desc = one("MatMulInteger", [("uint8", (rows, terms)), ("int8", (terms, columns))], [("int32", (rows, columns))])
    kernel = compile(desc, "cpu", Plan(cpu=CpuPlan(unit=unit)), constants=[1])
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (rows, terms)).astype(np.uint8)
    w = random.integers(-128, 128, (terms, columns)).astype(np.int8)
    (found,) = kernel(x, *kernel.prepare(w))
    assert np.array_equal(found, x.astype(np.int32) @ w.astype(np.int32))
    assert ("rows i0" in kernel.stages["plan"]) == unit.has_matrices
    assert ("tdpbusd" in kernel.source) == (unit.has_matrices and HERE.has_matrices)
    assert kernel.plan.code is not None
    assert bool(kernel.plan.code.matrices) == unit.has_matrices
    assert compile(desc, "cpu", Plan.from_json(kernel.plan.to_json()), constants=[1]).source == kernel.source


@pytest.mark.parametrize(("rows", "terms"), [(4, 256), (64, 48)])
def test_few_rows_or_terms_are_planned_in_vectors(rows: int, terms: int) -> None:
    desc = one("MatMulInteger", [("uint8", (rows, terms)), ("int8", (terms, 64))], [("int32", (rows, 64))])
    assert "rows i0" not in compile(desc, "cpu", Plan(cpu=CpuPlan(unit=UNIT)), constants=[1]).stages["plan"]


@pytest.mark.parametrize(("left", "right"), [("int8", "uint8"), ("uint8", "uint8"), ("int8", "int8")])
def test_other_factors_are_planned_in_vectors(left: str, right: str) -> None:
    desc = one("MatMulInteger", [(left, (64, 256)), (right, (256, 64))], [("int32", (64, 64))])
    assert "rows i0" not in compile(desc, "cpu", Plan(cpu=CpuPlan(unit=UNIT)), constants=[1]).stages["plan"]


def test_a_system_that_does_not_lend_them_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "flags : avx2 amx_tile amx_int8\n"
    monkeypatch.setattr(processors, "_told", lambda: told)
    monkeypatch.setattr(processors, "_may_use_matrices", lambda: True)
    assert processor.__wrapped__().flags == {"avx2"} | MATRICES
    monkeypatch.setattr(processors, "_may_use_matrices", lambda: False)
    assert processor.__wrapped__().flags == {"avx2"}
