"""Sums down columns keep the loop along their results inside, whatever is computed of them afterwards."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.vocabulary import WORDS
from kernelgen.nest.nodes import For, LoopKind, Var
from kernelgen.nest.walk import loads_of, statements
from kernelgen.plan import Plan
from kernelgen.poly.build_scop import to_scop
from kernelgen.poly.model.scop import Scop
from kernelgen.stages import DESC_STAGES, SCOP_STAGES, lower
from kernelgen.tensor.dims import Dim, sym
from kernelgen.tensor.text import parse


def activated(*shape: Dim, axis: int = 1) -> KernelDesc:
    """``tanh`` of sums along an axis."""
    w, x = Writer(), tensor("x", *shape)
    kept = tuple(extent for place, extent in enumerate(shape) if place != axis)
    return w.desc(
        "activated", (x,), w.op("Tanh", w.op("ReduceSum", x, shape=kept, axis=(axis,), keep_dims=False), shape=kept)
    )


def normalised(*shape: Dim) -> KernelDesc:
    """Columns less their greatest."""
    w, x = Writer(), tensor("x", *shape)
    one = (shape[0], 1, shape[2])
    return w.desc("less", (x,), w.op("Sub", x, w.op("ReduceMax", x, shape=one, axis=(1,), keep_dims=True), shape=shape))


def walks_rows(kernel: KernelDesc, operand: int = 0) -> bool:
    """Whether vectors of the kernel's operand of this number are single loads: along its last dim."""
    nest = lower(kernel, Plan()).nest
    vectors = [part for part in statements(nest.body) if isinstance(part, For) and part.kind is LoopKind.VECTOR]
    places = [
        (loop.var, load.index[-1])
        for loop in vectors
        for inner in statements(loop.body)
        for load in loads_of(inner)
        if load.buffer == nest.buffers[operand]
    ]
    assert places
    return all(place == Var(var) for var, place in places)


@pytest.mark.parametrize(
    "desc",
    [
        activated(3, 40, 64), activated(3, 40, 16), activated(sym("n"), sym("t"), sym("c")), activated(2, 3, 40, 64, axis=2),
        activated(40, 64, axis=0), activated(3, 40, 64, axis=2), normalised(3, 40, 64), normalised(3, sym("t"), 64),
    ],
    ids=["known", "one vector", "open", "two outside", "nothing outside", "rows", "read twice", "read twice, open"],
)  # fmt: skip
def test_vectors_lie_along_what_is_read(desc: KernelDesc) -> None:
    assert walks_rows(desc)


def test_fewer_results_than_lanes_are_taken_along_their_terms() -> None:
    assert not walks_rows(activated(3, 40, 8))


def test_what_is_read_the_other_way_round_is_taken_along_its_terms() -> None:
    """The terms of a sum lie together where its operand is transposed first."""
    w, x = Writer(), tensor("x", 3, 64, 40)
    turned = w.op("Transpose", x, shape=(3, 40, 64), perm=(0, 2, 1))
    total = w.op("ReduceSum", turned, shape=(3, 64), axis=(1,), keep_dims=False)
    assert walks_rows(w.desc("turned", (x,), w.op("Tanh", total, shape=(3, 64))))


def columns_of(text: str) -> Scop:
    """The statements of a description before they are ordered, and what is known of their columns."""
    desc = KernelDesc(parse(f"graph given{text}", {word.name: word for word in WORDS}))
    for rule in DESC_STAGES:
        desc = rule.run(desc)
    scop = to_scop(desc)
    for stage in SCOP_STAGES:
        scop = stage.on(scop, Plan())
    return scop


def handed(*, keys: Dim = 40, width: Dim = 64) -> KernelDesc:
    """``tanh`` of a row of weights times the values of each head: what a token that is decoded asks of those before it."""
    w, weights, values = Writer(), tensor("weights", 3, 1, keys), tensor("values", 3, keys, width)
    y = w.op("BatchMatMul", weights, values, shape=(3, 1, width), transpose_a=False, transpose_b=False)
    return w.desc("handed", (weights, values), w.op("Tanh", y, shape=(3, 1, width)))


@pytest.mark.parametrize("sizes", [{}, {"keys": sym("t")}, {"width": sym("c")}, {"width": 16}])
def test_a_row_times_a_matrix_goes_down_its_columns(sizes: dict[str, Dim]) -> None:
    """None gathers one element of each of the matrix's rows."""
    assert walks_rows(handed(**sizes), operand=1)


@pytest.mark.parametrize("keys", [1, 7, 40, 129])
@pytest.mark.parametrize("width", [3, 16, 64, 70])
def test_rows_times_matrices_are_right(keys: int, width: int) -> None:
    weights, values = (
        np.random.default_rng(keys).random(shape, np.float32) for shape in ((3, 1, keys), (3, keys, width))
    )
    wanted = np.tanh(weights.astype(np.float64) @ values)
    for desc in (handed(keys=keys, width=width), handed(keys=sym("t"), width=sym("c"))):
        np.testing.assert_allclose(kernelgen.compile(desc)(weights, values)[0], wanted, rtol=1e-5)


SUMS = {
    "of a row times a matrix": """(x: f32[40], z: f32[40, 64]) {
      one: f32[1, 40] = Reshape(x, shape=(1, 40))
      y: f32[1, 64] = MatMul(one, z, transpose_a=False, transpose_b=False)""",
    "of columns": """(x: f32[3, 40, 64]) {
      y: f32[3, 64] = ReduceSum(x, axis=(1,), keep_dims=False)""",
    "of a row's own number": """(x: f32[40, 64], rows: f32[40, 1]) {
      some: f32[40, 64] = Maximum(x, rows)
      y: f32[64] = ReduceSum(some, axis=(0,), keep_dims=False)""",
    "of a table that lies across": """(x: f32[3, 40, 64], table: f32[64, 3]) {
      turned: f32[3, 64] = Transpose(table, perm=(1, 0))
      beside: f32[3, 1, 64] = Reshape(turned, shape=(3, 1, 64))
      some: f32[3, 40, 64] = Maximum(x, beside)
      y: f32[3, 64] = ReduceSum(some, axis=(1,), keep_dims=False)""",
}
OTHERS = {
    "a row times a matrix that lies across": """(x: f32[40], z: f32[64, 40]) {
      one: f32[1, 40] = Reshape(x, shape=(1, 40))
      y: f32[1, 64] = MatMul(one, z, transpose_a=False, transpose_b=True)""",
    "two rows times a matrix": """(x: f32[2, 40], z: f32[40, 64]) {
      y: f32[2, 64] = MatMul(x, z, transpose_a=False, transpose_b=False)""",
    "rows": """(x: f32[3, 40, 64]) {
      y: f32[3, 40] = ReduceSum(x, axis=(2,), keep_dims=False)""",
    "a product": """(x: f32[40, 30, 1], z: f32[40, 1, 64]) {
      terms: f32[40, 30, 64] = Mul(x, z)
      y: f32[30, 64] = ReduceSum(terms, axis=(0,), keep_dims=False)""",
    "two that lie across each other": """(x: f32[3, 40, 64], z: f32[3, 64, 40]) {
      turned: f32[3, 40, 64] = Transpose(z, perm=(0, 2, 1))
      both: f32[3, 40, 64] = Add(x, turned)
      y: f32[3, 64] = ReduceSum(both, axis=(1,), keep_dims=False)""",
    "across": """(x: f32[3, 64, 40]) {
      turned: f32[3, 40, 64] = Transpose(x, perm=(0, 2, 1))
      y: f32[3, 64] = ReduceSum(turned, axis=(1,), keep_dims=False)""",
    "no rows": """(x: f32[40, 1], z: f32[1, 64]) {
      some: f32[40, 64] = Maximum(x, z)
      y: f32[64] = ReduceSum(some, axis=(0,), keep_dims=False)""",
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_rows_of_columns_are_known(name: str) -> None:
    assert columns_of(f"{SUMS[name]}\n return y = y\n}}").columns


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_else_is(name: str) -> None:
    assert not columns_of(f"{OTHERS[name]}\n return y = y\n}}").columns


def test_of_a_sum_in_blocks_only_that_of_the_blocks_is() -> None:
    scop = columns_of("""(x: f32[100000, 64]) {
      y: f32[64] = ReduceSum(x, axis=(0,), keep_dims=False)
      return y = y
    }""")
    blocked = {each.name for each in scop.statements if any(it.blocks for it in each.iterators)}
    assert blocked
    assert scop.columns == {each.name for each in scop.statements} - blocked


@pytest.mark.parametrize("extents", [(3, 40, 64), (1, 1, 1), (2, 7, 33), (4, 1, 70), (1, 50, 5)])
def test_sums_of_any_extents_are_right(extents: tuple[int, int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(extents).astype(np.float32)
    for rows in (activated(sym("n"), sym("t"), sym("c")), activated(*extents)):
        (found,) = kernelgen.compile(rows)(x)
        np.testing.assert_allclose(found, np.tanh(x.sum(1, dtype=np.float64)), rtol=1e-5, atol=1e-6)
    for rows in (normalised(sym("n"), sym("t"), sym("c")), normalised(*extents)):
        np.testing.assert_array_equal(kernelgen.compile(rows)(x)[0], x - x.max(1, keepdims=True))
