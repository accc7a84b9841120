"""Divisions of vector loops: what lanes do not change goes out of them, and every place stays what it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import product

import numpy as np
import pytest

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import For, Index, Load, LoopKind, Nest, Num, Store, Var
from kernelgen.nest.walk import loads_of, statements
from kernelgen.transforms.common.settle_divisions import settle_divisions
from tests.support.nests import block, buffer, loop, output

C, J, K = Var("c"), Var("j"), Var("k")
X, Y = buffer("x", 1 << 12), output("y", 1 << 12)


def divided(index: Index, divisor: int, factor: int = 1) -> Index:
    return ix.multiply(ix.floor_divide(index, Num(divisor)), Num(factor))


def total(*parts: Index) -> Index:
    return reduce(ix.add, parts)


def lanes(divisor: int, factor: int) -> Index:
    return divided(total(C, J), divisor, factor)


def settled(place: Index, step: int, extent: int, first: int = 0) -> Index:
    """What a place becomes in a vector loop over ``j``, inside of loops over ``c`` in steps and over ``k``."""
    inner = loop(J, extent, Store(Y, (J,), Load(X, (place,))))
    inside = loop(K, 5, inner, kind=LoopKind.SERIAL)
    nest = Nest("divisions", (), (X, Y), block(For("c", Num(first), Num(first + 8 * step), block(inside), step=step)))
    (load,) = (load for part in statements(settle_divisions(nest).body) for load in loads_of(part))
    return load.index[0]


@pytest.mark.parametrize(
    ("place", "step", "extent", "found"),
    [
        pytest.param(lanes(4, 4), 16, 16, total(C, divided(J, 4, 4)), id="lanes of several groups"),
        pytest.param(
            lanes(4, 8), 16, 16, total(ix.multiply(C, Num(2)), divided(J, 4, 8)), id="more channels than results"
        ),
        pytest.param(lanes(4, 2), 16, 16, total(divided(C, 4, 2), divided(J, 4, 2)), id="fewer"),
        pytest.param(lanes(32, 32), 16, 16, divided(C, 32, 32), id="one group for all lanes"),
        pytest.param(lanes(16, 16), 16, 16, C, id="a group is a vector"),
        pytest.param(lanes(4, 4), 6, 16, lanes(4, 4), id="groups begin inside of a vector"),
        pytest.param(lanes(16, 16), 8, 16, lanes(16, 16), id="a vector has parts of two groups"),
        pytest.param(divided(total(K, J), 4, 4), 16, 16, divided(total(K, J), 4, 4), id="nothing is known of k"),
    ],
)
def test_what_stays_is_taken_out(place: Index, step: int, extent: int, found: Index) -> None:
    assert settled(place, step, extent) == found


def test_a_loop_that_begins_elsewhere_is_no_multiple() -> None:
    place = lanes(4, 4)
    assert settled(place, 16, 16, first=2) == place


def test_lanes_that_begin_below_0_may_be_in_two_groups() -> None:
    store = Store(Y, (J,), Load(X, (lanes(16, 16),)))
    inner = For("j", Num(-4), Num(12), block(store), LoopKind.VECTOR)
    nest = Nest("divisions", (), (X, Y), block(For("c", Num(16), Num(64), block(inner), step=16)))
    (load,) = (load for part in statements(settle_divisions(nest).body) for load in loads_of(part))
    for j in (-4, 11):
        assert value(load.index[0], {"c": Num(16), "j": Num(j)}) == (16 + j) // 16 * 16


def test_every_place_stays_what_it_is() -> None:
    """Random sums, divisors, steps and extents: of some the division changes, of all no place does."""
    random, changed = np.random.default_rng(0), 0
    for _ in range(400):
        step, divisor = int(random.choice([1, 2, 4, 6, 8, 16])), int(random.choice([2, 3, 4, 8, 16, 32]))
        extent, first = int(random.integers(1, 20)), int(random.integers(-2, 3)) * 4
        factor = int(random.choice([1, 2, 4, 8, 32]))
        of_loops = [
            ix.multiply(variable, Num(int(random.integers(least, most))))
            for variable, least, most in ((C, -2, 3), (J, 0, 3), (K, 0, 5))
        ]
        parts = [*of_loops, Num(int(random.integers(-8, 9)))]
        order = random.permutation(len(parts))
        place = total(divided(total(*(parts[k] for k in order)), divisor, factor), J)
        found = settled(place, step, extent, first)
        changed += found != place
        for at in places(step, extent, first):
            assert value(found, at) == value(place, at), (place, found, at)
    assert changed > 20


def places(step: int, extent: int, first: int) -> Iterator[Mapping[str, Index]]:
    for c, k, j in product(range(first, first + 8 * step, step), range(5), range(extent)):
        yield {"c": Num(c), "k": Num(k), "j": Num(j)}


def value(index: Index, at: Mapping[str, Index]) -> int:
    found = ix.substitute(index, at)
    assert isinstance(found, Num)
    return found.value
