"""Loops are taken apart where a clamp begins or ceases to matter: same elements, regular places in every piece."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from kernel_examples import Writer, tensor
from nests import I, J, block, buffer, local, loop, output

from kernelgen.driver import compile
from kernelgen.meaning import reference
from kernelgen.nest.index import add, maximum, minimum, multiply
from kernelgen.nest.nodes import Alloc, For, Index, Let, Load, LoopKind, Nest, Num, Ref, Statement, Store
from kernelgen.nest.peel import peel
from kernelgen.nest.text import show
from kernelgen.nest.verify import verify
from kernelgen.nest.walk import statements
from kernelgen.samples import draw

X, Y = buffer("x", 10), output("y", 14)


def clamped(place: Index) -> Index:
    return minimum(maximum(place, Num(0)), Num(9))


def copying(place: Index, *before: Statement, kind: LoopKind = LoopKind.VECTOR) -> Nest:
    body = (*before, Let("v", Load(X, (place,))), Store(Y, (J,), Ref("v", X.dtype)))
    return Nest("case", (), (X, Y), block(loop(J, 14, *body, kind=kind)))


def bounds(nest: Nest) -> list[tuple[Index, Index]]:
    return [(part.lower, part.upper) for part in statements(nest.body) if isinstance(part, For)]


def ranges(*ends: int) -> list[tuple[Index, Index]]:
    return [(Num(low), Num(high)) for low, high in itertools.pairwise(ends)]


def test_a_window_has_a_border_at_each_side() -> None:
    peeled = peel(copying(clamped(add(J, Num(-2)))))
    verify(peeled)
    assert bounds(peeled) == ranges(0, 2, 12, 14)
    text = show(peeled)
    assert "x[0]" in text
    assert "x[9]" in text
    assert "min" not in text


def test_places_that_move_by_two_end_earlier() -> None:
    peeled = peel(copying(clamped(add(multiply(J, Num(2)), Num(-3)))))
    verify(peeled)
    assert bounds(peeled) == ranges(0, 2, 7, 14)


@pytest.mark.parametrize(
    "nest",
    [
        copying(clamped(I), kind=LoopKind.SERIAL),
        copying(clamped(J), kind=LoopKind.SERIAL),
        copying(clamped(J), Alloc(local("t"))),
    ],
    ids=["another loop's place", "a serial loop", "a loop that allocates"],
)
def test_others_stay(nest: Nest) -> None:
    assert peel(nest) is nest or peel(nest) == nest


def test_padding_on_ascend_is_right_and_has_regular_copies() -> None:
    w, x = Writer(), tensor("x", 6, 20)
    padded = w.op("PadAkg", x, shape=(9, 25), head=(1, 2), tail=(2, 3), pad_val=1.5)
    desc = w.desc("padded", (x,), padded)
    kernel = compile(desc, "ascend")
    assert any("_1" in part.name for part in statements(kernel.nest.body) if isinstance(part, Let))
    (found,), (wanted,) = kernel(*draw(desc)), reference(desc)(*draw(desc))
    np.testing.assert_array_equal(found, wanted)
