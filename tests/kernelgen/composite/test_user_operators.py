"""Operators that a package of a user declares: in kernels of every machine, checked, and held to their numpy meaning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kernel_examples import tensor
from typer.testing import CliRunner

from kernelgen.__main__ import app
from kernelgen.composite.check import check
from kernelgen.composite.description import KernelDesc, OpDesc
from kernelgen.composite.read import load_desc
from kernelgen.composite.user_operators import operators_in
from kernelgen.composite.write import dump_desc
from kernelgen.driver import compile
from kernelgen.errors import ArgumentError, DescError
from kernelgen.system.bounded_io import write_whole
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, DType
from kernelgen.tensor.operator import Kind, Operator
from kernelgen.tensor.operators.families import binary, declare, result_bool, unary
from kernelgen.tensor.operators.type_rules import broadcasting, number, real
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
TARGETS = ("cpu", "gpu", "ascend")


def kernel(operator: Operator, kind: DType = FLOAT32, result: DType | None = None, **attrs: float) -> KernelDesc:
    """The operator on arrays, with an operator of AKG's in front of it."""
    inputs = tuple(tensor(f"x{place}", 3, 37, dtype=kind) for place in range(operator.arity or 1))
    first, y = tensor("t", 3, 37, dtype=kind), tensor("y", 3, 37, dtype=result or kind)
    before = OpDesc("Neg", (inputs[0],), (first,), Attrs())
    return KernelDesc(
        "Fused", inputs, (y,), (before, OpDesc(operator.name, (first, *inputs[1:]), (y,), Attrs.of(attrs), operator))
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
    x = np.array([[1 + 2.0**-40]] * 3) * np.ones(37)
    (y,) = compile(kernel(SOFT_SQUARE, FLOAT64))(x)
    np.testing.assert_array_equal(y, -x * x)


def test_rule_that_is_not_its_meaning_is_found() -> None:
    record = verify(kernel(UNSIGNED))
    assert record.status is Status.FAILED
    assert "by its numpy meaning" in record.message


def test_descriptions_are_held_to_the_type_rule() -> None:
    with pytest.raises(DescError, match="IsTiny gives bool, found float32"):
        check(kernel(IS_TINY))
    with pytest.raises(DescError, match="Gap takes 2 operands, found 1"):
        check(KernelDesc("F", (tensor("x", 3),), (tensor("y", 3),), (_gap_of_one(),)))


def _gap_of_one() -> OpDesc:
    return OpDesc("Gap", (tensor("x", 3),), (tensor("y", 3),), Attrs(), GAP)


def test_files_are_read_with_the_operators_that_they_hold() -> None:
    desc = kernel(SCALED, factor=3.0)
    again = load_desc(dump_desc(desc), (SCALED,))
    assert again.ops == desc.ops
    assert load_desc(dump_desc(desc)).ops[-1].declared is None


def test_operators_of_the_vocabulary_stay_what_they_are() -> None:
    other = unary("Neg", np.abs, scalar=lambda f, x: f.call("abs", x))
    assert load_desc(dump_desc(kernel(SCALED, factor=3.0)), (other, SCALED)).ops[0].declared is None


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
