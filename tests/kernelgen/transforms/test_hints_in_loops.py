"""Which loops may ask for what is read later, and what they are told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nests import I, J, block, buffer, loop, output

from kernelgen.nest import nodes as n
from kernelgen.transforms.cpu.prefetching.factors import prefetch_factors
from kernelgen.transforms.cpu.prefetching.hints import IN_TURN, OF_THREADS, OVER_ROWS, OVER_TERMS, Kinds, with_hints

X, Y = buffer("x", 64, 64), output("y", 64)
K, B = n.Var("k"), n.Var("b")
SUM = n.Accumulate(Y, (J,), "add", n.Load(X, (I, J)))
HINT = n.Prefetch(X, n.Num(0), 2)


def nested(kind: n.LoopKind) -> n.Nest:
    """``parallel k: for b: {if: [kind] i: vector j: sum}``"""
    rows = loop(I, 64, loop(J, 64, SUM), kind=kind)
    chosen = n.If((n.Compare("<", B, n.Num(3)),), block(rows))
    inner = loop(B, 4, block(chosen), kind=n.LoopKind.SERIAL)
    return n.Nest("nested", (), (X, Y), block(loop(K, 4, inner, kind=n.LoopKind.PARALLEL)))


def hinted(rows: n.For, _: tuple[n.For, ...]) -> n.For:
    return replace(rows, body=block(HINT, *rows.body.statements))


@pytest.mark.parametrize(
    ("kinds", "kind", "asked"),
    [
        (IN_TURN, n.LoopKind.SERIAL, ["i", "b"]),
        (IN_TURN, n.LoopKind.PARALLEL, ["b"]),
        (OF_THREADS, n.LoopKind.SERIAL, ["k"]),
        (OVER_ROWS, n.LoopKind.SERIAL, ["i", "b", "k"]),
        (OVER_ROWS, n.LoopKind.ROWS, ["b", "k"]),
        (OVER_TERMS, n.LoopKind.ROWS, ["i", "b", "k"]),
        (OVER_TERMS, n.LoopKind.INTERLEAVE, ["b", "k"]),
    ],
)
def test_loops_of_these_kinds_ask_inner_ones_first(kinds: Kinds, kind: n.LoopKind, asked: list[str]) -> None:
    found: list[str] = []

    def ask(rows: n.For, around: tuple[n.For, ...]) -> n.For:
        found.append(rows.var)
        assert [each.var for each in around] == ["k", "b"][: len(around)]
        assert len(around) == {"k": 0, "b": 1, "i": 2}[rows.var]
        return rows

    nest = nested(kind)
    assert with_hints(nest, kinds, ask) == nest
    assert found == asked


def test_hints_stand_in_the_loops_that_asked() -> None:
    made = with_hints(nested(n.LoopKind.SERIAL), IN_TURN, hinted)
    (parallel,) = made.body.statements
    assert isinstance(parallel, n.For)
    (over,) = parallel.body.statements
    assert isinstance(over, n.For)
    assert HINT not in parallel.body.statements
    assert over.body.statements[0] == HINT


def test_interleaved_loops_ask_for_no_factor() -> None:
    """Squares are printed of a vector loop that stands alone."""
    tiles = [
        n.Nest("product", (), (X, Y), block(replace(loop(B, 64, _rows(kind), kind=n.LoopKind.SERIAL), step=16)))
        for kind in (n.LoopKind.SERIAL, n.LoopKind.INTERLEAVE)
    ]
    plain, interleaved = tiles
    assert prefetch_factors(plain) != plain
    assert prefetch_factors(interleaved) == interleaved


def _rows(kind: n.LoopKind) -> n.For:
    """``for i: [kind] k in b..b + 16: vector j: y[j] += x[k, i] * y[j]``"""
    total = n.Accumulate(Y, (J,), "add", n.Load(X, (K, I)))
    terms = n.For("k", B, n.Var("end"), block(loop(J, 64, total)), kind)
    return loop(I, 64, terms, kind=n.LoopKind.SERIAL)
