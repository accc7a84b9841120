"""Loop structure on the CPU target: reductions, row kernels, guards, strides, symbols, locals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_kernels import one

from kernelgen.driver import compile
from kernelgen.native.team import RUN
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Call,
    Compare,
    If,
    IndexBinary,
    IndexOp,
    IndexValue,
    Let,
    Literal,
    Load,
    LoopKind,
    Nest,
    Num,
    Ref,
    Store,
    Var,
)
from kernelgen.nest.scalars import SCALARS
from kernelgen.targets.cpu import TARGET
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, DType, dtype
from tests.support.nests import I, J, block, buffer, call, local, loop, map_nest, output, reduce_nest, run, softmax_nest

SERIAL = LoopKind.SERIAL
COLUMNS = (1, 2, 7, 8, 9, 31, 33, 64, 100, 1000)


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def ufunc(function: str) -> np.ufunc:
    meaning = SCALARS[function].numpy
    assert isinstance(meaning, np.ufunc)
    return meaning


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("function", ["add", "mul", "maximum", "minimum"])
def test_row_reductions(function: str, columns: int) -> None:
    x, y = floats(5, columns) * 0.1 + 1, np.zeros(5, np.float32)
    run(reduce_nest(function, 5, columns), x, y)
    np.testing.assert_allclose(y, ufunc(function).reduce(x.astype(np.float64), axis=1), rtol=1e-5)


@pytest.mark.parametrize("type_", [INT32, INT64, FLOAT64, dtype("int8"), dtype("uint8")], ids=str)
@pytest.mark.parametrize("function", ["add", "maximum", "minimum"])
def test_reductions_of_other_types(function: str, type_: DType) -> None:
    x = (floats(4, 61) * 20).astype(type_.numpy)
    y = np.zeros(4, type_.numpy)
    run(reduce_nest(function, 4, 61, type_), x, y)
    expected = ufunc(function).reduce(x, axis=1, dtype=type_.numpy)
    np.testing.assert_allclose(y, expected, rtol=1e-12)


@pytest.mark.parametrize("function", ["logical_and", "logical_or"])
def test_logical_reductions(function: str) -> None:
    x = np.ones((4, 37), bool) if function == "logical_and" else np.zeros((4, 37), bool)
    x[1, 36] = x[2, 0] = not x[0, 0]
    y = np.zeros(4, bool)
    run(reduce_nest(function, 4, 37, BOOL), x, y)
    np.testing.assert_array_equal(y, ufunc(function).reduce(x, axis=1))


@pytest.mark.parametrize("function", ["maximum", "minimum"])
@pytest.mark.parametrize("position", [0, 5, 8, 36])
def test_nan_survives_reductions(function: str, position: int) -> None:
    x, y = floats(1, 37), np.zeros(1, np.float32)
    x[0, position] = np.nan
    run(reduce_nest(function, 1, 37), x, y)
    assert np.isnan(y[0])


def test_long_sums_are_added_in_blocks() -> None:
    count = 3_000_001
    x, y = np.full((1, count), np.float32(0.1)), np.zeros(1, np.float32)
    run(reduce_nest("add", 1, count), x, y)
    assert abs(y[0] / (count * float(np.float32(0.1))) - 1) < 5e-6  # in one piece: 2e-4


def test_half_sums_accumulate_in_float() -> None:
    x, y = np.full((1, 4000), np.float16(1.0)), np.zeros(1, np.float16)
    run(reduce_nest("add", 1, 4000, FLOAT16), x, y)
    assert y[0] == 4000


@pytest.mark.parametrize("columns", [5, 8, 33, 100])
def test_softmax(columns: int) -> None:
    x, y = floats(9, columns), np.zeros((9, columns), np.float32)
    run(softmax_nest(9, columns), x, y)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)


@settings(max_examples=15, deadline=None)
@given(rows=st.integers(1, 40), columns=st.integers(1, 300))
def test_symbolic_softmax(rows: int, columns: int) -> None:
    nest = softmax_nest(sym("M"), sym("N"), ("M", "N"))
    x, y = floats(rows, columns), np.zeros((rows, columns), np.float32)
    run(nest, x, y, symbols=(rows, columns))
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)


def test_column_sums_update_a_row() -> None:
    x, y = buffer("x", 6, 37), output("y", 37)
    zero = loop(J, 37, Store(y, (J,), Literal(0.0, FLOAT32)))
    rows = loop(I, 6, loop(J, 37, Accumulate(y, (J,), "add", Load(x, (I, J)))), kind=SERIAL)
    data, sums = floats(6, 37), np.zeros(37, np.float32)
    run(Nest("columns", (), (x, y), block(zero, rows)), data, sums)
    np.testing.assert_allclose(sums, data.sum(axis=0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("type_", [FLOAT32, FLOAT64, FLOAT16, BOOL, INT64], ids=str)
def test_transposed_access_gathers(type_: DType) -> None:
    x, y = buffer("x", 13, 21, dtype=type_), output("y", 21, 13, dtype=type_)
    body = block(loop(I, 21, loop(J, 13, Store(y, (I, J), Load(x, (J, I)))), kind=SERIAL))
    data, result = (floats(13, 21) * 3).astype(type_.numpy), np.zeros((21, 13), type_.numpy)
    run(Nest("transpose", (), (x, y), body), data, result)
    np.testing.assert_array_equal(result, data.T)


def test_strided_stores_scatter() -> None:
    x, y = buffer("x", 21), output("y", 42)
    body = block(loop(I, 21, Store(y, (IndexBinary(IndexOp.MUL, I, Num(2)),), Load(x, (I,)))))
    data, result = floats(21), np.zeros(42, np.float32)
    run(Nest("spread", (), (x, y), body), data, result)
    np.testing.assert_array_equal(result[::2], data)
    assert not result[1::2].any()


def test_division_in_an_index() -> None:
    x, y = buffer("x", 4, 7), output("y", 28)
    at = (IndexBinary(IndexOp.DIV, I, Num(7)), IndexBinary(IndexOp.MOD, I, Num(7)))
    data, result = floats(4, 7), np.zeros(28, np.float32)
    run(Nest("flatten", (), (x, y), block(loop(I, 28, Store(y, (I,), Load(x, at))))), data, result)
    np.testing.assert_array_equal(result, data.ravel())


@pytest.mark.parametrize("op", [IndexOp.DIV, IndexOp.MOD])
@pytest.mark.parametrize("kind", [SERIAL, LoopKind.VECTOR])
def test_index_division_rounds_down(op: IndexOp, kind: LoopKind) -> None:
    y = output("y", 21, dtype=INT64)
    shifted = IndexBinary(op, IndexBinary(IndexOp.SUB, I, Num(10)), Num(4))
    result = np.zeros(21, np.int64)
    run(Nest("index", (), (y,), block(loop(I, 21, Store(y, (I,), IndexValue(shifted, INT64)), kind=kind))), result)
    numbers = np.arange(21) - 10
    np.testing.assert_array_equal(result, numbers // 4 if op is IndexOp.DIV else numbers % 4)


@pytest.mark.parametrize("kind", [SERIAL, LoopKind.VECTOR])
def test_guards_protect_loads(kind: LoopKind) -> None:
    x, y = buffer("x", 10), output("y", 30)
    before = IndexBinary(IndexOp.SUB, I, Num(8))
    inside = (Compare("<=", Num(8), I), Compare("<", I, Num(18)))
    pad = (Store(y, (I,), Literal(-1.0, FLOAT32)), If(inside, block(Store(y, (I,), Load(x, (before,))))))
    data, result = floats(10), np.zeros(30, np.float32)
    run(Nest("pad", (), (x, y), block(loop(I, 30, *pad, kind=kind))), data, result)
    np.testing.assert_array_equal(result, np.pad(data, (8, 12), constant_values=-1))


def test_guarded_accumulation() -> None:
    x, y = buffer("x", 30), output("y")
    guarded = If((Compare("<", I, Num(17)),), block(Accumulate(y, (), "add", Load(x, (I,)))))
    data, result = floats(30), np.zeros((), np.float32)
    run(Nest("guarded", (), (x, y), block(Store(y, (), Literal(0.0, FLOAT32)), loop(I, 30, guarded))), data, result)
    np.testing.assert_allclose(result, data[:17].sum(), rtol=1e-5)


def test_bindings_and_lane_private_locals() -> None:
    x, y, t = buffer("x", 29), output("y", 29), local("t")
    body = (
        Let("a", call("mul", Load(x, (I,)), Literal(2.0, FLOAT32))),
        Alloc(t),
        Store(t, (), call("add", Ref("a", FLOAT32), Literal(1.0, FLOAT32))),
        If((Compare("<", I, Num(11)),), block(Store(t, (), Literal(5.0, FLOAT32)))),
        Accumulate(t, (), "add", Ref("a", FLOAT32)),
        Store(y, (I,), Load(t, ())),
    )
    data, result = floats(29), np.zeros(29, np.float32)
    run(Nest("private", (), (x, y), block(loop(I, 29, *body))), data, result)
    a = data * np.float32(2)
    np.testing.assert_array_equal(result, np.where(np.arange(29) < 11, np.float32(5), a + np.float32(1)) + a)


def test_invariant_values_are_computed_before_the_loop() -> None:
    x, s, y = buffer("x", 40), buffer("s", 1), output("y", 40)
    value = call("mul", Load(x, (I,)), call("exp", Load(s, (Num(0),))))
    nest = Nest("scale", (), (x, s, y), block(loop(I, 40, Store(y, (I,), value))))
    data, result = floats(40), np.zeros(40, np.float32)
    run(nest, data, np.ones(1, np.float32), result)
    np.testing.assert_allclose(result, data * np.float32(np.e), rtol=1e-6)
    before_loop = TARGET.emit(nest).split("main_body")[0]
    assert "llvm.fmuladd." in before_loop


def test_what_is_computed_before_a_loop_decides_no_lanes() -> None:
    """The index of a gathered row has eight bytes in most models, and is the same for all of the row."""

    def lanes(data: str, index: str) -> list[int]:
        kernel = compile(one("Gather", [(data, (50, 384)), (index, (20,))], [(data, (20, 384))], axis=0))
        assert kernel.plan.code
        return [vector.lanes for vector in kernel.plan.code.vectors]

    assert lanes("float32", "int64") == lanes("float32", "int32")
    assert lanes("float64", "int32") == [wide // 2 for wide in lanes("float32", "int32")]


def test_unrolled_and_stepped_loops() -> None:
    x, y = buffer("x", 12, 3), output("y", 12)
    inner = loop(J, 3, Accumulate(y, (I,), "add", Load(x, (I, J))), kind=LoopKind.UNROLL)
    outer = loop(I, 12, Store(y, (I,), Literal(0.0, FLOAT32)), inner, kind=SERIAL)
    stepped = type(outer)(outer.var, outer.lower, outer.upper, outer.body, SERIAL, 5)
    data, result = floats(12, 3), np.full(12, 9, np.float32)
    run(Nest("stepped", (), (x, y), block(stepped)), data, result)
    expected = np.full(12, 9, np.float32)
    expected[::5] = data[::5].sum(axis=1)
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_arrays_made_in_a_vector_loop_run_one_iteration_at_a_time() -> None:
    x, y, t = buffer("x", 9), output("y", 9), local("t", 2)
    body = (Alloc(t), Store(t, (Num(1),), Load(x, (I,))), Store(y, (I,), Load(t, (Num(1),))))
    data, result = floats(9), np.zeros(9, np.float32)
    run(Nest("array", (), (x, y), block(loop(I, 9, *body))), data, result)
    np.testing.assert_array_equal(result, data)


@pytest.mark.parametrize("rows", [1, 2, 3, 1000])
def test_parallel_loops(rows: int) -> None:
    x, y = floats(rows, 300), np.zeros((rows, 300), np.float32)
    nest = softmax_nest(rows, 300)
    run(nest, x, y)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
    assert (f"@{RUN}(" in TARGET.emit(nest)) == (rows == 1000)


def test_bindings_reach_parallel_regions() -> None:
    x, y = buffer("x", 400, 500), output("y", 400, 500)
    shift = Let("shift", Load(x, (Num(0), Num(0))))
    value = call("add", call("exp", Load(x, (I, J))), Ref("shift", FLOAT32))
    rows = loop(I, 400, loop(J, 500, Store(y, (I, J), value)), kind=LoopKind.PARALLEL)
    data, result = floats(400, 500), np.zeros((400, 500), np.float32)
    run(Nest("shifted", (), (x, y), block(shift, rows)), data, result)
    np.testing.assert_allclose(result, np.exp(data) + data[0, 0], rtol=1e-4, atol=1e-5)


def test_emission_is_deterministic() -> None:
    nest = softmax_nest(sym("M"), sym("N"), ("M", "N"))
    assert TARGET.emit(nest) == TARGET.emit(nest)


def test_a_cast_to_float_widens_the_index() -> None:
    y = output("y", 20)
    body = block(loop(I, 20, Store(y, (I,), Call("cast", (IndexValue(Var("i"), INT32),), FLOAT32))))
    result = np.zeros(20, np.float32)
    run(Nest("range", (), (y,), body), result)
    np.testing.assert_array_equal(result, np.arange(20, dtype=np.float32))


@settings(max_examples=20, deadline=None)
@given(extent=st.integers(1, 200), seed=st.integers(0, 1000))
def test_symbolic_maps(extent: int, seed: int) -> None:
    nest = map_nest(lambda a, b: call("maximum", call("mul", a, b), b), sym("N"), FLOAT32, FLOAT32, symbols=("N",))
    x, y, z = floats(extent, seed=seed), floats(extent, seed=seed + 1), np.zeros(extent, np.float32)
    run(nest, x, y, z, symbols=(extent,))
    np.testing.assert_array_equal(z, np.maximum(x * y, y))
