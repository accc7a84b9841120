"""Splitting dims so that reshapes become regroupings."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from kernelgen.poly.model.axes import Axis, join, match
from kernelgen.tensor.dims import Dim, product, sym


def extents(axes: list[Axis]) -> list[Dim]:
    return [leaf.extent for axis in axes for leaf in axis.leaves]


def test_a_reshape_that_lines_up_gets_common_leaves() -> None:
    left, right = [Axis(24), Axis(5)], [Axis(6), Axis(20)]
    assert match(left, right)
    assert extents(left) == extents(right) == [6, 4, 5]


def test_a_reshape_that_does_not_line_up_is_refused() -> None:
    assert not match([Axis(6), Axis(4)], [Axis(4), Axis(6)])


def test_axes_that_meet_each_other_in_both_orders_become_one() -> None:
    a, b = Axis(7), Axis(7)
    assert match([a, b], [b, a])
    assert a.representative is b.representative
    assert extents([a, b]) == [7, 7]


def test_joined_axes_split_together() -> None:
    a, b = Axis(12), Axis(12)
    assert join(a, b)
    assert match([a], [Axis(3), Axis(4)])
    assert extents([b]) == [3, 4]
    assert a.leaves == b.leaves


def test_rigid_axes_stay_whole() -> None:
    assert not match([Axis(12, rigid=True)], [Axis(3), Axis(4)])


def test_symbolic_products_split() -> None:
    n, m = sym("N"), sym("M")
    whole = Axis(n * m * 4)
    assert match([whole], [Axis(n), Axis(m), Axis(4)])
    assert extents([whole]) == [n, m, 4]


@given(st.lists(st.integers(2, 7), min_size=1, max_size=6), st.data())
def test_any_two_groupings_of_the_same_factors_match(factors: list[int], data: st.DataObject) -> None:
    def grouped() -> list[Axis]:
        cuts = sorted(data.draw(st.sets(st.integers(1, len(factors) - 1)))) if len(factors) > 1 else []
        bounds = [0, *cuts, len(factors)]
        return [Axis(prod(factors[a:b])) for a, b in pairwise(bounds)]

    left, right = grouped(), grouped()
    assert match(left, right)
    assert extents(left) == extents(right)
    assert product(extents(left)) == prod(factors)
