"""From description to nest: what the shape of the loops is, and that the plain-Python target computes the meaning."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import (
    Writer,
    assigned_twice,
    column_sum,
    crossed_reshape,
    empty_reshape,
    empty_sum,
    exchange,
    half_sum,
    layer_norm,
    momentum,
    own_transpose,
    softmax,
    split_reshape,
    tensor,
    transpose_add,
    two_phase_branches,
    two_rows_minimum,
)
from operator_kernels import one

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import For, LoopKind, Nest, Space, Store
from kernelgen.nest.walk import statements
from kernelgen.plan import CpuPlan
from kernelgen.poly.build_scop import to_scop
from kernelgen.poly.grouping.fold_axes import fold
from kernelgen.poly.grouping.merge_groups import group
from kernelgen.tensor.dims import Dim, Shape, evaluate, product, sym
from kernelgen.tensor.dtypes import FLOAT32, INT32

SIZES = {"M": 5, "N": 9}
F = "float32"


def draw(desc: KernelDesc, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = [[evaluate(d, SIZES) for d in t.shape] for t in desc.inputs]
    return [rng.normal(size=s).astype(t.dtype.numpy) for s, t in zip(shapes, desc.inputs, strict=True)]


def loops(nest: Nest) -> list[For]:
    return [s for s in statements(nest.body) if isinstance(s, For)]


def turned_numbers(rows: Dim, columns: Dim) -> KernelDesc:
    """Random numbers whose first two axes stay neighbours while the last one goes to the front."""
    w, shape = Writer(), (columns, rows, 4)
    x = tensor("x", *shape)
    numbers = w.op("StandardNormal", shape=(rows, 4, columns), dtype=FLOAT32, seed=2**33 + 5)
    turned = w.op("Transpose", numbers, shape=shape, perm=(2, 0, 1))
    return w.desc("turned_numbers", (x,), w.op("Add", turned, x, shape=shape))


EVERY = [
    softmax(), softmax(sym("M"), sym("N")), layer_norm(), layer_norm(sym("M")), column_sum(7, 2100),
    column_sum(sym("M"), 40), transpose_add(), own_transpose(), split_reshape(), split_reshape(sym("M")),
    crossed_reshape(), two_phase_branches(), momentum(), half_sum(), empty_sum(),
    two_rows_minimum(), assigned_twice(), exchange(), empty_reshape(),
    turned_numbers(3, 7), turned_numbers(sym("M"), sym("N")),
]  # fmt: skip


@pytest.mark.parametrize("desc", EVERY, ids=lambda d: f"{d.name}-{'-'.join(d.symbols) or 'static'}")
def test_python_target_computes_the_meaning(desc: KernelDesc) -> None:
    ours, theirs = draw(desc), draw(desc)
    results = compile(desc, target="python")(*ours)
    expected = kernelgen.reference(desc)(*theirs)
    for got, want in zip([*results, *ours], [*expected, *theirs], strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(
            got.astype("f8"), want.astype("f8"), rtol=2e-3 if got.dtype == np.float16 else 1e-5, atol=1e-6
        )


def test_softmax_is_one_row_loop_with_three_phases_and_a_row_buffer() -> None:
    nest = compile(softmax(), "python").nest
    outer = [s for s in nest.body.statements if isinstance(s, For)]
    assert [loop.kind for loop in outer] == [LoopKind.PARALLEL]
    inner = [loop for loop in loops(nest) if loop is not outer[0]]
    assert [loop.kind for loop in inner] == [LoopKind.VECTOR] * 3
    assert not [b for b in nest.buffers if b.space is Space.WORKSPACE]


def test_symbolic_softmax_has_the_same_loops() -> None:
    kinds = [loop.kind for loop in loops(compile(softmax(sym("M"), sym("N")), "python").nest)]
    assert kinds == [LoopKind.PARALLEL, *[LoopKind.VECTOR] * 3]


def test_elementwise_dims_fold_into_one_loop() -> None:
    scop = fold(to_scop(split_reshape()))
    assert all(len(s.iterators) == 3 for s in scop.statements)  # rows, 4, and 2*3 folded
    assert {it.extent for s in scop.statements for it in s.iterators} == {5, 4, 6}


@pytest.mark.parametrize("shape", [(4, 33, 8), (sym("M"), 3, sym("N")), (2, sym("M"))], ids=str)
def test_random_numbers_are_counted_by_one_loop(shape: Shape) -> None:
    w, x = Writer(), tensor("x", *shape)
    numbers = w.op("StandardNormal", shape=shape, dtype=FLOAT32, seed=5)
    scop = fold(to_scop(w.desc("numbers", (x,), w.op("Add", numbers, x, shape=shape))))
    assert {it.extent for s in scop.statements for it in s.iterators} == {product(shape)}


def test_of_turned_random_numbers_neighbours_share_a_loop() -> None:
    for rows, columns in ((3, 7), (sym("M"), sym("N"))):
        scop = fold(to_scop(turned_numbers(rows, columns)))
        assert {tuple(it.extent for it in s.iterators) for s in scop.statements} == {
            (rows * 4, columns), (columns, rows * 4)
        }  # fmt: skip


def test_an_axis_that_is_counted_alone_keeps_its_loop() -> None:
    """The place of a row's greatest element is a number of one axis, not of a run."""
    w, x = Writer(), tensor("x", 5, 4, 6)
    scop = fold(to_scop(w.desc("place", (x,), w.op("Argmax", x, shape=(5, 6), dtype=INT32, axis=1))))
    assert {len(s.iterators) for s in scop.statements} <= {2, 3}
    assert {4} < {it.extent for s in scop.statements for it in s.iterators}


def test_column_sum_keeps_partial_sums_in_a_strip() -> None:
    kinds = [(loop.var, loop.kind, loop.step) for loop in loops(compile(column_sum(), "python").nest)]
    assert ("c0", LoopKind.PARALLEL, CpuPlan().strip) in kinds
    assert kinds[-1][1] is LoopKind.VECTOR


def test_row_and_column_reductions_do_not_share_loops() -> None:
    nest = compile(two_phase_branches(), "python").nest
    assert len([s for s in nest.body.statements if isinstance(s, For) and s.kind is not LoopKind.VECTOR]) == 2


def test_grouping_leaves_one_statement_per_phase() -> None:
    assert len(group(fold(to_scop(softmax()))).statements) == 3


@pytest.mark.parametrize(("shapes", "axis"), [
    (((4, 128, 64), (4, 1, 64)), 1), (((1, 3, 40), (1, 5, 40)), 1), (((6, 8, 9, 16), (6, 8, 1, 16)), 2),
    (((7, 1, 33), (7, 20, 33), (7, 2, 33)), 1), (((5, 48), (1, 48)), 0),
])  # fmt: skip
def test_the_parts_of_a_concatenation_are_copied_as_they_lie(shapes: tuple[tuple[int, ...], ...], axis: int) -> None:
    whole = list(shapes[0])
    whole[axis] = sum(shape[axis] for shape in shapes)
    vectors = [
        loop for loop in loops(compile(one("Concat", [(F, s) for s in shapes], [(F, tuple(whole))], axis=axis)).nest)
        if loop.kind is LoopKind.VECTOR
    ]  # fmt: skip
    stores = [(loop, part) for loop in vectors for part in loop.body.statements if isinstance(part, Store)]
    assert len(stores) == len(shapes)
    assert all(ix.stride(part.index[-1], loop.var) == 1 for loop, part in stores)


def test_reading_and_writing_one_buffer_in_place_keeps_the_old_value() -> None:
    p, m, g = draw(momentum())
    before = p.copy()
    _, old = compile(momentum(), "python")(p, m, g)
    np.testing.assert_array_equal(old, before)
    assert not np.array_equal(p, before)
