"""Operators that a package of a user declares: in kernels of every machine, checked, and held to their numpy meaning."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_examples import tensor
from typer.testing import CliRunner

from kernelgen.__main__ import app
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.document import Document, Operation
from kernelgen.composite.element_reads import element_reads
from kernelgen.composite.link import linked, unlinked
from kernelgen.composite.read import load_desc
from kernelgen.composite.user_operators import operators_in
from kernelgen.composite.vocabulary import operator_named
from kernelgen.composite.write import dump_desc
from kernelgen.driver import compile
from kernelgen.errors import ArgumentError, DescError, UnsupportedError
from kernelgen.system.bounded_io import write_whole
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, DType
from kernelgen.tensor.operator import Kind, Operator, Traits
from kernelgen.tensor.operators.families import Array, binary, declare, result_bool, unary
from kernelgen.tensor.operators.type_rules import broadcasting, number, real
from kernelgen.tensor.types import Dim, TensorType, sym
from kernelgen.verify import Status
from kernelgen.verify.verify_one import verify

SOFT_SQUARE = unary("SoftSquare", lambda x: x * np.abs(x), scalar=lambda f, x: f.call("mul", x, f.call("abs", x)))
UNSIGNED = unary("SoftSquare", lambda x: x * np.abs(x), scalar=lambda f, x: f.call("mul", x, x))
GAP = binary(
    "Gap",
    lambda x, y: np.maximum(x, y) - np.minimum(x, y),
    number,
    scalar=lambda f, x, y: f.call("sub", f.call("maximum", x, y), f.call("minimum", x, y)),
)
SCALED = declare(
    "Scaled",
    Kind.ELEMWISE,
    1,
    broadcasting(real),
    lambda x, attrs: (x * x.dtype.type(attrs.number("factor"))).astype(x.dtype),
    attributes=("factor",),
    scalar=lambda f, x, *, attrs: f.call("mul", x, attrs.number("factor")),
)
IS_TINY = declare(
    "IsTiny",
    Kind.ELEMWISE,
    1,
    broadcasting(real, BOOL),
    result_bool(lambda x: np.abs(x) < 1),
    scalar=lambda f, x, *, attrs: f.call("less", f.call("abs", x), 1.0),
)


def _rows_type(types: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
    table, ids = types
    return (TensorType((*ids.shape, *table.shape[1:]), table.dtype),)


def _row(f: Any, *places: Any, attrs: Attrs) -> Any:
    """The row that an id names, the nearest one where there is none."""
    return f.at(0, f.nearest(f.at(1, *places[:2]), f.extent(0, 0)), places[2])


def _row_or_zero(f: Any, *places: Any, attrs: Attrs) -> Any:
    number = f.at(1, *places[:2])
    return f.call("select", f.inside(number, f.extent(0, 0)), _row(f, *places, attrs=attrs), 0.0)


def _rolled(f: Any, *places: Any, attrs: Attrs) -> Any:
    row, column = places
    length = f.extent(0, 1)
    wanted = f.call("floor_mod", f.call("sub", f.number(column), f.at(1, row)), length)
    return f.at(0, row, f.nearest(wanted, length))


def _outside_is_zero(table: Array, ids: Array, *, attrs: Attrs) -> Array:
    inside = (ids >= 0) & (ids < len(table))
    return np.where(inside[..., None], table[np.where(inside, ids, 0)], 0).astype(table.dtype)


def _each_row_rolled(x: Array, by: Array, *, attrs: Attrs) -> Array:
    return np.stack([np.roll(row, shift) for row, shift in zip(x, by, strict=True)])


def structural(name: str, rule: Any, meaning: Any, element: Any) -> Operator:
    moves = Traits(moves=True)
    return declare(name, Kind.OPAQUE, 2, rule, meaning, indices=(1,), traits=moves, element=element)


NEAREST_ROWS = structural("Rows", _rows_type, lambda x, i, attrs: x[np.clip(i, 0, len(x) - 1)], _row)
ROWS_OR_ZERO = structural("RowsOrZero", _rows_type, _outside_is_zero, _row_or_zero)
WRONG_ROWS = structural("Rows", _rows_type, _outside_is_zero, _row)
ROLL = structural("RollRows", lambda types, attrs: types[:1], _each_row_rolled, _rolled)

TARGETS = ("cpu", "gpu", "ascend")


def kernel(operator: Operator, kind: DType = FLOAT32, result: DType | None = None, **attrs: float) -> KernelDesc:
    """The operator on arrays, with an operator of AKG's in front of it."""
    inputs = tuple(tensor(f"x{place}", 3, 9, dtype=kind) for place in range(operator.arity or 1))
    first, y = tensor("t", 3, 9, dtype=kind), tensor("y", 3, 9, dtype=result or kind)
    before = Operation("Neg", (inputs[0],), (first,), Attrs())
    return linked(
        Document(
            "Fused",
            inputs,
            (y,),
            (before, Operation(operator.name, (first, *inputs[1:]), (y,), Attrs.of(attrs), operator)),
        )
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", [FLOAT16, BFLOAT16, FLOAT32, INT32])
def test_scalar_rules_run_on_every_machine_and_agree_with_numpy(target: str, kind: DType) -> None:
    for desc in (kernel(GAP, kind), kernel(SCALED, kind, factor=3.0)):
        record = verify(desc, target, checked=target != "gpu")
        assert record.status is Status.PASSED, record


@pytest.mark.parametrize("target", TARGETS)
def test_result_of_another_data_type(target: str) -> None:
    record = verify(kernel(IS_TINY, result=BOOL), target)
    assert record.status is Status.PASSED, record


def test_float64_is_computed_in_float64() -> None:
    x = np.array([[1 + 2.0**-40]] * 3) * np.ones(9)
    (y,) = compile(kernel(SOFT_SQUARE, FLOAT64))(x)
    np.testing.assert_array_equal(y, -x * x)


def test_rule_that_is_not_its_meaning_is_found() -> None:
    record = verify(kernel(UNSIGNED))
    assert record.status is Status.FAILED
    assert "by its numpy meaning" in record.message


def test_descriptions_are_held_to_the_type_rule() -> None:
    with pytest.raises(DescError, match="IsTiny gives bool, found float32"):
        kernel(IS_TINY)
    with pytest.raises(DescError, match="Gap takes 2 operands, found 1"):
        linked(Document("F", (tensor("x", 3),), (tensor("y", 3),), (_gap_of_one(),)))


def _gap_of_one() -> Operation:
    return Operation("Gap", (tensor("x", 3),), (tensor("y", 3),), Attrs(), GAP)


def test_files_are_read_with_the_operators_that_they_hold() -> None:
    desc = kernel(SCALED, factor=3.0)
    again = load_desc(dump_desc(desc), (SCALED,))
    assert again == desc
    assert load_desc(dump_desc(desc)).operators[-1].op is not SCALED


def test_operators_of_the_vocabulary_stay_what_they_are() -> None:
    other = unary("Neg", np.abs, scalar=lambda f, x: f.call("abs", x))
    assert load_desc(dump_desc(kernel(SCALED, factor=3.0)), (other, SCALED)).operators[0].op is operator_named("Neg")


def test_modules_that_cannot_be_imported_are_named() -> None:
    with pytest.raises(ArgumentError, match="no_such_module"):
        operators_in(["no_such_module"])


def test_commands_take_modules_of_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    (tmp_path / "gap_operator.py").write_text(
        "import numpy as np\n"
        "from kernelgen.tensor.operators.families import binary\n"
        "GAP = binary('Gap', lambda x, y: np.abs(x - y), scalar=lambda f, x, y: f.call('abs', f.call('sub', x, y)))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "gap.json"
    write_whole(file, json.dumps(dump_desc(kernel(GAP))), ArgumentError)
    found = CliRunner().invoke(app, ["certify", str(file), "--operators", "gap_operator"])
    assert found.exit_code == 0, found.output
    assert CliRunner().invoke(app, ["certify", str(file)]).exit_code != 0


def picking(operator: Operator, kind: DType = FLOAT32, rows: Dim = 5, ids: tuple[int, ...] = (2, 3)) -> KernelDesc:
    """The operator between two of AKG's, which run at the same elements before and behind it."""
    x, t, i = tensor("x", rows, 9, dtype=kind), tensor("t", rows, 9, dtype=kind), tensor("i", *ids, dtype=INT32)
    shape = (*ids, 9) if operator is not ROLL else (rows, 9)
    u, y = tensor("u", *shape, dtype=kind), tensor("y", *shape, dtype=kind)
    middle = Operation(operator.name, (t, i), (u,), Attrs(), operator)
    return linked(Document("Fused", (x, i), (y,), (Operation("Neg", (x,), (t,)), middle, Operation("Abs", (u,), (y,)))))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", [FLOAT16, FLOAT32])
@pytest.mark.parametrize("operator", [NEAREST_ROWS, ROWS_OR_ZERO], ids=lambda operator: operator.name)
def test_element_rules_run_on_every_machine_and_agree_with_numpy(operator: Operator, kind: DType, target: str) -> None:
    record = verify(picking(operator, kind), target, checked=target != "gpu")
    assert record.status is Status.PASSED, record
    assert all("terms" in seen for seen in record.checked.values())


@pytest.mark.parametrize("target", TARGETS)
def test_places_may_be_computed_from_operands(target: str) -> None:
    record = verify(picking(ROLL, rows=2, ids=(2,)), target, checked=target != "gpu")
    assert record.status is Status.PASSED, record


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_any_number(target: str) -> None:
    record = verify(picking(NEAREST_ROWS, rows=sym("n") + 1), target)
    assert record.status is Status.PASSED, record


def test_operand_without_elements_gives_zeros() -> None:
    (y,) = compile(picking(NEAREST_ROWS, rows=0))(np.zeros((0, 9), np.float32), np.zeros((2, 3), np.int32))
    np.testing.assert_array_equal(y, np.zeros((2, 3, 9)))


def test_element_rule_that_is_not_its_meaning_is_found() -> None:
    assert verify(picking(WRONG_ROWS)).status is Status.FAILED


def test_rule_that_reads_at_too_few_places_is_refused() -> None:
    flat = structural("Flat", _rows_type, _outside_is_zero, lambda f, *places, attrs: f.at(0, places[0]))
    with pytest.raises(UnsupportedError, match="Flat reads operand 0 of 2 dims at 1 places"):
        compile(picking(flat))


def test_results_of_an_element_rule_are_one() -> None:
    desc = picking(NEAREST_ROWS)
    _, middle, _ = unlinked(desc).ops
    two = replace(middle, outs=(*middle.outs, tensor("v", 2, 3, 9)))
    with pytest.raises(UnsupportedError, match="a rule of elements gives one"):
        element_reads(two, _row)
