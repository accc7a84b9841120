"""Elements at equal distances: whole vectors and shuffles instead of gathers, the same values, and nothing read outside."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Compare, Expr, If, Index, Load, LoopKind, Nest, Num, Statement, Store
from kernelgen.targets.cpu.emit import emit_for
from kernelgen.targets.cpu.statements.strided import FARTHEST, Step, line_of, spread
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dtypes import FLOAT16, FLOAT32, FLOAT64, INT8, INT64, DType
from kernelgen.verify.guard_pages import Fenced, Placement
from tests.support.nests import ZERO, I, J, block, buffer, call, loop, output, run

AVX2 = Host("x86-64-v3", frozenset(("avx", "avx2", "fma", "f16c", "sse4.1")))
AVX512 = Host("x86-64-v4", AVX2.features | {"avx512f", "avx512bw", "avx512vl", "avx512vbmi2"})


def width_of(columns: int, stride: int, starts: tuple[int, ...]) -> int:
    return abs(stride) * (columns - 1) + 1 + max(starts)


def strided(columns: int, stride: int, starts: tuple[int, ...] = (0,), type_: DType = FLOAT32, least: int = 0) -> Nest:
    """``y[i, j]`` is the sum of ``x[i, stride j + start]`` over the starts, where ``j >= least``.

    A negative stride counts from the last column. Rows of ``x`` end with the last element that is read.
    """
    width = width_of(columns, stride, starts)
    x, y = buffer("x", 3, width, dtype=type_), output("y", 3, columns, dtype=type_)
    first = 0 if stride > 0 else width - 1 - max(starts)
    value: Expr | None = None
    for start in starts:
        place = ix.add(ix.multiply(J, Num(stride)), Num(first + start))
        element = Load(x, (I, place))
        value = element if value is None else call("add", value, element)
    assert value is not None
    stored: Statement = Store(y, (I, J), value)
    if least:
        stored = If((Compare("<=", Num(least), J),), block(stored))
    rows = loop(I, 3, loop(J, columns, stored), kind=LoopKind.PARALLEL)
    return Nest("strided", (), (x, y), block(rows))


STRIDES = (-4, -3, -2, -1, 2, 3, 4, 5)


@pytest.mark.parametrize("type_", [FLOAT16, FLOAT32, FLOAT64, INT8, INT64], ids=str)
@pytest.mark.parametrize("stride", STRIDES)
def test_numbers_of_every_type_are_those_of_numpy(stride: int, type_: DType) -> None:
    for columns in (2, 17, 48):
        agrees(columns, stride, (0, 1), type_)


@pytest.mark.parametrize("starts", [(0,), (1,), (0, 1, 2), (0, 2, 5)], ids=str)
@pytest.mark.parametrize("stride", STRIDES)
def test_numbers_of_odd_and_even_lengths_are_those_of_numpy(stride: int, starts: tuple[int, ...]) -> None:
    for columns, least in ((15, 0), (16, 0), (100, 0), (33, 7)):
        agrees(columns, stride, starts, FLOAT32, least)


def agrees(columns: int, stride: int, starts: tuple[int, ...], type_: DType, least: int = 0) -> None:
    """Runs the nest on an array that begins, and on one that ends, beside a page that nobody may read."""
    width = width_of(columns, stride, starts)
    numbers = (np.arange(3 * width) % 41).reshape(3, width).astype(type_.numpy)
    taken = [numbers[:, start : start + width - max(starts)][:, ::stride] for start in starts]
    expected = np.full((3, columns), 7, type_.numpy)
    expected[:, least:] = sum(taken[1:], taken[0])[:, least:]
    fenced = Fenced("x", numbers)
    for at_back in (False, True):
        y = np.full((3, columns), 7, type_.numpy)
        run(strided(columns, stride, starts, type_, least), fenced.place(Placement(at_back, 0)), y)
        np.testing.assert_array_equal(y, expected, f"{columns} columns from {least}")


@pytest.mark.parametrize("host", [AVX2, AVX512], ids=["avx2", "avx512"])
@pytest.mark.parametrize("least", [0, 7])
@pytest.mark.parametrize("columns", [64, 61])
@pytest.mark.parametrize("stride", [-3, -1, 2, 3, 4])
def test_such_loads_are_no_gathers(stride: int, columns: int, least: int, host: Host) -> None:
    source = emit_for(strided(columns, stride, least=least), host)
    assert "masked.gather" not in source
    assert "shufflevector" in source


def by_groups(columns: int, width: int, distance: int, starts: tuple[int, ...]) -> Nest:
    """``y[i, j]`` is the sum of ``x[i, distance * (j / width) + start]`` over the starts; ``x`` ends with what is read last."""
    x, y = buffer("x", 3, reach_of(columns, width, distance, starts)), output("y", 3, columns)
    place = ix.multiply(ix.floor_divide(J, Num(width)), Num(distance))
    value: Expr = Load(x, (I, ix.add(place, Num(starts[0]))))
    for start in starts[1:]:
        value = call("add", value, Load(x, (I, ix.add(place, Num(start)))))
    rows = loop(I, 3, loop(J, columns, Store(y, (I, J), value)), kind=LoopKind.PARALLEL)
    return Nest("by_groups", (), (x, y), block(rows))


def reach_of(columns: int, width: int, distance: int, starts: tuple[int, ...]) -> int:
    return (columns - 1) // width * distance + max(starts) + 1


@pytest.mark.parametrize("starts", [(0,), (1,), (0, 1, 2, 3), (0, 3)], ids=str)
@pytest.mark.parametrize(("width", "distance"), [(2, 2), (4, 4), (4, 8), (2, 8), (4, 16), (4, 2), (3, 3), (8, 8)])
@pytest.mark.parametrize("columns", [4, 13, 16, 24, 61])
def test_groups_of_lanes_read_what_numpy_does_and_nothing_outside(
    columns: int, width: int, distance: int, starts: tuple[int, ...]
) -> None:
    numbers = (np.arange(3 * reach_of(columns, width, distance, starts)) % 41).reshape(3, -1).astype(np.float32)
    places = np.arange(columns) // width * distance
    expected = sum((numbers[:, places + start] for start in starts[1:]), numbers[:, places + starts[0]])
    fenced = Fenced("x", numbers)
    for at_back in (False, True):
        y = np.full((3, columns), 7, np.float32)
        run(by_groups(columns, width, distance, starts), fenced.place(Placement(at_back, 0)), y)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("host", [AVX2, AVX512], ids=["avx2", "avx512"])
@pytest.mark.parametrize("starts", [(0,), (0, 1, 2, 3)], ids=str)
def test_groups_of_lanes_that_fill_a_vector_are_no_gathers(starts: tuple[int, ...], host: Host) -> None:
    lanes = 16 if host is AVX512 else 8
    source = emit_for(by_groups(lanes, 4, 4, starts), host)
    assert "masked.gather" not in source
    assert ("masked.load" in source) == (starts == (0,))


def test_farther_groups_are_gathered() -> None:
    assert "masked.gather" in emit_for(by_groups(16, 4, 4 * (FARTHEST + 1), (0,)), AVX512)


def test_groups_of_lanes_that_do_not_all_run_read_nothing_outside() -> None:
    """The first lanes do not run, and what they would read is not there."""
    x, y = buffer("x", 3, 8), output("y", 3, 16)
    place = ix.subtract(ix.multiply(ix.floor_divide(J, Num(4)), Num(4)), Num(8))
    stored = If((Compare("<=", Num(8), J),), block(Store(y, (I, J), Load(x, (I, place)))))
    nest = Nest("guarded", (), (x, y), block(loop(I, 3, loop(J, 16, stored), kind=LoopKind.PARALLEL)))
    numbers = np.arange(24, dtype=np.float32).reshape(3, 8)
    fenced, found = Fenced("x", numbers), np.full((3, 16), 7, np.float32)
    run(nest, fenced.place(Placement(False, 0)), found)
    np.testing.assert_array_equal(found[:, 8:], np.repeat(numbers[:, ::4], 4, axis=1))
    np.testing.assert_array_equal(found[:, :8], 7)


def test_farther_elements_are_gathered() -> None:
    assert "masked.gather" in emit_for(strided(64, FARTHEST + 1), AVX2)


def test_loads_end_with_the_last_element() -> None:
    """The last elements may lie at the end of a page: 8 lanes take 15 elements, 0 to 7 and 7 to 14."""
    source = emit_for(strided(8, 2), AVX2)
    assert "i32 0, i32 2, i32 4, i32 6, i32 9, i32 11, i32 13, i32 15" in source


def test_neighbours_share_two_loads() -> None:
    """Both take even and odd places of ``x[a : a + 8]`` and ``x[a + 8 : a + 16]``."""
    source = emit_for(strided(8, 2, (0, 1)), AVX2)
    assert "i32 0, i32 2, i32 4, i32 6, i32 8, i32 10, i32 12, i32 14" in source
    assert "i32 1, i32 3, i32 5, i32 7, i32 9, i32 11, i32 13, i32 15" in source
    assert "i32 9, i32 11, i32 13, i32 15>" in source


def test_what_some_iterations_load_is_not_shared() -> None:
    """The neighbour is read by some lanes only: it may lie outside of the buffer for the others."""
    x, y = buffer("x", 15), output("y", 8)
    even, odd = (Load(x, (ix.add(ix.multiply(J, Num(2)), Num(start)),)) for start in (0, 1))
    behind = If((Compare("<", J, Num(7)),), block(Store(y, (J,), odd)))
    source = emit_for(Nest("some", (), (x, y), block(loop(J, 8, Store(y, (J,), even), behind))), AVX2)
    assert "i32 0, i32 2, i32 4, i32 6, i32 9, i32 11, i32 13, i32 15" in source


@pytest.mark.parametrize("count", [2, 4, 8, 16])
@pytest.mark.parametrize("stride", [s for s in range(-FARTHEST, FARTHEST + 1) if s])
def test_vectors_hold_what_lanes_want_and_stay_within_it(stride: int, count: int) -> None:
    for constants in ((9,), (9, 10), (9, 10, 11), (9, 12), (8, 9, 10, 11, 12), tuple(range(20))):
        line = {constant: place(stride, constant) for constant in constants}
        inside = range(min(constants) + min(0, stride * (count - 1)), max(constants) + max(0, stride * (count - 1)) + 1)
        for constant in constants:
            found = spread(place(stride, constant), constant, line, Step(stride), count)
            base = next(c for c in constants if line[c] == found.first) + min(0, stride * (count - 1))
            for lane, (vector, at) in enumerate(found.places):
                assert base + found.starts[vector] + at == constant + stride * lane
                assert found.readers[vector][at] == lane, "it is read where the lane runs"
            for start, readers in zip(found.starts, found.readers, strict=True):
                assert base + start in inside
                assert base + start + count - 1 in inside
                for at, lane in readers.items():
                    around = [c + stride * lane for c in constants]
                    assert min(around) <= base + start + at <= max(around), "lanes that run want what is around it"


def place(stride: int, constant: int) -> Index:
    """An element of the lane ``j``."""
    return ix.add(ix.multiply(J, Num(stride)), Num(constant))


def test_a_line_is_what_places_share_beside_a_constant() -> None:
    row = ix.multiply(I, Num(100))
    one = ix.add(row, ix.add(ix.multiply(J, Num(2)), Num(-3)))
    other = ix.add(ix.add(ix.multiply(J, Num(2)), Num(4)), row)
    assert line_of("x", one)[0] == line_of("x", other)[0]
    assert [line_of("x", each)[1] for each in (one, other)] == [-3, 4]
    assert line_of("x", one)[0] != line_of("y", one)[0]
    assert line_of("x", one)[0] != line_of("x", ix.add(one, J))[0]
    assert line_of("x", ZERO) == (("x", frozenset()), 0)
