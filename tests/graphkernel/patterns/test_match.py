"""Matching rules and building their right sides."""

from __future__ import annotations

import numpy as np
import pytest

from graphkernel.errors import CatalogueError
from graphkernel.patterns.language import Const, Literal, Rewrite, Rule, Safety, Term, rewrite, rule
from graphkernel.patterns.match import Match, build, matches
from graphkernel.patterns.terms import exp
from kernelgen.tensor.graph import Builder, Value
from kernelgen.tensor.operators.elemwise import ABS, ADD, EXP, MUL, NEG, SUB
from kernelgen.tensor.types import TensorType, dtype, sym

F32 = TensorType((sym("N"), 4), dtype("float32"))


@rule(safety=Safety.EXACT)
def factor(x: Term, y: Term, z: Term) -> Rewrite:
    return rewrite(x * y + x * z, x * (y + z))


@rule(safety=Safety.EXACT)
def two_constants(x: Term, a: Const, b: Const) -> Rewrite:
    return rewrite((x + a) + b, x + (a + b))


@rule(safety=Safety.EXACT)
def to_zero(x: Term) -> Rewrite:
    return rewrite(x - x, 0)


def only(entry: Rule, root: Value) -> Match | None:
    return next(matches(entry, root.node), None)


@pytest.mark.parametrize("left", [(0, 1), (1, 0)])
@pytest.mark.parametrize("right", [(0, 2), (2, 0)])
@pytest.mark.parametrize("swapped", [False, True])
def test_every_order_of_commutative_operands_matches(
    left: tuple[int, int], right: tuple[int, int], swapped: bool
) -> None:
    """The orders of both products and of the sum are tried, which needs backtracking across levels."""
    b = Builder()
    values = [b.parameter(name, F32) for name in "xyz"]
    products = [b.emit(MUL, values[i], values[j]) for i, j in (left, right)]
    root = b.emit(ADD, *(products[::-1] if swapped else products))
    found = only(factor, root)
    assert found is not None
    assert found.value("x") == values[0]
    assert {found.value("y"), found.value("z")} == set(values[1:])
    assert len(found.nodes) == 3


def test_a_repeated_variable_must_be_one_value() -> None:
    b = Builder()
    x, y = b.parameter("x", F32), b.parameter("y", F32)
    assert only(to_zero, b.emit(SUB, x, y)) is None
    assert only(to_zero, b.emit(SUB, x, x)) is not None


def test_constants_match_const_only_and_are_folded_on_the_right() -> None:
    b = Builder()
    x = b.parameter("x", F32)
    root = b.emit(ADD, b.constant(3.0, "float32"), b.emit(ADD, b.constant(2.0, "float32"), x))
    found = only(two_constants, root)
    assert found is not None
    made = build(two_constants, found, {}, b)
    assert made is not None
    assert made.node.args[0] == x
    assert made.node.args[1].constant == np.float32(5.0)
    assert only(two_constants, b.emit(ADD, b.emit(ADD, x, x), x)) is None


def test_a_literal_is_spread_over_the_shape_of_the_result() -> None:
    b = Builder()
    x = b.parameter("x", F32)
    found = only(to_zero, b.emit(SUB, x, x))
    assert found is not None
    made = build(to_zero, found, {}, b)
    assert made is not None
    assert (made.op.name, made.type) == ("BroadcastTo", F32)


def test_the_right_side_must_have_the_type_of_the_left() -> None:
    @rule(safety=Safety.EXACT)
    def drops_a_broadcast(x: Term, y: Term) -> Rewrite:
        return rewrite(x + abs(y), x)

    b = Builder()
    x, y = b.parameter("x", TensorType((4,), dtype("float32"))), b.parameter("y", F32)
    found = only(drops_a_broadcast, b.emit(ADD, x, b.emit(ABS, y)))
    assert found is not None
    assert build(drops_a_broadcast, found, {}, b) is None


@pytest.mark.parametrize(
    ("number", "array", "expected"),
    [
        (0.0, np.float32(0.0), True),
        (0.0, np.float32(-0.0), False),
        (-0.0, np.float32(-0.0), True),
        (0.0, np.int32(0), True),
        (1.0, np.ones((2, 3), np.float32), True),
        (1.0, np.array([1.0, 2.0]), False),
        (1.0, np.ones((0,)), False),
        (0.0, np.float32(np.nan), False),
    ],
)
def test_literals(number: float, array: np.ndarray, expected: bool) -> None:
    assert Literal(number).matches(np.asarray(array)) is expected


def test_a_condition_is_asked() -> None:
    @rule(safety=Safety.EXACT)
    def only_matrices(x: Term) -> Rewrite:
        return rewrite(exp(x), x, when=lambda found: found.type("x").rank == 2)

    b = Builder()
    assert only(only_matrices, b.emit(EXP, b.parameter("x", F32))) is not None
    assert only(only_matrices, b.emit(EXP, b.parameter("x", TensorType((4,), dtype("float32"))))) is None


def test_a_rule_prints_as_its_equation() -> None:
    assert str(factor) == "factor: Add(Mul(x, y), Mul(x, z)) = Mul(x, Add(y, z))"
    assert str(to_zero) == "to_zero: Sub(x, x) = 0"


def test_a_bad_declaration_says_what_to_write() -> None:
    with pytest.raises(CatalogueError, match="use Term, Const or Attributes"):

        @rule(safety=Safety.EXACT)
        def wrong(x: Value) -> Rewrite:
            raise AssertionError("refused before it is called")

    with pytest.raises(CatalogueError, match="must be an operator"):

        @rule(safety=Safety.EXACT)
        def no_operator(x: Term) -> Rewrite:
            return rewrite(x, x)


def test_promises_depend_on_the_data_type() -> None:
    @rule(safety=Safety.DOMAIN, integers=Safety.EXACT)
    def minus_itself(x: Term) -> Rewrite:
        return rewrite(-x, x)

    assert minus_itself.safety_for(iter([dtype("int32")])) is Safety.EXACT
    assert minus_itself.safety_for(iter([dtype("bool"), dtype("float16")])) is Safety.DOMAIN
    assert NEG is minus_itself.equation.left.op
