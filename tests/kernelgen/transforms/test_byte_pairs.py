"""Sums of products of bytes by pairs of halves of words: exact for every number of terms and rows, and left alone elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hosts import HOSTS, needs_avx2, run_on
from nests import I, J, block, buffer, call, loop
from operator_kernels import one

from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.kernel import Kernel
from kernelgen.nest.nodes import Accumulate, Call, For, Let, Load, LoopKind, Nest, Num, Space, Statement, Store, Var
from kernelgen.nest.scalars import SCALARS
from kernelgen.nest.verify import verify
from kernelgen.nest.walk import calls_of, statements
from kernelgen.plan import Plan, VectorUnit
from kernelgen.poly.model.register_cost import BlockRules, block_for
from kernelgen.targets import python
from kernelgen.targets.cpu.emit import emit_for
from kernelgen.targets.cpu.loops.block_sizes import sizes_for
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dims import Dim, sym
from kernelgen.tensor.dtypes import INT8, INT32, UINT8, UINT16, DType
from kernelgen.transforms.cpu.byte_pairs import byte_pairs

K = Var("k")
AVX2 = HOSTS["avx2"]
VNNI = Host(AVX2.cpu, AVX2.features | {"avxvnni"})
HERE = detect_host()
PROCESSORS = {**HOSTS, "this processor": HERE}
SERIAL, ROWS = LoopKind.SERIAL, 2
PAIRED = VectorUnit(registers=16, lanes=8, adds_pairs=True)


def product(
    terms: int,
    left: DType = UINT8,
    right: DType = INT8,
    columns: int = 21,
    own: bool = False,
    space: Space = Space.INPUT,
) -> Nest:
    """``y[i, j] += x[i, k] * w[k, j]`` with the columns innermost; of ``own`` rows, which each turn stores before, and which
    are read as bytes behind.
    """
    x, w = buffer("x", ROWS, terms, dtype=left, space=space), buffer("w", terms, columns, dtype=right)
    y = buffer("y", ROWS, columns, dtype=INT32, space=Space.INOUT)
    read = replace(x, name="q", space=Space.WORKSPACE) if own else x
    factors = (Call("cast", (Load(each, at),), INT32) for each, at in ((read, (I, K)), (w, (K, J))))
    inner = loop(J, columns, Accumulate(y, (I, J), "add", call("mul", *factors)))
    parts: list[Statement] = [loop(K, terms, inner, kind=SERIAL)]
    if own:
        parts.insert(0, loop(Var("m"), terms, Store(read, (I, Var("m")), Load(x, (I, Var("m"))))))
        first = Call("cast", (Load(read, (I, Num(0))),), INT32)
        parts.append(loop(Var("n"), columns, Accumulate(y, (I, Var("n")), "add", first)))
    buffers = (x, w, y, read) if own else (x, w, y)
    return Nest("bytes", (), buffers, block(loop(I, ROWS, *parts, kind=SERIAL)))


def drawn(rows: int, terms: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Operands of which extreme numbers are frequent, all products of the first row and column as great as can be."""
    random = np.random.default_rng(0)
    x, w = random.integers(0, 256, (rows, terms)), random.integers(-128, 128, (terms, columns))
    x = np.where(random.random(x.shape) < 0.4, random.choice((0, 1, 128, 255), x.shape), x).astype(np.uint8)
    w = np.where(random.random(w.shape) < 0.4, random.choice((-128, -1, 0, 127), w.shape), w).astype(np.int8)
    x[0], w[:, 0] = 255, -128
    return x, w


def expected(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The product modulo 2^32."""
    return (x.astype(np.int64) @ w.astype(np.int64)).astype(np.int32)


def spaces(nest: Nest) -> list[np.ndarray]:
    """Room for what it computes in between, of numbers that nobody stored."""
    held = [each for each in nest.buffers if each.space is Space.WORKSPACE]
    return [np.full([d for d in each.shape if isinstance(d, int)], 77, each.dtype.numpy) for each in held]


def functions(nest: Nest) -> Iterator[str]:
    return (each.function for part in statements(nest.body) for each in calls_of(part))


def product_kernel(rows: Dim, terms: int, columns: int) -> KernelDesc:
    given = [("uint8", (rows, terms)), ("int8", (terms, columns))]
    return one("MatMulInteger", given, [("int32", (rows, columns))])


def kernel_for(host: Host, rows: Dim, terms: int, columns: int, threads: int = 1) -> Kernel:
    """The kernel of a product as it is planned for a ``host``, which this processor runs."""
    return compile(product_kernel(rows, terms, columns), plan=Plan(cpu=sizes_for(host, threads)), constants=[1])


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("terms", [2, 3, 4, 7, 31, 64])
def test_pairs_and_the_term_beside_them_are_all_terms(terms: int, own: bool) -> None:
    made = byte_pairs(product(terms, own=own), adds_pairs=True)
    verify(made)
    x, w = drawn(2, terms, 21)
    y = np.zeros((2, 21), np.int32)
    python.load(python.emit(made), made)((x, w, y, *spaces(made)), ())
    assert np.array_equal(y, expected(x, w) + (x[:, :1] if own else 0))
    assert "half_dot" in functions(made)


@needs_avx2
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("columns", [1, 2, 4, 8, 21, 64])
@pytest.mark.parametrize("host", PROCESSORS.values(), ids=PROCESSORS)
def test_processors_with_and_without_the_instruction_agree(host: Host, columns: int, own: bool) -> None:
    made = byte_pairs(product(33, columns=columns, own=own), adds_pairs=True)
    x, w = drawn(2, 33, columns)
    y = np.zeros((2, columns), np.int32)
    run_on(host, made, x, w, y, *spaces(made))
    assert np.array_equal(y, expected(x, w) + (x[:, :1] if own else 0))


def test_rows_that_the_nest_makes_are_made_as_halves_and_others_copied_once() -> None:
    own = byte_pairs(product(8, own=True), adds_pairs=True)
    assert not any(each.dtype == UINT8 for each in own.buffers if each.space is Space.WORKSPACE)
    assert len(own.body.statements) == 1
    given = product(8)
    twice = replace(given, body=block(*given.body.statements, *given.body.statements))
    made = byte_pairs(twice, adds_pairs=True)
    assert len(made.body.statements) == 3
    assert [each.dtype for each in made.buffers if each.space is Space.WORKSPACE] == [UINT16]
    copy = made.body.statements[0]
    assert isinstance(copy, For)
    assert copy.kind is LoopKind.PARALLEL, "threads share it as they share the product"


def test_rows_of_others_that_are_written_later_stay_bytes() -> None:
    given = product(8, space=Space.INOUT)
    x = given.buffers[0]
    write = loop(I, 2, loop(J, 8, Store(x, (I, J), Load(x, (I, Num(0))))), kind=SERIAL)
    before, behind = (
        replace(given, body=block(*parts))
        for parts in ((write, *given.body.statements), (*given.body.statements, write))
    )
    assert byte_pairs(behind, adds_pairs=True) == behind
    made = byte_pairs(before, adds_pairs=True).body.statements
    assert made[0] == write
    assert len(made) == 3
    (rows,) = given.body.statements
    assert isinstance(rows, For)
    inside = replace(given, body=block(replace(rows, body=block(*rows.body.statements, *write.body.statements))))
    assert byte_pairs(inside, adds_pairs=True) == inside


def test_sums_are_no_rows_that_are_made_as_halves() -> None:
    given = product(8, own=True)
    q = next(each for each in given.buffers if each.name == "q")
    more = loop(I, 2, loop(J, 8, Accumulate(q, (I, J), "add", Load(q, (I, J)))), kind=SERIAL)
    summed = replace(given, body=block(*given.body.statements, more))
    assert byte_pairs(summed, adds_pairs=True) == summed


@pytest.mark.parametrize(("left", "right", "terms"), [(INT8, INT8, 8), (UINT8, UINT8, 8), (UINT8, INT8, 1)])
def test_other_factors_and_single_terms_stay(left: DType, right: DType, terms: int) -> None:
    given = product(terms, left, right)
    assert byte_pairs(given, adds_pairs=True) == given


def test_terms_that_are_no_neighbours_stay() -> None:
    given = product(8)
    _, w, y = given.buffers
    turned = buffer("x", 8, 2, dtype=UINT8)
    factors = (Call("cast", (Load(each, at),), INT32) for each, at in ((turned, (K, I)), (w, (K, J))))
    inner = loop(J, 21, Accumulate(y, (I, J), "add", call("mul", *factors)))
    strided = Nest("bytes", (), (turned, w, y), block(loop(I, 2, loop(K, 8, inner, kind=SERIAL), kind=SERIAL)))
    assert byte_pairs(strided, adds_pairs=True) == strided


def test_only_processors_that_add_no_four_products_take_pairs() -> None:
    assert sizes_for(AVX2).unit.adds_pairs
    assert not sizes_for(VNNI).unit.adds_pairs
    assert not sizes_for(HOSTS["plain"]).unit.adds_pairs
    given = product(8)
    assert byte_pairs(given, adds_pairs=False) is given
    assert "half_dot" in functions(kernel_for(AVX2, 8, 16, 64).nest)
    assert "half_dot" not in functions(kernel_for(VNNI, 8, 16, 64).nest)


@pytest.mark.parametrize(
    ("rows", "terms", "columns"),
    [(1, 64, 40), (1, 7, 96), (2, 33, 17), (6, 768, 64), (16, 66, 40), (40, 34, 24), (67, 35, 51), (128, 96, 80)],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_for_avx2_are_those_of_numpy(rows: int, terms: int, columns: int, threads: int) -> None:
    kernel = kernel_for(AVX2, rows, terms, columns, threads)
    x, w = drawn(rows, terms, columns)
    (y,) = kernel(*kernel.call_inputs((x, w)))
    assert np.array_equal(y, expected(x, w))


@needs_avx2
@pytest.mark.parametrize("rows", [1, 40])
def test_the_text_for_avx2_is_that_of_numpy(rows: int) -> None:
    nest = kernel_for(AVX2, rows, 35, 40).whole_nest
    x, w = drawn(rows, 35, 40)
    y = np.zeros((rows, 40), np.int32)
    run_on(AVX2, nest, x, w, y, *spaces(nest))
    assert np.array_equal(y, expected(x, w))
    text = emit_for(nest, AVX2)
    assert "llvm.x86.avx2.pmadd.wd" in text
    assert "sext <16 x i8>" in text, "one instruction makes halves of the bytes of a vector"


@pytest.mark.parametrize("rows", [1, 5, 64])
def test_any_number_of_rows_is_right(rows: int) -> None:
    kernel = kernel_for(AVX2, sym("M"), 35, 40)
    assert "half_dot" in functions(kernel.nest)
    x, w = drawn(rows, 35, 40)
    (y,) = kernel(*kernel.call_inputs((x, w)))
    assert np.array_equal(y, expected(x, w))


@pytest.mark.parametrize(("rows", "terms", "columns"), [(1, 9, 40), (64, 64, 48), (35, 33, 17)])
def test_columns_that_calls_decide_are_right(rows: int, terms: int, columns: int) -> None:
    kernel = compile(product_kernel(rows, terms, columns), plan=Plan(cpu=sizes_for(AVX2)))
    x, w = drawn(rows, terms, columns)
    (y,) = kernel(x, w)
    assert np.array_equal(y, expected(x, w))


def test_sums_beyond_int32_are_those_modulo_two_to_the_32() -> None:
    terms = 70_001
    kernel = kernel_for(AVX2, 2, terms, 16)
    x, w = drawn(2, terms, 16)
    assert 255 * -128 * terms < -(2**31)
    (y,) = kernel(*kernel.call_inputs((x, w)))
    assert np.array_equal(y, expected(x, w))


@pytest.mark.parametrize("rows", [1, 64])
def test_weights_stay_one_byte_each(rows: int) -> None:
    preparation = kernel_for(AVX2, rows, 96, 48).nest.preparation
    assert preparation is not None
    made = [each for each in preparation.buffers if each.space is Space.OUTPUT]
    assert {each.dtype for each in made} == {UINT16}
    assert sum(prod(dim for dim in each.shape if isinstance(dim, int)) for each in made) == 96 // 2 * 48


def test_one_row_adds_each_vector_to_its_sum() -> None:
    nest = kernel_for(AVX2, 1, 256, 48).nest
    assert sum(each == "half_dot" for each in functions(nest)) == 1
    assert not any(isinstance(part, Let) and part.name.startswith("m") for part in statements(nest.body))


@pytest.mark.parametrize("rows", [*range(1, 20), 64, 98, 128, 3136])
@pytest.mark.parametrize("whole", [False, True])
def test_blocks_leave_a_register_for_products_that_wait(rows: int, whole: bool) -> None:
    count, columns = block_for(rows, 768, BlockRules(PAIRED, whole=whole, waiting=1))
    vectors = columns // PAIRED.lanes
    assert count * vectors + vectors + 2 <= PAIRED.registers


def test_products_that_wait_are_in_no_chain() -> None:
    """8 sums are enough, where multiplications with addition would wait for each other and 2 x 32 be as good."""
    assert block_for(64, 768, BlockRules(PAIRED, whole=True, waiting=1)) == (4, 16)


def test_a_kernel_for_avx2_has_such_blocks() -> None:
    assert "4 x 24" in kernel_for(VNNI, 64, 64, 96).stages["plan"]
    assert "3 x 24" in kernel_for(AVX2, 64, 64, 96).stages["plan"]


def test_a_dot_of_halves_is_that_of_their_products() -> None:
    left, right = np.array([0x00FF00FF], np.int32), np.array([0x7FFFFF80], np.int32)
    assert SCALARS["half_dot"].numpy(left, right) == 255 * 0x7FFF + 255 * -128
    assert SCALARS["half_dot"].numpy(np.int32(-1), np.int32(2)) == -1 * 2 + -1 * 0
    assert SCALARS["byte_halves"].numpy(np.array([0x80FF], np.uint16)) == (-128 << 16) | 0xFFFF
