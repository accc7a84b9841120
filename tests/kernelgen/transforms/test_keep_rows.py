"""What loops over a row compute from several arrays is kept where that saves loads, and results stay to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from nests import I, J, block, buffer, call, local, loop, output, run

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Buffer,
    Expr,
    For,
    Let,
    Literal,
    Load,
    LoopKind,
    Nest,
    Num,
    Prefetch,
    Ref,
    Space,
    Statement,
    Store,
)
from kernelgen.nest.verify import verify
from kernelgen.nest.walk import loads_of, statements
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import FLOAT32
from kernelgen.transforms.common.array_contraction import LOCAL_BYTES
from kernelgen.transforms.cpu.keep_rows import keep_rows

COLUMNS = 37
X, R, Y = buffer("x", 5, COLUMNS), buffer("r", 5, COLUMNS), output("y", 5, COLUMNS)
TOTAL = local("total")
WIDE = LOCAL_BYTES // 4 + 1


def summed(number: int, x: Buffer = X, r: Buffer = R) -> list[Statement]:
    """Bindings of ``x + r``, named by the number of their loop."""
    both = call("add", Ref(f"x{number}", FLOAT32), Ref(f"r{number}", FLOAT32))
    return [Let(f"x{number}", Load(x, (I, J))), Let(f"r{number}", Load(r, (I, J))), Let(f"v{number}", both)]


def value(number: int) -> Expr:
    return Ref(f"v{number}", FLOAT32)


def total(*binding: Statement, number: int) -> For:
    """Adds up what a row binds."""
    return loop(J, COLUMNS, *binding, Accumulate(TOTAL, (), "add", value(number)))


def ends(*binding: Statement, number: int, extent: int = COLUMNS) -> For:
    """Stores what a row binds, times its sum."""
    return loop(J, extent, *binding, Store(Y, (I, J), call("mul", value(number), Load(TOTAL, ()))))


def rows(*body: Statement, buffers: tuple[Buffer, ...] = (X, R, Y)) -> Nest:
    start = Alloc(TOTAL), Store(TOTAL, (), Literal(0.0, FLOAT32))
    nest = Nest("rows", (), buffers, block(loop(I, 5, *start, *body, kind=LoopKind.PARALLEL)))
    verify(nest)
    return nest


def thrice() -> Nest:
    """Three loops that need ``x + r``."""
    return rows(total(*summed(0), number=0), total(*summed(1), number=1), ends(*summed(2), number=2))


def arrays_of(nest: Nest) -> list[Buffer]:
    return [part.buffer for part in statements(nest.body) if isinstance(part, Alloc) and part.buffer != TOTAL]


def test_a_sum_that_three_loops_need_is_stored_by_the_first() -> None:
    kept = keep_rows(thrice())
    verify(kept)
    (array,) = arrays_of(kept)
    assert array == Buffer(array.name, FLOAT32, (COLUMNS,), Space.LOCAL)
    first, *others = (part for part in statements(kept.body) if isinstance(part, For) and part.var == "j")
    stores = [part for part in first.body.statements if isinstance(part, Store)]
    assert stores == [Store(array, (J,), value(0))]
    for each in others:
        read = {load.buffer.name for part in each.body.statements for load in loads_of(part)}
        assert read - {TOTAL.name} == {array.name}


def test_results_stay_to_the_last_bit() -> None:
    rng = np.random.default_rng(0)
    x, r = (rng.standard_normal((5, COLUMNS)).astype(np.float32) for _ in range(2))
    results = np.zeros((2, 5, COLUMNS), np.float32)
    run(thrice(), x, r, results[0])
    run(keep_rows(thrice()), x, r, results[1])
    assert results[0].any()
    np.testing.assert_array_equal(results[1], results[0])


def test_a_row_that_begins_elsewhere_is_kept_from_its_first_element() -> None:
    """Columns from 5 on: the array has as many as are left."""
    nest = thrice()
    (parallel,) = nest.body.statements
    assert isinstance(parallel, For)
    parts = tuple(replace(p, lower=Num(5)) if isinstance(p, For) else p for p in parallel.body.statements)
    kept = keep_rows(replace(nest, body=block(replace(parallel, body=block(*parts)))))
    (array,) = arrays_of(kept)
    assert array.shape == (COLUMNS - 5,)
    (store,) = (part for part in statements(kept.body) if isinstance(part, Store) and part.buffer == array)
    assert store.index == (ix.add(J, Num(-5)),)


def chain(number: int, *more: Statement, need: str) -> list[Statement]:
    """Bindings of ``v = x + r`` and of ``w = v + v``, of which a loop adds up the one called ``need``."""
    double = Let(f"w{number}", call("add", value(number), value(number)))
    return [*summed(number), double, *more, Accumulate(TOTAL, (), "add", Ref(f"{need}{number}", FLOAT32))]


def test_two_loops_keep_what_is_read_from_three_arrays() -> None:
    q = buffer("q", 5, COLUMNS)

    def three(number: int) -> list[Statement]:
        more = call("add", value(number), Ref(f"q{number}", FLOAT32))
        return [*summed(number), Let(f"q{number}", Load(q, (I, J))), Let(f"u{number}", more)]

    loops = (loop(J, COLUMNS, *three(k), Accumulate(TOTAL, (), "add", Ref(f"u{k}", FLOAT32))) for k in range(2))
    assert len(arrays_of(keep_rows(rows(*loops, buffers=(X, R, q, Y))))) == 1


def test_what_another_kept_value_alone_needs_is_not_kept() -> None:
    kept = keep_rows(rows(*(loop(J, COLUMNS, *chain(k, need="w")) for k in range(3))))
    assert [array.name for array in arrays_of(kept)] == ["w0_row"]


def test_each_value_has_an_array_of_its_own() -> None:
    both = [[*chain(k, Accumulate(TOTAL, (), "add", value(k)), need="w")] for k in range(3)]
    nest = rows(*(loop(J, COLUMNS, *each) for each in both), ends(*summed(3), number=3))
    kept = keep_rows(nest)
    assert {array.name for array in arrays_of(kept)} == {"v0_row", "w0_row"}
    rng = np.random.default_rng(0)
    x, r = (rng.standard_normal((5, COLUMNS)).astype(np.float32) for _ in range(2))
    results = np.zeros((2, 5, COLUMNS), np.float32)
    run(nest, x, r, results[0])
    run(kept, x, r, results[1])
    np.testing.assert_array_equal(results[1], results[0])


def test_rows_of_two_lengths_are_kept_apart() -> None:
    def several(extent: int, start: int) -> list[For]:
        sums = (Accumulate(TOTAL, (), "add", value(k)) for k in range(start, start + 3))
        return [loop(J, extent, *summed(start + k), each) for k, each in enumerate(sums)]

    assert sorted(array.shape for array in arrays_of(keep_rows(rows(*several(COLUMNS, 0), *several(7, 3))))) == [
        (7,),
        (COLUMNS,),
    ]


def test_places_are_the_same_however_they_are_written() -> None:
    tall = [buffer(name, 10, COLUMNS) for name in "xr"]
    places = ix.multiply(I, Num(2)), ix.add(I, I), ix.multiply(Num(2), I)

    def read(number: int) -> list[Statement]:
        names = f"x{number}", f"r{number}"
        held = [Let(name, Load(of, (places[number], J))) for name, of in zip(names, tall, strict=True)]
        return [*held, Let(f"v{number}", call("add", *(Ref(name, FLOAT32) for name in names)))]

    loops = (total(*read(k), number=k) for k in range(3))
    assert len(arrays_of(keep_rows(rows(*loops, buffers=(*tall, Y))))) == 1


def test_a_row_that_just_fits_is_kept() -> None:
    wide = tuple(buffer(name, 5, WIDE - 1) for name in "xr")
    loops = (loop(J, WIDE - 1, *summed(k, *wide), Accumulate(TOTAL, (), "add", value(k))) for k in range(3))
    assert len(arrays_of(keep_rows(rows(*loops, buffers=(*wide, Y))))) == 1


OUTSIDE = replace(R, space=Space.INOUT)


def unlike(number: int) -> list[Statement]:
    """Bindings of ``x[i, j] + r[i, 0]``."""
    both = call("add", Ref(f"x{number}", FLOAT32), Ref(f"r{number}", FLOAT32))
    held = [Let(f"x{number}", Load(X, (I, J))), Let(f"r{number}", Load(R, (I, Num(0))))]
    return [*held, Let(f"v{number}", both)]


def twice(number: int) -> list[Statement]:
    """Two bindings of ``x + r``, both added up."""
    more = Accumulate(TOTAL, (), "add", value(number))
    return [*summed(number), more, *summed(number + 2)]


SYMBOLIC = [buffer(name, 5, sym("n")) for name in "xr"]


@pytest.mark.parametrize(
    "nest",
    [
        rows(*(replace(total(*summed(k), number=k), kind=LoopKind.SERIAL) for k in range(3))),
        rows(*(total(Prefetch(X, J, 2), *summed(k), number=k) for k in range(3))),
        rows(*(total(*twice(k), number=k + 2) for k in range(2))),
        rows(*(total(*unlike(k), number=k) for k in range(3))),
        replace(
            rows(buffers=(*SYMBOLIC, Y)),
            symbols=("n",),
            body=block(
                *(loop(J, sym("n"), *summed(k, *SYMBOLIC), Accumulate(TOTAL, (), "add", value(k))) for k in range(3))
            ),
        ),
        rows(total(*summed(0), number=0), ends(*summed(1), number=1)),
        rows(
            *(total(Let(f"v{k}", Load(X, (I, J))), number=k) for k in range(3)),
            ends(Let("v3", Load(X, (I, J))), number=3),
        ),
        rows(total(*summed(0), number=0), total(*summed(1), number=1), ends(*summed(2), number=2, extent=7)),
        rows(
            *(total(*summed(k, r=OUTSIDE), number=k) for k in range(2)),
            ends(*summed(2, r=OUTSIDE), number=2),
            buffers=(X, OUTSIDE, Y),
        ),
        rows(total(*summed(0), number=0), total(*summed(1, R, X), number=1), ends(*summed(2, R, R), number=2)),
    ],
    ids=[
        "no vectors",
        "other statements",
        "one loop's own",
        "one number for all columns",
        "a length that is not known",
        "a load for each load",
        "one array",
        "a shorter row",
        "an array that may be written",
        "other sums",
    ],
)
def test_other_loops_stay(nest: Nest) -> None:
    assert keep_rows(nest) == nest


def test_a_row_that_fits_no_stack_is_computed_again() -> None:
    wide = tuple(buffer(name, 5, WIDE) for name in "xr")
    y = output("y", 5, WIDE)
    loops = (loop(J, WIDE, *summed(k, *wide), Store(y, (I, J), value(k))) for k in range(3))
    nest = Nest("wide", (), (*wide, y), block(loop(I, 5, *loops, kind=LoopKind.PARALLEL)))
    assert keep_rows(nest) == nest
