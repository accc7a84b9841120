"""Terms: the laws that reductions may use, and that nothing else is equal."""

from __future__ import annotations

from functools import partial, reduce
from itertools import permutations

import kernel_examples as examples
import pytest
from kernel_examples import Writer, tensor

from kernelgen.checker.described import described_terms, without_terms
from kernelgen.checker.terms import FUNCTIONS, conversion, element, function, known, literal, neutral, rank
from kernelgen.composite.link import unlinked
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.scalars import REDUCTIONS
from kernelgen.tensor.dtypes import BOOL, COMPLEX64, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, UINT8

VALUES = [element(0, k) for k in range(4)]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_take_their_terms_in_any_order_and_each_once(name: str) -> None:
    combine = FUNCTIONS[name]
    found = {reduce(combine, order) for order in permutations(VALUES)}
    assert len(found) == 1
    assert combine(combine(VALUES[0], VALUES[1]), combine(VALUES[2], VALUES[3])) in found
    assert reduce(combine, VALUES[:3]) not in found
    assert reduce(combine, [*VALUES, VALUES[0]]) not in found


@pytest.mark.parametrize("kind", [FLOAT32, FLOAT16, INT8, INT32, UINT8], ids=str)
@pytest.mark.parametrize("name", ["add", "mul", "maximum", "minimum"])
def test_the_neutral_element_changes_nothing(name, kind) -> None:
    start = literal(neutral_element(name, kind).value, kind)
    assert start == neutral(name, kind)
    assert function(name, kind)(start, VALUES[0]) == VALUES[0]


def test_constants_are_the_floats_of_their_type() -> None:
    rounded = 1.7020000219345093
    assert literal(1.702, FLOAT32) == literal(rounded, FLOAT32) != literal(1.703, FLOAT32)
    assert literal(1.702, FLOAT64) != literal(rounded, FLOAT64)


@pytest.mark.parametrize("name", ["logical_and", "logical_or"])
def test_the_neutral_truth_value_changes_nothing(name) -> None:
    start = literal(neutral_element(name, BOOL).value, BOOL)
    assert FUNCTIONS[name](VALUES[0], start) == VALUES[0]


def test_operands_have_an_order_where_it_matters() -> None:
    a, b = VALUES[:2]
    assert FUNCTIONS["sub"](a, b) != FUNCTIONS["sub"](b, a)
    assert FUNCTIONS["div"](a, b) != FUNCTIONS["div"](b, a)
    assert FUNCTIONS["exp"](a) != FUNCTIONS["log"](a)


def test_constants_differ() -> None:
    values = [literal(v, FLOAT32) for v in (0.0, 1.0, -1.0, 0.5, float("nan"), float("inf"), float("-inf"))]
    assert len(set(values)) == len(values)


def test_only_conversions_that_lose_something_count() -> None:
    assert conversion(FLOAT16, FLOAT32) is None
    assert conversion(INT32, FLOAT32) is None
    assert conversion(FLOAT32, INT32) is not None
    to_number, to_bool = conversion(BOOL, FLOAT32), conversion(FLOAT32, BOOL)
    assert to_number is not None
    assert to_bool is not None
    assert [to_number(literal(v, BOOL)) for v in (False, True)] == [0, 1]
    assert to_bool(VALUES[0]) != VALUES[0]


def test_a_description_says_what_its_outputs_hold() -> None:
    w, x = Writer(), tensor("x", 2, 3)
    desc = w.desc("k", (x,), w.op("ReduceSum", x, shape=(3,), axis=(0,)))
    (found,) = described_terms(unlinked(desc), {})
    assert list(found) == [FUNCTIONS["add"](element(0, k), element(0, k + 3)) for k in range(3)]


def test_products_and_scans_are_sums_of_products() -> None:
    w, x, y = Writer(), tensor("x", 2, 2), tensor("y", 2, 2)
    desc = w.desc("k", (x, y), w.op("MatMul", x, y, shape=(2, 2)), w.op("CumSum", x, shape=(2, 2), axis=0))
    product, running = described_terms(unlinked(desc), {})
    parts = [FUNCTIONS["mul"](element(0, k), element(1, 2 * k)) for k in range(2)]
    assert product[0] == FUNCTIONS["add"](*parts)
    assert running[2] == FUNCTIONS["add"](element(0, 0), element(0, 2))


def test_updated_inputs_come_after_the_outputs() -> None:
    assert [len(part) for part in described_terms(unlinked(examples.exchange(7)), {})] == [7, 7, 7, 6]


def test_operators_without_terms_are_named() -> None:
    w, x = Writer(), tensor("x", 5)
    assert without_terms(w.document("k", (x,), w.op("Custom", x, shape=(5,)))) == "Custom"
    z = tensor("z", 5, dtype=COMPLEX64)
    other = Writer()
    assert without_terms(other.document("k", (z,), other.op("Exp", z, shape=(5,)))) == "Exp"
    assert without_terms(unlinked(examples.softmax())) == ""


def test_small_integers_are_known_and_compared() -> None:
    minus_two, seven = literal(-2, INT32), literal(7, INT32)
    assert [known(number) for number in (minus_two, seven)] == [-2, 7]
    assert known(element(0, 0)) is None
    assert function("less", INT32)(minus_two, seven) == literal(True, BOOL)
    assert function("less", FLOAT32)(minus_two, seven) not in (literal(True, BOOL), literal(False, BOOL))


def test_numbers_have_an_order_where_extremes_are_looked_for() -> None:
    greatest, least = literal(float("inf"), FLOAT32), literal(float("-inf"), FLOAT32)
    order = sorted([*VALUES, greatest, least], key=partial(rank, FLOAT32))
    assert [order[0], order[-1]] == [least, greatest]
    maximum = function("maximum", FLOAT32, ordered=True)
    assert reduce(maximum, VALUES) == order[-2]
    assert function("equal", FLOAT32, ordered=True)(VALUES[0], VALUES[0]) == literal(True, BOOL)


def test_constants_are_computed() -> None:
    w, x = Writer(), tensor("x", 5, dtype=INT32)
    zeros = w.op("ZerosLike", x, shape=(5,))
    desc = w.desc("k", (x,), w.op("Minimum", zeros, zeros, shape=(5,)))
    assert list(described_terms(unlinked(desc), {})[0]) == [literal(0, INT32)] * 5
