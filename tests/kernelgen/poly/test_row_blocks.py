"""Rows that one product hands on to another in blocks: which share loops, what stays of temporaries, and that numbers stay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernel_examples import Writer, constant, tensor

import kernelgen
from kernelgen.checker import check
from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.nest.nodes import Alloc, For, LoopKind, Space, Var
from kernelgen.nest.walk import accesses_of, loads_of, statements
from kernelgen.plan import CpuPlan, Plan
from kernelgen.stages import lower
from kernelgen.tensor.dims import Dim, sym

HEADS, SIZE, ROWS = 2, 16, 16


def product(w: Writer, a: Tensor, b: Tensor, shape: tuple[Dim, ...], transpose_b: bool = False) -> Tensor:
    name = "MatMul" if len(shape) == 2 else "BatchMatMul"
    return w.op(name, a, b, shape=shape, transpose_a=False, transpose_b=transpose_b)


SMALL = Plan(CpuPlan(handed=ROWS))


def attention(rows: Dim, keys: Dim, batch: tuple[Dim, ...] = (HEADS,), turned: bool = False) -> KernelDesc:
    """``softmax(q @ k.T * 0.25) @ v``; where ``turned``, keys lie as the product reads them, and heads meet in the result."""
    w = Writer()
    q, v = tensor("q", *batch, rows, SIZE), tensor("v", *batch, keys, SIZE)
    k = tensor("k", *batch, SIZE, keys) if turned else tensor("k", *batch, keys, SIZE)
    full, row = (*batch, rows, keys), (*batch, rows, 1)
    scores = w.op("Mul", product(w, q, k, full, transpose_b=not turned), constant(0.25), shape=full)
    last = (len(full) - 1,)
    top = w.op("ReduceMax", scores, shape=row, axis=last, keep_dims=True)
    e = w.op("Exp", w.op("Sub", scores, top, shape=full), shape=full)
    weights = w.op("RealDiv", e, w.op("ReduceSum", e, shape=row, axis=last, keep_dims=True), shape=full)
    result = product(w, weights, v, (*batch, rows, SIZE))
    if turned:
        result = w.op("Transpose", result, shape=(rows, *batch, SIZE), perm=(1, 0, 2))
    return w.desc("attention", (q, k, v), result)


def arrays(rows: int, keys: int, turned: bool = False) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = ((HEADS, rows, SIZE), (HEADS, SIZE, keys) if turned else (HEADS, keys, SIZE), (HEADS, keys, SIZE))
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def expected(given: list[np.ndarray], turned: bool = False) -> np.ndarray:
    q, k, v = given
    scores = q.astype(np.float64) @ (k if turned else k.swapaxes(1, 2)) * 0.25
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    result = powers / powers.sum(-1, keepdims=True) @ v
    return result.transpose(1, 0, 2) if turned else result


@pytest.mark.parametrize("turned", [False, True], ids=["keys as rows", "keys turned"])
@pytest.mark.parametrize(("rows", "keys"), [(16, 24), (37, 33), (64, 40), (49, 49), (1, 20)])
def test_every_number_of_rows_gives_the_numbers_and_needs_no_memory(rows: int, keys: int, turned: bool) -> None:
    desc = attention(rows, keys, turned=turned)
    kernel = kernelgen.compile(desc, "cpu", SMALL)
    given = arrays(rows, keys, turned)
    np.testing.assert_allclose(kernel(*given)[0], expected(given, turned), rtol=2e-5, atol=2e-6)
    nest = kernel.lowered.nest
    assert not [buffer for buffer in nest.buffers if buffer.space is Space.WORKSPACE]
    assert check(nest, desc).fault is None


@pytest.mark.parametrize(("rows", "along_terms"), [(2, True), (3, True), (7, True), (16, False), (24, False)])
def test_few_rows_take_keys_as_they_lie(rows: int, along_terms: bool) -> None:
    """Of more rows a panel turns the keys round, which alone reads across them."""
    kernel = kernelgen.compile(attention(rows, 40), "cpu", Plan(CpuPlan()))
    nest = kernel.lowered.nest
    (keys,) = (buffer for buffer in nest.buffers if buffer.name == "k")
    turned = [part for part in statements(nest.body) if isinstance(part, For) and part.kind is LoopKind.INTERLEAVE]
    vectors = [part for part in statements(nest.body) if isinstance(part, For) and part.kind is LoopKind.VECTOR]
    across = [
        loop.var
        for loop in vectors
        for part in statements(loop.body)
        for load in loads_of(part)
        if load.buffer == keys and load.index[-1] != Var(loop.var)
    ]
    assert bool(turned) is not along_terms
    assert bool(across) is not along_terms
    given = arrays(rows, 40)
    np.testing.assert_allclose(kernel(*given)[0], expected(given), rtol=2e-5, atol=2e-6)
    assert check(nest, attention(rows, 40)).fault is None


@pytest.mark.parametrize(("rows", "turned", "products"), [(2, False, 1), (2, True, 2), (24, False, 2), (24, True, 2)])
def test_blocks_share_panels_where_there_are_any(rows: int, turned: bool, products: int) -> None:
    kernel = kernelgen.compile(attention(rows, 40, turned=turned), "cpu", Plan(CpuPlan()))
    assert kernel.stages["plan"].count("in blocks of rows, which share panels") == products


def test_blocks_of_single_results_have_no_more_rows_than_there_are() -> None:
    assert (
        "2 x 4 results stay in registers" in kernelgen.compile(attention(2, 40), "cpu", Plan(CpuPlan())).stages["plan"]
    )


def test_products_with_constants_keep_all_their_rows() -> None:
    """Each block of rows would ask for all panels of the constants again."""
    nest = lower(attention(64, 40), SMALL, "cpu", frozenset({1, 2})).nest
    assert (ROWS, 40) not in [part.buffer.shape for part in statements(nest.body) if isinstance(part, Alloc)]


@pytest.mark.parametrize(("rows", "block"), [(64, ROWS), (67, 24)], ids=["whole tiles", "rows below them"])
def test_of_what_is_handed_on_one_block_is_held(rows: int, block: int) -> None:
    nest = lower(attention(rows, 40), SMALL, "cpu").nest
    held = [part.buffer.shape for part in statements(nest.body) if isinstance(part, Alloc)]
    assert (rows, 40) not in held
    assert (block, 40) in held


def test_rows_that_are_computed_are_computed_once_for_all_columns() -> None:
    w = Writer()
    q, k, v = tensor("q", HEADS, 64, SIZE), tensor("k", HEADS, 40, SIZE), tensor("v", HEADS, 40, SIZE)
    scaled = w.op("Mul", q, constant(0.25), shape=(HEADS, 64, SIZE))
    scores = w.op("Exp", product(w, scaled, k, (HEADS, 64, 40), transpose_b=True), shape=(HEADS, 64, 40))
    desc = w.desc("scaled", (q, k, v), product(w, scores, v, (HEADS, 64, SIZE)))
    nest = lower(desc, SMALL, "cpu").nest
    held = [part.buffer.shape for part in statements(nest.body) if isinstance(part, Alloc)]
    assert (ROWS, SIZE) in held
    assert check(nest, desc).fault is None


@pytest.mark.parametrize(("groups", "plans"), [(16, 1), (1, 2)], ids=["threads share groups", "threads share panels"])
def test_panels_are_narrower_where_threads_share_them(groups: int, plans: int) -> None:
    w = Writer()
    a, b = tensor("a", groups, 17, 64), tensor("b", groups, 64, 192)
    desc = w.desc("tiles", (a, b), product(w, a, b, (groups, 17, 192)))
    found = [kernelgen.compile(desc, plan=Plan(CpuPlan(threads=threads)), constants=[1]) for threads in (1, 2)]
    assert len({kernel.stages["plan"] for kernel in found}) == plans


@pytest.mark.parametrize("rows", [49, 196])
@pytest.mark.parametrize("threads", [1, 2])
def test_pixels_of_one_image_are_scaled_once_for_all_columns(rows: int, threads: int) -> None:
    """Factors of channels belong to no row of an image, where there is one image."""
    w = Writer()
    x, s, k = tensor("x", rows, 40), tensor("s", 1, 40), tensor("k", 40, 96)
    scaled = w.op("Mul", x, s, shape=(rows, 40))
    desc = w.desc("scaled", (x, s, k), product(w, scaled, k, (rows, 96)))
    kernel = kernelgen.compile(desc, plan=Plan(CpuPlan(threads=threads)), constants=[2])
    read = [part for part in statements(kernel.nest.body) if "x" in {buffer.name for buffer, _ in accesses_of(part)}]
    assert len(read) == 1
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(shape).astype(np.float32) for shape in ((rows, 40), (1, 40), (40, 96))]
    (found,) = kernel(*kernel.call_inputs(given))
    np.testing.assert_allclose(found, (given[0] * given[1]) @ given[2], rtol=1e-4, atol=1e-4)


def test_what_is_computed_for_all_heads_keeps_no_head_apart() -> None:
    """A mask stands in front of the loop over heads, though it is computed after the first product."""
    w = Writer()
    full, one = (HEADS, 64, 40), (1, 64, 40)
    q, k, v = tensor("q", HEADS, 64, SIZE), tensor("k", HEADS, 40, SIZE), tensor("v", HEADS, 40, SIZE)
    a, b = tensor("a", 1, 64, 1), tensor("b", 1, 1, 40)
    scores = product(w, q, k, full, transpose_b=True)
    mask = w.op("Exp", w.op("Mul", a, b, shape=one), shape=one)
    masked = w.op("Add", scores, mask, shape=full)
    top = w.op("ReduceMax", masked, shape=(HEADS, 64, 1), axis=(2,), keep_dims=True)
    powers = w.op("Exp", w.op("Sub", masked, top, shape=full), shape=full)
    desc = w.desc("masked", (q, k, v, a, b), product(w, powers, v, (HEADS, 64, SIZE)))
    nest = lower(desc, SMALL, "cpu").nest
    assert full not in [buffer.shape for buffer in nest.buffers]
    assert check(nest, desc).fault is None


def test_sizes_that_are_open_have_no_blocks_and_the_same_numbers() -> None:
    kernel = kernelgen.compile(attention(sym("S"), sym("S"), (sym("H"),)), "cpu", SMALL)
    for rows in (1, 7, 35, 64):
        given = arrays(rows, rows)
        np.testing.assert_allclose(kernel(*given)[0], expected(given), rtol=2e-5, atol=2e-6)


def products_apart(rows: int) -> KernelDesc:
    """Two products that hand nothing on to each other."""
    w = Writer()
    a, b, c = tensor("a", rows, SIZE), tensor("b", SIZE, 24), tensor("c", SIZE, 24)
    sum_ = w.op("Add", product(w, a, b, (rows, 24)), product(w, a, c, (rows, 24)), shape=(rows, 24))
    return w.desc("apart", (a, b, c), sum_)


def columns_between(rows: int) -> KernelDesc:
    """What is between the products reduces columns, of which no block of rows has all."""
    w = Writer()
    q, k, v = tensor("q", rows, SIZE), tensor("k", SIZE, 24), tensor("v", 24, SIZE)
    scores = product(w, q, k, (rows, 24))
    top = w.op("ReduceMax", scores, shape=(1, 24), axis=(0,), keep_dims=True)
    return w.desc("columns", (q, k, v), product(w, w.op("Sub", scores, top, shape=(rows, 24)), v, (rows, SIZE)))


@pytest.mark.parametrize("make", [products_apart, columns_between], ids=lambda make: make.__name__)
def test_other_products_keep_their_numbers(make: Callable[[int], KernelDesc]) -> None:
    desc = make(40)
    kernel = kernelgen.compile(desc, "cpu", SMALL)
    rng = np.random.default_rng(1)
    shapes = ((40, SIZE), (SIZE, 24), (SIZE, 24) if make is products_apart else (24, SIZE))
    given = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    a, b, c = (each.astype(np.float64) for each in given)
    wanted = a @ b + a @ c if make is products_apart else (a @ b - (a @ b).max(0)) @ c
    np.testing.assert_allclose(kernel(*given)[0], wanted, rtol=1e-4, atol=1e-4)
    assert check(kernel.lowered.nest, desc).fault is None
