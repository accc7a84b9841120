"""Regions of a temporary that have no element in common are temporaries of their own, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kernel_examples import Writer, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.vocabulary import WORDS
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Alloc, Buffer, Index, LoopKind, Nest, Num, Space, Statement, Store, Var
from kernelgen.nest.nodes import Load as Read
from kernelgen.nest.walk import statements
from kernelgen.plan import CpuPlan, Plan, VectorUnit
from kernelgen.stages import lower
from kernelgen.targets import python
from kernelgen.tensor.text import parse
from kernelgen.transforms.common.array_regions import regions_apart
from tests.support.nests import block, buffer, loop, output

COLUMNS = 40
I, J = Var("i"), Var("j")  # noqa: E741
X, Y, T = buffer("x", COLUMNS), output("y", COLUMNS), Buffer("t", buffer("x").dtype, (COLUMNS,), Space.WORKSPACE)


def copied(to: Buffer, of: Buffer, first: int, count: int, step: int = 0) -> Statement:
    """Elements from the first one on, behind each other."""
    place: Index = ix.add(I, Num(first))
    return loop(I, count, Store(to, (place,), Read(of, (ix.add(place, Num(step)),))), kind=LoopKind.SERIAL)


def nest(*parts: Statement) -> Nest:
    return Nest("copies", (), (X, Y, T), block(*parts))


def temporaries(given: Nest) -> dict[str, tuple[object, ...]]:
    return {each.name: each.shape for each in regions_apart(given).buffers if each.space is Space.WORKSPACE}


def test_parts_that_nothing_joins_are_temporaries_as_large_as_they_are() -> None:
    given = nest(copied(T, X, 0, 32), copied(T, X, 32, 8), copied(Y, T, 0, 32), copied(Y, T, 32, 8))
    assert temporaries(given) == {"t_part0": (32,), "t_part1": (8,)}
    parts = [store for store in statements(regions_apart(given).body) if isinstance(store, Store)]
    assert [part.buffer.name for part in parts] == ["t_part0", "t_part1", "y", "y"]
    last = parts[-1].value
    assert isinstance(last, Read)
    assert last.buffer.name == "t_part1"


def computed(given: Nest) -> list[float]:
    """What a nest makes of the numbers from 1 on; a place outside of an array is an error."""
    arrays = {
        each.name: np.full([int(str(extent)) for extent in each.shape], np.nan, np.float32) for each in given.buffers
    }
    arrays["x"], arrays["y"] = np.arange(1, COLUMNS + 1, dtype=np.float32), np.zeros(COLUMNS, np.float32)
    python.load(python.emit(given), given)(tuple(arrays.values()), ())
    return arrays["y"].tolist()


def test_elements_are_where_they_were_put() -> None:
    """Also those of a part that several statements write, each some of it."""
    written = (copied(T, X, 32, 8), copied(T, X, 0, 16), copied(T, X, 16, 16))
    given = nest(*written, copied(Y, T, 0, 32), copied(Y, T, 32, 8))
    assert sorted(temporaries(given).values()) == [(8,), (32,)]
    assert computed(regions_apart(given)) == computed(given) == list(range(1, COLUMNS + 1))


def test_another_temporary_stays_what_it_is() -> None:
    other = replace(T, name="u")
    joined = (copied(other, X, 0, 8), copied(Y, other, 0, 8))
    given = nest(*joined, copied(T, X, 8, 24), copied(T, X, 32, 8), copied(Y, T, 8, 24), copied(Y, T, 32, 8))
    found = temporaries(replace(given, buffers=(*given.buffers, other)))
    assert found == {"t_part0": (24,), "t_part1": (8,), "u": (COLUMNS,)}


def test_parts_of_rows_and_columns_are_apart_where_one_of_both_is() -> None:
    """Columns 0 to 3 of all rows, and columns 4 and 5 of all rows."""
    wide = Buffer("w", T.dtype, (8, 6), Space.WORKSPACE)

    def part(first: int, count: int, to_wide: bool) -> Statement:
        flat = ix.add(ix.multiply(I, Num(5)), ix.add(J, Num(first)))
        place = (I, ix.add(J, Num(first)))
        given = Store(wide, place, Read(X, (flat,))) if to_wide else Store(Y, (flat,), Read(wide, place))
        return loop(I, 5, loop(J, count, given, kind=LoopKind.SERIAL), kind=LoopKind.SERIAL)

    parts = [part(first, count, to_wide) for to_wide in (True, False) for first, count in ((0, 3), (3, 2))]
    given = Nest("copies", (), (X, Y, wide), block(*parts))
    assert temporaries(given) == {"w_part0": (5, 3), "w_part1": (5, 2)}
    assert computed(regions_apart(given)) == computed(given)


def test_names_that_are_taken_are_left_to_who_has_them() -> None:
    taken = Buffer("t_part0", T.dtype, (COLUMNS,), Space.INPUT)
    given = nest(copied(T, taken, 0, 32), copied(T, taken, 32, 8), copied(Y, T, 0, 32), copied(Y, T, 32, 8))
    found = regions_apart(replace(given, buffers=(taken, Y, T)))
    assert [buffer.name for buffer in found.buffers] == ["t_part0", "y", "t_part0_", "t_part1"]


@pytest.mark.parametrize(
    "given",
    [
        nest(copied(T, X, 0, 32), copied(T, X, 32, 8), copied(Y, T, 0, 40)),
        nest(copied(T, X, 0, 33), copied(T, X, 32, 8), copied(Y, T, 0, 32), copied(Y, T, 33, 7)),
        nest(copied(T, X, 32, 8), copied(T, X, 0, 33), copied(Y, T, 33, 7), copied(Y, T, 0, 32)),
        nest(copied(T, X, 0, 32), copied(T, X, 32, 8), copied(Y, T, 0, 32, step=1), copied(Y, T, 32, 8)),
        nest(
            block(copied(T, X, 0, 8), copied(T, X, 32, 8)),
            copied(T, X, 8, 24),
            copied(Y, T, 0, 32),
            copied(Y, T, 32, 8),
        ),
    ],
    ids=[
        "one reads all",
        "one is written twice",
        "the other one first",
        "one reads a place further",
        "one writes both",
    ],
)
def test_what_has_an_element_in_common_stays_one(given: Nest) -> None:
    assert regions_apart(given) is given


def somewhere(to: Buffer, *place: Index) -> Statement:
    """A store to a place that a symbol decides."""
    return loop(Var("k"), 2, Store(to, (Var("n"), *place), Read(X, (Num(0),))), kind=LoopKind.SERIAL)


def test_a_place_that_a_symbol_decides_is_in_no_region() -> None:
    both = (copied(T, X, 0, 32), copied(T, X, 32, 8), copied(Y, T, 0, 32), copied(Y, T, 32, 8))
    given = nest(*both, somewhere(T))
    assert temporaries(nest(*both)) != temporaries(given) == {"t": (COLUMNS,)}
    assert regions_apart(given) is given


def test_nor_is_one_of_which_only_the_column_is_known() -> None:
    wide = Buffer("w", T.dtype, (8, 6), Space.WORKSPACE)
    given = Nest("places", (), (X, wide), block(somewhere(wide, Num(0)), somewhere(wide, Num(1))))
    assert regions_apart(given) is given


def test_what_is_never_touched_is_in_no_region() -> None:
    parts = (copied(T, X, 0, 32), copied(T, X, 32, 8), copied(Y, T, 0, 32), copied(Y, T, 32, 8))
    given = nest(*parts, copied(T, X, 32, 0))
    assert regions_apart(given) is given


def product(rows: int, columns: int) -> KernelDesc:
    writer = Writer()
    a, b, c = tensor("a", rows, 24), tensor("b", 24, columns), tensor("c", columns)
    shape = (rows, columns)
    total = writer.op("MatMul", a, b, shape=shape, transpose_a=False, transpose_b=False)
    return writer.desc("product", (a, b, c), writer.op("Exp", writer.op("Add", total, c, shape=shape), shape=shape))


def test_sums_of_a_panel_lie_together_also_where_columns_are_left_over() -> None:
    """Rows of 1024 floats would fall into one set of the first cache."""
    found = lower(product(196, 1024), Plan(), constants=frozenset({1})).nest
    held = [
        part.buffer.shape for part in statements(found.body) if isinstance(part, Alloc) and len(part.buffer.shape) == 2
    ]
    assert held
    assert 1024 not in {columns for _, columns in held}


@pytest.mark.parametrize(("rows", "columns"), [(196, 1024), (98, 80), (196, 200), (64, 65)])
def test_products_with_columns_left_over_are_right(rows: int, columns: int) -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.uniform(-0.3, 0.3, shape).astype(np.float32) for shape in ((rows, 24), (24, columns), (columns,)))
    kernel = kernelgen.compile(product(rows, columns), constants=(1,))
    np.testing.assert_allclose(kernel(*kernel.call_inputs([a, b, c]))[0], np.exp(a @ b + c), rtol=1e-4)


QUANTIZED = """graph quantized(x: u8[196, 256], w: i8[256, 1024], bias: f32[1024], residual: u8[196, 1024]) {
  sums: i32[196, 1024] = MatMulInteger(x, w)
  floats: f32[196, 1024] = Cast(sums, dst_type="float32")
  scaled: f32[196, 1024] = Mul(floats, 0.0003)
  moved: f32[196, 1024] = Add(scaled, bias)
  parts: f32[196, 1024] = RealDiv(moved, 0.21)
  near: f32[196, 1024] = Round(parts)
  beside: f32[196, 1024] = Add(near, 7.0)
  least: f32[196, 1024] = Maximum(beside, 0.0)
  most: f32[196, 1024] = Minimum(least, 255.0)
  bytes: u8[196, 1024] = Cast(most, dst_type="uint8")
  wide: i32[196, 1024] = Cast(bytes, dst_type="int32")
  less: i32[196, 1024] = Add(wide, -7)
  read: f32[196, 1024] = Cast(less, dst_type="float32")
  first: f32[196, 1024] = Mul(read, 0.21)
  other: f32[196, 1024] = Cast(residual, dst_type="float32")
  second: f32[196, 1024] = Mul(other, 0.1)
  both: f32[196, 1024] = Add(first, second)
  last: f32[196, 1024] = RealDiv(both, 0.15)
  rounded: f32[196, 1024] = Round(last)
  low: f32[196, 1024] = Maximum(rounded, 0.0)
  high: f32[196, 1024] = Minimum(low, 255.0)
  y: u8[196, 1024] = Cast(high, dst_type="uint8")
  return y = y
}"""


@pytest.mark.parametrize(("registers", "names"), [(16, {"sums"}), (32, set[str]())])
def test_what_one_iteration_alone_uses_is_a_register(registers: int, names: set[str]) -> None:
    """The sums of a panel are handed on where registers have no room for what follows; the bytes in between are not."""
    desc = KernelDesc(parse(QUANTIZED, {word.name: word for word in WORDS}))
    plan = Plan(CpuPlan(unit=VectorUnit(registers)))
    found = lower(desc, plan, constants=frozenset({1, 2})).nest
    held = [part.buffer for part in statements(found.body) if isinstance(part, Alloc) and len(part.buffer.shape) == 2]
    assert {buffer.name.partition("_part")[0] for buffer in held} == names
