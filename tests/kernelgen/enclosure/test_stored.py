"""Ranges of products with stored weights: what other orders of the sums round, and what rows of fixed point do."""

from __future__ import annotations

import numpy as np
import pytest
from operator_kernels import Given, one

from kernelgen.composite.description import KernelDesc
from kernelgen.enclosure import Interval, agree, enclose
from kernelgen.enclosure.stored import HALF_UNIT, PIECE_BYTES
from kernelgen.enclosure.table import ON_FIXED_POINT, RULES, Rules

F = "float32"
COLUMNS = 5


def product(bits: int, groups: int, terms: int, each: int) -> KernelDesc:
    """One row times weights of so many ``bits``, in groups of so many terms; ``each``: scales, and zero points."""
    weights: Given = ("uint8" if bits == 4 else "int8", (groups, terms * bits // 8, COLUMNS))
    more: list[Given] = [(F, (groups, COLUMNS))] * each
    given: list[Given] = [(F, (1, groups * terms)), weights, *more]
    return one("StoredMatMul", given, [(F, (1, COLUMNS))], bits=bits * (bits == 4))


def ones(bits: int, groups: int, held: int) -> np.ndarray:
    """Weights that all stand for 1; two of four bits in a byte."""
    return np.full((groups, held, COLUMNS), *((0x99, np.uint8) if bits == 4 else (1, np.int8)))


def ranges(desc: KernelDesc, *inputs: np.ndarray, rules: Rules = RULES) -> Interval:
    (found,) = enclose(desc, inputs, rules)
    return found


def is_within(found: np.ndarray, wanted: Interval) -> bool:
    return not agree(["y"], [found.astype(np.float32)], [wanted]).fault


BITS = pytest.mark.parametrize("bits", [4, 8])


@BITS
def test_terms_are_off_by_half_a_unit_of_their_piece(bits: int) -> None:
    """A row whose first term is large and has no weight: pieces of it lose digits, those behind it none."""
    length = PIECE_BYTES * 8 // bits
    desc = product(bits, 1, 2 * length, 0)
    x, weights = np.ones((1, 2 * length), np.float32), ones(bits, 1, 2 * PIECE_BYTES)
    x[0, 0], weights[0, 0] = 2.0**20, 0x98 if bits == 4 else 0
    sums = np.full((1, COLUMNS), 2.0 * length - 1)
    exact, fixed = (ranges(desc, x, weights, rules=rules) for rules in (RULES, ON_FIXED_POINT))
    lost = (length - 1) * 2.0**20 * HALF_UNIT
    for away in (lost, -lost):
        assert not is_within(sums + away, exact)
        assert is_within(sums + away, fixed)
        assert not is_within(sums + 1.2 * away, fixed)


@BITS
def test_each_group_has_units_of_its_own(bits: int) -> None:
    desc = product(bits, 2, 32, 1)
    x, scales = np.ones((1, 64), np.float32), np.asarray([[0.0] * COLUMNS, [1.0] * COLUMNS], np.float32)
    x[0, :32] = 2.0**30
    fixed = ranges(desc, x, ones(bits, 2, 4 * bits), scales, rules=ON_FIXED_POINT)
    assert is_within(np.full((1, COLUMNS), 32.0), fixed)
    assert not is_within(np.full((1, COLUMNS), 32.01), fixed)


def test_nothing_is_known_of_fixed_point_with_an_infinity() -> None:
    desc = product(8, 1, 16, 0)
    x, weights = np.ones((1, 16), np.float32), np.ones((1, 16, COLUMNS), np.int8)
    x[0, 3] = np.inf
    assert np.isposinf(ranges(desc, x, weights).low).all()
    assert ranges(desc, x, weights, rules=ON_FIXED_POINT).unknown.all()


def test_a_zero_point_may_multiply_the_sum_of_the_row() -> None:
    desc = product(8, 1, 16, 2)
    x = np.random.default_rng(0).random((1, 16)).astype(np.float32)
    weights, ones = np.full((1, 16, COLUMNS), 100, np.int8), np.ones((1, COLUMNS), np.float32)
    found = ranges(desc, x, weights, ones, ones * np.float32(100))
    apart = np.float32(100) * x.sum(dtype=np.float64) * 2.0**-24
    assert is_within(np.full((1, COLUMNS), 2 * apart), found)
    assert not is_within(np.full((1, COLUMNS), 12 * apart), found)


def test_an_infinite_scale_says_nothing_of_its_column_alone() -> None:
    desc = product(8, 1, 16, 1)
    x, weights = np.ones((1, 16), np.float32), np.ones((1, 16, COLUMNS), np.int8)
    x[0, 3], scales = -1, np.ones((1, COLUMNS), np.float32)
    scales[0, 2] = np.inf
    assert ranges(desc, x, weights, scales).unknown.tolist() == [[False, False, True, False, False]]


def test_what_four_bits_stand_for_less_may_be_subtracted_from_one_row() -> None:
    """Numbers that are 0 are held as 8: sums of one row are apart, those of two are not."""
    x = np.random.default_rng(0).random((1, 16)).astype(np.float32)
    weights = np.full((1, 8, COLUMNS), 0x88, np.uint8)
    apart = np.float32(8) * x.sum(dtype=np.float64) * 2.0**-24
    row, rows = (
        one("StoredMatMul", [(F, (count, 16)), ("uint8", weights.shape)], [(F, (count, COLUMNS))], bits=4)
        for count in (1, 2)
    )
    assert is_within(np.full((1, COLUMNS), 2 * apart), ranges(row, x, weights))
    assert not is_within(np.full((1, COLUMNS), 12 * apart), ranges(row, x, weights))
    assert not is_within(np.full((2, COLUMNS), 2 * apart), ranges(rows, np.concatenate([x, x]), weights))


def test_nothing_is_known_of_one_row_of_four_bits_with_an_infinity() -> None:
    x, weights = np.ones((1, 16), np.float32), np.full((1, 8, COLUMNS), 0x99, np.uint8)
    x[0, 3] = np.inf
    assert ranges(product(4, 1, 16, 0), x, weights).unknown.all()
    rows = one("StoredMatMul", [(F, (2, 16)), ("uint8", weights.shape)], [(F, (2, COLUMNS))], bits=4)
    assert np.isposinf(ranges(rows, np.concatenate([x, x]), weights).low).all()
