"""A block of results asks for the rows of the next one, and for what follows its sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from nests import I, J, block, buffer, call, local, loop, output

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.text import show_index, show_statement
from kernelgen.nest.walk import statements
from kernelgen.tensor.dtypes import FLOAT16
from kernelgen.transforms.cpu.prefetching.blocks import FEW_PANELS, FEW_TERMS, prefetch_blocks

ROWS, TERMS, COLUMNS = 8, 32, 32
K = n.Var("k")
X, P, BIAS, Z = buffer("x", 64, TERMS), buffer("p", TERMS, COLUMNS), buffer("bias", COLUMNS), buffer("z", 64, 64)
Y = output("y", 64, 64)
SUMS = tuple(local(f"s{row}", COLUMNS) for row in range(2))


def product(
    x: n.Buffer = X,
    z: n.Load | None = None,
    *,
    height: int = 2,
    step: int = 2,
    last: n.Index = K,
    terms: int = TERMS,
    first: n.Index = I,
    apart: int = 1,
    others: n.Buffer | None = None,
) -> n.Nest:
    """``for i step: for k: let a_r = x[i + r, k]; vector j: s_r[j] += a_r p[k, j]``, then ``y = s_r + z`` for each row.

    Rows of ``x`` are those from the ``first`` one on, so many ``apart``; those behind it may be of ``others``.
    """
    places = [ix.add(I, n.Num(row)) for row in range(height)]
    read = [ix.add(first, n.Num(apart * row)) for row in range(height)]
    bound = [n.Let(f"a{row}", n.Load((others or x) if row else x, (place, last))) for row, place in enumerate(read)]
    added = [
        n.Accumulate(SUMS[row], (J,), "add", call("mul", n.Ref(f"a{row}", X.dtype), n.Load(P, (K, J))))
        for row in range(height)
    ]
    sums = loop(K, terms, *bound, loop(J, COLUMNS, *added), kind=n.LoopKind.SERIAL)
    follow = [_following(place, SUMS[row], z) for row, place in enumerate(places)]
    rows = replace(loop(I, ROWS, sums, *follow, kind=n.LoopKind.PARALLEL), step=step)
    return n.Nest(
        "product", (), (x, P, Y, *([] if others is None else [others]), *([] if z is None else [z.buffer])), block(rows)
    )


def _following(place: n.Index, total: n.Buffer, z: n.Load | None) -> n.For:
    value: n.Expr = n.Load(total, (J,))
    if z is not None:
        value = call("add", value, replace(z, index=tuple(ix.substitute(each, {"row": place}) for each in z.index)))
    return loop(J, COLUMNS, n.Store(Y, (place, J), value))


ROW = n.Var("row")


def rows_of(nest: n.Nest) -> n.For:
    """The loop that the nest is."""
    (rows,) = nest.body.statements
    assert isinstance(rows, n.For)
    return rows


def asked(nest: n.Nest) -> Sequence[str]:
    found = (part for part in statements(prefetch_blocks(nest).body) if isinstance(part, n.Prefetch))
    return [f"{hint.buffer.name}: {show_index(hint.place)} in {hint.level}" for hint in found]


def test_turns_ask_for_their_shares_of_the_next_rows_and_a_block_for_what_follows() -> None:
    """Two rows of 32 terms are 64 elements behind this block's, two for each turn; a row of 32 floats is two lines."""
    rows = rows_of(prefetch_blocks(product(z=n.Load(Z, (ROW, ix.add(J, n.Num(5)))))))
    text = show_statement(rows)
    assert text.startswith(
        """\
parallel for i in 0..8 step 2 {
  prefetch z at i*64 + 5 into cache 1
  prefetch z at i*64 + 5 + 16 into cache 1
  prefetch z at (i + 1)*64 + 5 into cache 1
  prefetch z at (i + 1)*64 + 5 + 16 into cache 1
  for k in 0..32 {
    prefetch x at i*32 + 64 + (k*2) into cache 1
    let a0: f32 = x[i, k]
    let a1: f32 = x[i + 1, k]
"""
    )
    assert text.count("prefetch") == 5


NEXT = "x: i*32 + 64 + (k*2) in 1"
WIDER, BY_TERMS = buffer("x", 64, 2 * TERMS), buffer("x", 64, TERMS, TERMS)


@pytest.mark.parametrize(
    "nest",
    [
        product(WIDER), product(terms=TERMS // 2), product(step=3), product(step=1), product(height=1, step=2),
        product(last=ix.subtract(n.Num(TERMS - 1), K)), product(replace(X, space=n.Space.LOCAL)),
        product(first=ix.multiply(I, n.Num(2))), product(apart=3), product(others=buffer("w", 64, TERMS)),
    ],
    ids=[
        "wider rows", "a piece of the terms", "a gap", "rows that overlap", "rows left out", "backwards", "no argument",
        "blocks apart", "rows apart", "two arguments",
    ],
)  # fmt: skip
def test_a_next_block_that_does_not_lie_behind_this_one_is_not_asked_for(nest: n.Nest) -> None:
    assert asked(product()) == [NEXT]
    assert asked(nest) == []


@pytest.mark.parametrize(
    ("terms", "panels", "is_asked"),
    [(FEW_TERMS + 1, FEW_PANELS, True), (FEW_TERMS + 1, FEW_PANELS + 1, False), (FEW_TERMS, FEW_PANELS + 1, True)],
)
@pytest.mark.parametrize("in_tiles", [False, True])
def test_long_sums_of_rows_that_many_panels_pass_ask_for_none(
    terms: int, panels: int, *, is_asked: bool, in_tiles: bool
) -> None:
    nest = product(buffer("x", 64, terms), terms=terms)
    rows = rows_of(nest)
    begin = n.Var("t") if in_tiles else n.Num(0)
    over = loop(n.Var("c"), 32 * panels, replace(rows, lower=begin, kind=n.LoopKind.SERIAL), kind=n.LoopKind.SERIAL)
    tiles = loop(n.Var("t"), 64, replace(over, step=32), kind=n.LoopKind.PARALLEL)
    assert bool(asked(replace(nest, body=block(tiles if in_tiles else replace(over, step=32))))) == is_asked


@pytest.mark.parametrize("names", ["first", "place"])
def test_a_loop_over_tiles_of_rows_is_none_over_panels(names: str) -> None:
    terms = FEW_TERMS + 1
    tile = n.Var("t")
    first = I if names == "first" else ix.add(I, tile)
    nest = product(buffer("x", 64, terms), terms=terms, first=first)
    rows = rows_of(nest)
    assert bool(asked(nest)), "nor is what has no loop around"
    begin = tile if names == "first" else n.Num(0)
    tiles = loop(tile, 64, replace(rows, lower=begin, kind=n.LoopKind.SERIAL), kind=n.LoopKind.PARALLEL)
    assert len(asked(replace(nest, body=block(tiles)))) == 1


@pytest.mark.parametrize(
    "z",
    [n.Load(BIAS, (J,)), n.Load(Z, (J, ROW)), n.Load(replace(Z, space=n.Space.LOCAL), (ROW, J))],
    ids=["the same for all rows", "across rows", "no argument"],
)
def test_what_is_there_already_or_lies_across_is_not_asked_for(z: n.Load) -> None:
    assert asked(product(z=z)) == [NEXT]


def test_a_line_has_more_elements_of_a_narrower_type() -> None:
    half = replace(Z, dtype=FLOAT16)
    narrow = n.Load(half, (ROW, J))
    assert asked(product(z=narrow)) == ["z: i*64 in 1", "z: (i + 1)*64 in 1", NEXT]


def test_what_two_loops_read_is_asked_for_once() -> None:
    nest = product(z=n.Load(Z, (I, J)))
    assert asked(nest) == ["z: i*64 in 1", "z: i*64 + 16 in 1", NEXT]


def test_what_was_read_before_the_sums_is_there_already() -> None:
    nest = product()
    rows = rows_of(nest)
    before = _following(I, SUMS[0], n.Load(Z, (ROW, J)))
    around = replace(
        nest, buffers=(*nest.buffers, Z), body=block(replace(rows, body=block(before, *rows.body.statements)))
    )
    assert asked(around) == [NEXT]


@pytest.mark.parametrize("kind", [n.LoopKind.SERIAL, n.LoopKind.VECTOR])
def test_single_rows_and_sums_in_lanes_ask_for_nothing(kind: n.LoopKind) -> None:
    """Rows that are added up, and then read again."""
    total = local("total")
    sums = loop(K, 64, n.Accumulate(total, (), "add", n.Load(Z, (I, K))), kind=kind)
    step = 1 if kind is n.LoopKind.SERIAL else 2
    rows = replace(
        loop(I, ROWS, sums, _following(I, SUMS[0], n.Load(Z, (ROW, J))), kind=n.LoopKind.PARALLEL), step=step
    )
    assert asked(n.Nest("sums", (), (Z, Y), block(rows))) == []


def test_a_block_without_sums_asks_for_nothing() -> None:
    rows = replace(loop(I, ROWS, _following(I, SUMS[0], n.Load(Z, (ROW, J))), kind=n.LoopKind.PARALLEL), step=2)
    assert asked(n.Nest("copy", (), (Z, Y), block(rows))) == []


def test_windows_ask_for_what_follows_alone() -> None:
    """Their terms are several loops, which read other rows in each turn of the outer ones."""
    nest = product(z=n.Load(Z, (ROW, J)))
    rows = rows_of(nest)
    terms, *rest = rows.body.statements
    windows = loop(n.Var("w"), 3, terms, kind=n.LoopKind.SERIAL)
    around = replace(nest, body=block(replace(rows, body=block(windows, *rest))))
    assert [hint for hint in asked(around) if hint.startswith("x")] == []
    assert len(asked(around)) == 4
