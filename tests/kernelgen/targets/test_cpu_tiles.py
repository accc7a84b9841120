"""Interleaved loops on the CPU target: every extent, type, processor and kind of transposed access gives exact answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kernel_examples import own_transpose

import kernelgen
from kernelgen.nest.nodes import (
    Accumulate,
    Block,
    Compare,
    For,
    If,
    Let,
    Load,
    LoopKind,
    Nest,
    Ref,
    Space,
    Statement,
    Store,
)
from kernelgen.targets.cpu import TARGET
from kernelgen.targets.cpu.emit import emit_for
from kernelgen.targets.cpu.loops import streaming
from kernelgen.targets.cpu.loops.tile_plan import TilePlan, tile_plan
from kernelgen.targets.cpu.runtime.entry import ENTRY, entry_of
from kernelgen.targets.cpu.runtime.llvm import compile_object, detect_host, link
from kernelgen.targets.cpu.runtime.team import team
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dims import Dim, sym
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, DType, dtype
from tests.support.nests import I, J, block, buffer, call, loop, output, run

EXTENTS = (1, 7, 8, 9, 31, 33, 64, 100)
TYPES = (FLOAT32, FLOAT64, FLOAT16, BFLOAT16, BOOL, *map(dtype, ("int8", "int16", "int32", "int64", "uint8")))
HOSTS = {
    "avx2": Host("x86-64-v3", frozenset(("avx", "avx2", "fma", "f16c", "sse4.1"))),
    "sse4": Host("x86-64-v2", frozenset(("sse4.1",))),
    "plain": Host("x86-64", frozenset()),
}
is_avx2 = "avx2" in detect_host().features


def interleaved(rows: Dim, columns: Dim, *body: Statement, before: tuple[Statement, ...] = ()) -> For:
    return loop(I, rows, *before, loop(J, columns, *body), kind=LoopKind.INTERLEAVE)


def copy_nest(rows: Dim, columns: Dim, type_: DType, symbols: tuple[str, ...] = ()) -> Nest:
    """``y[i, j] = x[j, i]``."""
    x, y = buffer("x", columns, rows, dtype=type_), output("y", rows, columns, dtype=type_)
    return Nest("copy", symbols, (x, y), block(interleaved(rows, columns, Store(y, (I, J), Load(x, (J, I))))))


def values(*shape: int, type_: DType = FLOAT32) -> np.ndarray:
    numbers = np.random.default_rng(len(shape)).integers(-100, 100, shape)
    return (numbers > 0 if type_ == BOOL else numbers).astype(type_.numpy)


def guarded_output(*shape: int, type_: DType = FLOAT32) -> tuple[np.ndarray, np.ndarray]:
    """An array inside a larger one of ones, to see stores outside of it."""
    room = np.ones(int(np.prod(shape)) + 128, type_.numpy)
    return room[64:-64].reshape(shape), room


@pytest.mark.parametrize("columns", EXTENTS)
@pytest.mark.parametrize("rows", EXTENTS)
def test_every_extent(rows: int, columns: int) -> None:
    x, (y, room) = values(columns, rows), guarded_output(rows, columns)
    run(copy_nest(rows, columns, FLOAT32), x, y)
    np.testing.assert_array_equal(y, x.T)
    assert (room[:64] == 1).all()
    assert (room[-64:] == 1).all()


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize(("rows", "columns"), [(33, 50), (16, 64), (5, 4)])
def test_every_type(type_: DType, rows: int, columns: int) -> None:
    x, (y, room) = values(columns, rows, type_=type_), guarded_output(rows, columns, type_=type_)
    run(copy_nest(rows, columns, type_), x, y)
    np.testing.assert_array_equal(y, x.T)
    assert (room[:64] == 1).all()
    assert (room[-64:] == 1).all()


@pytest.mark.skipif(not is_avx2, reason="older processors can only be stood in for by an x86-64 one with AVX2")
@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("host", HOSTS)
def test_older_processors(host: str, type_: DType) -> None:
    x, y = values(37, 41, type_=type_), np.zeros((41, 37), type_.numpy)
    nest = copy_nest(41, 37, type_)
    image = compile_object(emit_for(nest, HOSTS[host]), HOSTS[host])
    entry_of(nest, link(image, (ENTRY,), team().functions))((x, y))
    np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize("extents", [(1, 1), (15, 70), (64, 16), (33, 100)])
def test_symbolic_extents(extents: tuple[int, int]) -> None:
    x, y = values(*extents[::-1]), np.zeros(extents, np.float32)
    run(copy_nest(sym("M"), sym("N"), FLOAT32, ("M", "N")), x, y, symbols=extents)
    np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize("type_", [FLOAT32, FLOAT16, BOOL], ids=str)
@pytest.mark.parametrize(("rows", "columns"), [(33, 50), (64, 32)])
def test_transposed_stores(type_: DType, rows: int, columns: int) -> None:
    x = buffer("x", rows, columns, dtype=type_)
    y, z = output("y", rows, columns, dtype=type_), output("z", columns, rows, dtype=type_)
    both = interleaved(rows, columns, Store(y, (I, J), Load(x, (I, J))), Store(z, (J, I), Load(x, (I, J))))
    data = values(rows, columns, type_=type_)
    first, second = np.zeros_like(data), np.zeros_like(data.T, order="C")
    run(Nest("both", (), (x, y, z), block(both)), data, first, second)
    np.testing.assert_array_equal(first, data)
    np.testing.assert_array_equal(second, data.T)


@pytest.mark.parametrize("function", ["neg", "exp"])
def test_bindings_of_the_outer_loop_and_bodies_of_every_cost(function: str) -> None:
    x, b, c, y = buffer("x", 45, 70), buffer("b", 70), buffer("c", 45), output("y", 70, 45)
    a = Let("a", call(function, Load(b, (I,))))
    value = call("add", call(function, Load(x, (J, I))), call("mul", Ref("a", FLOAT32), Load(c, (J,))))
    nest = Nest("bound", (), (x, b, c, y), block(interleaved(70, 45, Store(y, (I, J), value), before=(a,))))
    left, row, column, got = values(45, 70) / 50, values(70) / 50, values(45), np.zeros((70, 45), np.float32)
    left, row = left.astype(np.float32), row.astype(np.float32)
    run(nest, left, row, column, got)
    apply = {"neg": np.negative, "exp": np.exp}[function]
    np.testing.assert_allclose(got, apply(left).T + apply(row)[:, None] * column, rtol=1e-5, atol=1e-5)


def test_guards_accumulations_and_repeated_stores_stay_as_they_are() -> None:
    x, y, z = buffer("x", 40, 50), replace(output("y", 50, 40), space=Space.INOUT), output("z", 40, 50)
    guarded = If((Compare("<", J, I),), Block((Store(z, (J, I), Load(x, (J, I))),)))
    body = interleaved(
        50, 40, Store(z, (J, I), call("neg", Load(x, (J, I)))), guarded, Accumulate(y, (I, J), "add", Load(x, (J, I)))
    )
    data, sums, signs = values(40, 50), np.ones((50, 40), np.float32), np.zeros((40, 50), np.float32)
    run(Nest("mixed", (), (x, y, z), block(body)), data, sums, signs)
    np.testing.assert_array_equal(sums, data.T + 1)
    above = np.arange(40)[:, None] < np.arange(50)
    np.testing.assert_array_equal(signs, np.where(above, data, -data))


@pytest.mark.parametrize("shift", [0, 4, 15])
@pytest.mark.parametrize("columns", [64, 80, 100])
def test_streamed_tiles(shift: int, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "MIN_STREAMED_BYTES", 0)
    monkeypatch.setattr(streaming, "MIN_MOVED_BYTES", 0)
    x, room = values(columns, 35), np.full(35 * columns + 64, 7, np.float32)
    start = -room.ctypes.data % 64 // 4 + shift
    y = room[start : start + 35 * columns].reshape(35, columns)
    nest = copy_nest(35, columns, FLOAT32)
    run(nest, x, y)
    is_whole_line = detect_host().vector_bytes == 64 and columns * 4 % 64 == 0
    assert ("!nontemporal" in TARGET.emit(nest)) == is_whole_line
    np.testing.assert_array_equal(y, x.T)
    assert (room[:start] == 7).all()
    assert (room[start + y.size :] == 7).all()


@pytest.mark.skipif(detect_host().vector_bytes < 16, reason="no vectors")
def test_plans_say_why_not() -> None:
    x, y, host = buffer("x", 64, 64), output("y", 64, 64), detect_host()
    plan = tile_plan(interleaved(64, 64, Store(y, (I, J), Load(x, (J, I)))), host)
    assert isinstance(plan, TilePlan)
    assert plan.loads == (Load(x, (J, I)),)
    assert tile_plan(interleaved(64, 64, Store(y, (I, J), Load(x, (I, J)))), host) == "no access is transposed"
    assert tile_plan(interleaved(3, 64, Store(y, (I, J), Load(x, (J, I)))), host) == "the loops are too short"
    triangle = loop(I, 64, loop(J, 64, Store(y, (I, J), Load(x, (J, I))), lower=I), kind=LoopKind.INTERLEAVE)
    assert tile_plan(triangle, host) == "the loops are no rectangle"
    in_place = interleaved(64, 64, Store(y, (I, J), Load(y, (J, I))))
    assert tile_plan(in_place, host) == "no access is transposed"


def test_tiles_need_no_gathers() -> None:
    text = TARGET.emit(copy_nest(64, 64, FLOAT32))
    assert "gather" not in text


def test_an_array_and_its_own_transpose() -> None:
    x = values(133, 133)
    (y,) = kernelgen.compile(own_transpose(133), target="cpu")(x)
    np.testing.assert_array_equal(y, x + x.T)
