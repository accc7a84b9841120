import math
from typing import Any

import numpy as np
import pytest
from kernel_examples import tensor

from kernelgen.composite.check import ARITIES
from kernelgen.composite.document import Operation
from kernelgen.composite.scalar_rules import ELEMENTWISE, PREDICATES, REDUCTIONS, ExprAlgebra
from kernelgen.composite.vocabulary import operator_named
from kernelgen.nest.nodes import Buffer, Call, Literal, Load, Space
from kernelgen.nest.scalars import SCALARS
from kernelgen.semantics.algebra import ArrayAlgebra
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64, INT32


def op(name, *inputs, dtype=FLOAT32):
    return Operation(name, inputs, (tensor("y", 4, dtype=dtype),), Attrs())


def load(name, dtype=FLOAT32):
    return Load(Buffer(name, dtype, (), Space.INPUT), ())


def functions_in(expression):
    if not isinstance(expression, Call):
        return set()
    return {expression.function}.union(*map(functions_in, expression.args))


@pytest.mark.parametrize("name", sorted(op.name for op in ELEMENTWISE))
def test_every_rule_builds_typed_calls_of_known_functions(name):
    operator = operator_named(name)
    rule, predicate = ELEMENTWISE[operator], operator in PREDICATES
    dtype = BOOL if name.startswith("Logical") else FLOAT32
    operands = [load(f"x{i}", BOOL if name == "Select" and i == 0 else dtype) for i in range(ARITIES.get(operator, 3))]
    found = rule(ExprAlgebra(), operands, op(name, dtype=BOOL if predicate else FLOAT32))
    assert functions_in(found) <= set(SCALARS)
    assert found.dtype == (BOOL if predicate else FLOAT32)


def test_reductions_name_associative_functions():
    assert set(REDUCTIONS.values()) == {"add", "mul", "maximum", "minimum", "logical_and", "logical_or"}


def test_constants_take_the_type_of_the_other_operand():
    found = ExprAlgebra().call("mul", load("x", FLOAT16), 2)
    assert found == Call("mul", (load("x", FLOAT16), Literal(2.0, FLOAT16)), FLOAT16)


def test_casting_a_literal_makes_a_literal():
    assert ExprAlgebra().cast(Literal(2.7, FLOAT32), INT32) == Literal(2, INT32)


def test_condition_of_select_becomes_bool():
    found = ExprAlgebra().call("select", load("c", FLOAT32), load("x"), 0.0)
    assert isinstance(found, Call)
    assert found.args[0] == Call("cast", (load("c", FLOAT32),), BOOL)


def evaluate(name, *values, dtype: Any = np.float32, **kinds):
    arrays = [np.asarray(v, dtype) for v in values]
    return ELEMENTWISE[operator_named(name)](ArrayAlgebra(), arrays, op(name, **kinds))


def test_fast_gelu_has_its_published_form_and_does_not_overflow():
    x = np.linspace(-8, 8, 33, dtype=np.float32)
    expected = x * np.exp(0.851 * (x - abs(x))) / (1 + np.exp(-1.702 * abs(x)))
    np.testing.assert_allclose(evaluate("FastGeLU", x), expected, rtol=1e-6)
    np.testing.assert_allclose(evaluate("FastGeLU", [-3e4, 3e4], dtype=np.float16), [0, 3e4])


def test_integer_division_rounds_towards_zero():
    assert evaluate("Div", [-7, 7], [2, -2], dtype=np.int32).tolist() == [-3, -3]


def test_zeros_like_ignores_nan():
    assert evaluate("ZerosLike", math.nan) == 0


def test_mod_keeps_the_sign_of_the_dividend_and_floor_mod_of_the_divisor():
    assert evaluate("Mod", -7.0, 3.0) == -1
    assert evaluate("FloorMod", -7.0, 3.0) == 2


def test_half_precision_rounds_after_every_function():
    one, tiny = np.float16(1), np.float16(2**-11)
    assert evaluate("AddN", one, tiny, tiny, dtype=np.float16) == one


def test_integers_are_computed_in_float64():
    assert evaluate("Sqrt", 16, dtype=np.int32).dtype == FLOAT64.numpy


def test_select_by_comparison():
    assert evaluate("SelectGT", [1.0, 2.0], [2.0, 1.0], [10.0, 10.0], [20.0, 20.0]).tolist() == [20, 10]
