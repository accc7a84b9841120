"""What makes two operators one computation."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.compare import computation
from kernelgen.tensor.dtypes import FLOAT32
from kernelgen.tensor.graph import PARAMETER, Builder, Node, Value
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.elemwise import ADD, SUB
from kernelgen.tensor.operators.families import declare
from kernelgen.tensor.operators.type_rules import broadcasting, number
from kernelgen.tensor.types import TensorType

TYPE = TensorType((4,), FLOAT32)
X, Y = (Node(PARAMETER, (), Attrs(), (TYPE,), name).out for name in "xy")
SUM = declare("Sum", Kind.ELEMWISE, None, broadcasting(number), lambda *arrays, attrs: sum(arrays), commutative=True)


def key(op, *args: Value, **attrs: object) -> object:
    return computation(Node(op, args, Attrs.of(attrs), (TYPE,), "made"), args)


def test_operands_of_commutative_operators_may_change_places() -> None:
    assert key(ADD, X, Y) == key(ADD, Y, X)
    assert key(ADD, X, X) != key(ADD, X, Y)
    assert key(SUB, X, Y) != key(SUB, Y, X)


def test_how_often_an_operand_is_given_counts() -> None:
    assert key(SUM, X, X, Y) != key(SUM, X, Y, Y)


@pytest.mark.parametrize(("a", "b"), [(1, True), (1, 1.0), (0.0, -0.0)])
def test_attributes_that_python_calls_equal_are_not(a: float, b: float) -> None:
    assert key(ADD, X, Y, how=a) != key(ADD, X, Y, how=b)


def test_constants_are_equal_by_content() -> None:
    one, same, other = (Builder().constant(np.full(4, value, np.float32)) for value in (1, 1, 2))
    assert key(ADD, X, one) == key(ADD, X, same)
    assert key(ADD, X, one) != key(ADD, X, other)
