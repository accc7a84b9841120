"""Clamped places along the lanes: masked loads instead of gathers, and the same values."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Expr, For, Index, IndexValue, Literal, Load, LoopKind, Nest, Num, Store, Var
from kernelgen.targets.cpu.emit import emit_for
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dtypes import FLOAT16, FLOAT32, INT64, DType
from tests.support.nests import I, J, block, buffer, call, loop, output, run

AVX2 = Host("x86-64-v3", frozenset(("avx", "avx2", "fma", "f16c", "sse4.1")))


def shifted(columns: int, before: int, after: int, type_: DType = FLOAT32, guarded: bool = False) -> Nest:
    """``y[i, j] = x[i, clamp(j - before)]`` over ``before + columns + after`` places; zeros outside when guarded."""
    x, y = buffer("x", 3, columns, dtype=type_), output("y", 3, before + columns + after, dtype=type_)
    place = ix.subtract(J, Num(before))
    value: Expr = Load(x, (I, ix.clamp(place, columns)))
    if guarded:
        inside = call("logical_and", compared("greater_equal", place, 0), compared("less", place, columns))
        value = call("select", inside, value, Literal(0.0, type_))
    return Nest("shifted", (), (x, y), block(rows(loop(J, before + columns + after, Store(y, (I, J), value)))))


def rows(columns: For) -> For:
    return loop(I, 3, columns, kind=LoopKind.PARALLEL)


def compared(function: str, place: Index, bound: int) -> Expr:
    return call(function, IndexValue(place, INT64), Literal(bound, INT64))


@pytest.mark.parametrize("type_", [FLOAT32, FLOAT16], ids=str)
@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize(("before", "after"), [(0, 0), (1, 1), (0, 5), (40, 3), (20, 70)])
@pytest.mark.parametrize("columns", [1, 2, 15, 16, 33, 100])
def test_edges_are_read_where_lanes_are_outside(
    columns: int, before: int, after: int, guarded: bool, type_: DType
) -> None:
    x = np.random.default_rng(columns).standard_normal((3, columns)).astype(type_.numpy)
    y = np.empty((3, before + columns + after), type_.numpy)
    run(shifted(columns, before, after, type_, guarded), x, y)
    around = ((0, 0), (before, after))
    expected = np.pad(x, around, mode="constant") if guarded else np.pad(x, around, mode="edge")
    np.testing.assert_array_equal(y, expected)


def test_such_loads_are_no_gathers() -> None:
    source = emit_for(shifted(100, 3, 4, guarded=True), AVX2)
    assert "masked.load" in source
    assert "masked.gather" not in source
    assert "<8 x i64>" not in source, "places are compared as 32-bit numbers"


@pytest.mark.parametrize(
    "place",
    [ix.clamp(ix.multiply(J, Num(2)), 100), ix.minimum(J, ix.subtract(Var("i"), J))],
    ids=["strided", "mirrored"],
)
def test_other_places_are_gathered(place: Index) -> None:
    x, y = buffer("x", 3, 100), output("y", 3, 64)
    nest = Nest("other", (), (x, y), block(rows(loop(J, 64, Store(y, (I, J), Load(x, (I, place)))))))
    assert "masked.gather" in emit_for(nest, AVX2)
