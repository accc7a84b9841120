"""Every declared operator: its type rule, its numpy meaning and its text agree, for every data type and symbolic shapes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from graphkernel.errors import TypeRuleError
from graphkernel.ops import OPS
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.operator import Kind, Operator
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.operators.type_rules import any_dtype, broadcasting
from kernelgen.tensor.order import results_of
from kernelgen.tensor.text import parse
from kernelgen.tensor.types import Attrs, AttrValue, Category, Sym, TensorType, dtype
from kernelgen.tensor.verify import verify
from tests.support.operator_samples import TAKE_TWO, Case, bound, cases, computed_cases
from tests.support.operator_values import Values, hard, mixed, positive

ALL_VALUES = (positive, mixed, hard)
WIDE = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}
JUMPS = {"FloorDiv", "FloorMod", "Mod", "DivMod"}  # a last bit of the quotient decides about a whole one


@pytest.fixture(params=OPS)
def op(request: pytest.FixtureRequest) -> Operator:
    return OPS[request.param]


def test_some_case_is_accepted(op: Operator) -> None:
    assert list(cases(op)), f"{op.name} needs a line in SAMPLES that its type rule accepts"


@pytest.mark.parametrize("values", ALL_VALUES)
def test_the_type_rule_agrees_with_the_meaning(op: Operator, values: Values) -> None:
    for case in computed_cases(op):
        promised = [(type_.shape, type_.dtype.numpy) for type_ in op.infer(case.bound, case.attrs)]
        given = [(result.shape, result.dtype) for result in case.results(case.arrays(values))]
        assert given == promised, case


def test_symbolic_shapes_give_what_static_ones_do(op: Operator) -> None:
    for case in cases(op):
        symbolic = op.infer(case.types, case.sample.attrs)
        assert tuple(bound(type_) for type_ in symbolic) == op.infer(case.bound, case.attrs), case


def test_one_operator_as_a_graph(op: Operator) -> None:
    """It verifies, its text reads back, and evaluating it gives the meaning."""
    for case in cases(op):
        graph = as_graph(case)
        verify(graph)
        assert parse(str(graph), OPS) == graph, str(graph)
        arrays = case.arrays(mixed)
        if op.name in TAKE_TWO:
            continue
        results = dict(zip(graph.outputs, case.results(arrays), strict=True))
        wanted = [results[value] for value in results_of(graph)]
        for found, expected in zip(evaluate(graph, arrays), wanted, strict=True):
            np.testing.assert_array_equal(comparable(found), comparable(expected))


def as_graph(case: Case) -> Graph:
    builder = Builder()
    inputs = tuple(builder.parameter(f"x{i}", type_) for i, type_ in enumerate(case.types))
    symbols = {name for type_ in case.types for dim in type_.shape if not isinstance(dim, int) for name in dim.symbols}
    attrs = case.sample.attrs if symbols_in(tuple(case.sample.attrs.values())) <= symbols else case.attrs
    return Graph("one", inputs, builder.node(case.op, inputs, attrs).outs)


@pytest.mark.parametrize("values", [positive, mixed])
def test_float64_gives_nearly_the_same(op: Operator, values: Values) -> None:
    for case in computed_cases(op):
        wide = widened(case)
        if wide is None or op.name in JUMPS:
            continue
        arrays = case.arrays(values)
        exact = wide.results([array.astype(type_.dtype.numpy) for array, type_ in zip(arrays, wide.bound, strict=True)])
        for found, expected in zip(case.results(arrays), exact, strict=True):
            assert_near(found, expected, case)


@pytest.mark.parametrize("values", ALL_VALUES)
def test_narrow_floats_are_rounded_once(op: Operator, values: Values) -> None:
    """float16 computes as float32 does, infinities and NaN included."""
    for case in computed_cases(op):
        types = op.infer(case.bound, case.attrs)
        if case.of.name != "float16" or not all(type_.dtype.is_float for type_ in types) or op.name == "Cast":
            continue
        arrays = case.arrays(values)
        wide = Case(op, case.sample, dtype("float32"))
        exact = wide.results([array.astype(type_.dtype.numpy) for array, type_ in zip(arrays, wide.bound, strict=True)])
        for narrow, long in zip(case.results(arrays), exact, strict=True):
            with np.errstate(over="ignore"):
                np.testing.assert_allclose(narrow, long.astype(narrow.dtype), rtol=1e-3, err_msg=str(case))


@pytest.mark.parametrize("values", ALL_VALUES)
@pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.commutative])
def test_commutative_operators_commute(name: str, values: Values) -> None:
    """To the last bit; complex products, which numpy computes with fused operations, nearly and where they are finite."""
    for case in cases(OPS[name]):
        x, y = case.arrays(values)
        for left, right in zip(case.results([x, y]), case.results([y, x]), strict=True):
            if left.dtype.kind != "c":
                np.testing.assert_array_equal(comparable(left), comparable(right))
            elif values is not hard:
                np.testing.assert_allclose(left, right, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.arity is not None])
def test_a_wrong_operand_count_and_an_unknown_attribute_are_refused(name: str) -> None:
    x, arity = TensorType((2, 3), dtype("f32")), OPS[name].arity or 0
    with pytest.raises(TypeRuleError, match=rf"^{name}\(.*takes \d+ operands?, got {arity + 1}"):
        OPS[name].infer((x,) * (arity + 1), Attrs())
    with pytest.raises(TypeRuleError, match="has no attribute 'bogus'"):
        OPS[name].infer((x,) * arity, Attrs.of(bogus=1))


def test_names_are_unique_and_leaves_are_not_among_them() -> None:
    assert all(op.name == name for name, op in OPS.items())
    assert "Parameter" not in OPS


# ---------------------------------------------------------------- the checks find what is wrong


def test_a_wrong_shape_is_found() -> None:
    with pytest.raises(AssertionError):
        test_the_type_rule_agrees_with_the_meaning(faulty(lambda x, *, attrs: x.reshape(-1)), positive)


def test_computing_in_half_precision_is_found() -> None:
    def in_half(x: Array, *, attrs: Attrs) -> Array:
        return ((x.astype(x.dtype) * x) * x).astype(x.dtype) - x

    with pytest.raises(AssertionError):
        test_narrow_floats_are_rounded_once(faulty(in_half), mixed)


def test_a_result_that_depends_on_the_data_type_is_found() -> None:
    def by_type(x: Array, *, attrs: Attrs) -> Array:
        return x if x.dtype == np.float64 else x * x.dtype.type(1.01)

    with pytest.raises(AssertionError):
        test_float64_gives_nearly_the_same(faulty(by_type), mixed)


def faulty(meaning: object) -> Operator:
    return declare("Abs", Kind.ELEMWISE, 1, broadcasting(any_dtype), meaning)  # pyright: ignore[reportArgumentType]


# ---------------------------------------------------------------- helpers


def symbols_in(value: AttrValue) -> set[str]:
    """The symbols of an attribute; those that no operand has cannot be in a graph either."""
    if isinstance(value, tuple):
        return {name for item in value for name in symbols_in(item)}
    return set(value.symbols) if isinstance(value, Sym) else set()


def widened(case: Case) -> Case | None:
    """The case in float64, if its results are floats that depend on the data type."""
    if case.of.name not in WIDE:
        return None
    wide = Case(case.op, case.sample, dtype(WIDE[case.of.name]))
    try:
        case.op.infer(wide.bound, case.attrs)
    except TypeRuleError:
        return None
    return wide


def assert_near(found: Array, expected: Array, case: Case) -> None:
    if dtype(found.dtype).category not in (Category.FLOAT, Category.COMPLEX):
        return
    eps = float(ml_dtypes.finfo(found.dtype).eps)
    with np.errstate(all="ignore"):
        ours, true = comparable(found), comparable(expected.astype(found.dtype))
        finite = np.abs(true)[np.isfinite(true)]
    scale = max(1.0, float(finite.max(initial=0)))
    np.testing.assert_allclose(ours, true, rtol=32 * eps, atol=32 * eps * scale, err_msg=str(case))


def comparable(array: Array) -> Array:
    """numpy does not know that bfloat16 has NaNs; complex numbers keep both parts."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
