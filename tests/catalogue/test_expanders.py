"""Every declared expander means what its operator means: the same formula in float64, the same types everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from graphkernel import ops
from graphkernel.declarations import builtin_catalogue
from graphkernel.errors import TypeRuleError
from graphkernel.expanders.base import Declined, Expander, expand, expander
from graphkernel.expanders.lists import ANCESTOR, OURS, expand_ops
from graphkernel.ops import OPS, Tensor
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Builder, Graph, Node, Value
from kernelgen.tensor.types import Attrs, parse_type
from kernelgen.tensor.verify import verify
from tests.support.operator_samples import Case, cases
from tests.support.operator_values import Values, hard, mixed, positive

EXPANDERS = builtin_catalogue().expanders
TOLERANCE = {
    "float64": 1e-12,
    "float32": 3e-6,
    "float16": 2e-3,
    "bfloat16": 2e-2,
    "complex64": 3e-6,
    "complex128": 1e-12,
}
APPROXIMATE = {"Erf": 2e-6}  # by a fraction with float32 coefficients


@dataclass(frozen=True)
class Expansion:
    """One case of an operator beside its expansion for a target."""

    case: Case
    target: str
    operator: Graph
    expansion: Graph

    def __str__(self) -> str:
        return f"{self.case} on {self.target}"


def expanded(entry: Expander) -> Iterator[Expansion]:
    """All cases that do not decline, for one target of each formula."""
    for target in sorted(entry.targets) or ["cpu", *entry.special]:
        for case in cases(OPS[entry.name]):
            builder = Builder()
            inputs = tuple(builder.parameter(f"x{i}", type_) for i, type_ in enumerate(case.types))
            node = builder.node(case.op, inputs, attrs_of(case, inputs))
            found = expansion_of(entry, node, inputs, builder, target)
            if not isinstance(found, Declined):
                graphs = (Graph(name, inputs, outs) for name, outs in (("operator", node.outs), ("expansion", found)))
                yield Expansion(case, target, *graphs)


def expansion_of(
    entry: Expander, node: Node, inputs: tuple[Value, ...], builder: Builder, target: str
) -> tuple[Value, ...] | Declined:
    """As the pass does: an expansion that does not type-check is declined."""
    try:
        return expand(entry, node, inputs, builder, target)
    except TypeRuleError as error:
        return Declined(str(error))


def attrs_of(case: Case, inputs: Sequence[Value]) -> Attrs:
    """Symbolic attributes as they are, or static ones where the operands do not tell the symbols."""
    told = {name for value in inputs for dim in value.type.shape if not isinstance(dim, int) for name in dim.symbols}
    return case.sample.attrs if told else case.attrs


LEFT_WHOLE = frozenset({"Erfc"})
"""Operators of MindSpore's table that our expanders always decline, and say why."""


@pytest.fixture(params=[entry for entry in EXPANDERS if entry.name not in LEFT_WHOLE], ids=lambda entry: entry.name)
def entry(request: pytest.FixtureRequest) -> Expander:
    return request.param


@pytest.mark.parametrize("values", [positive, mixed])
def test_same_numbers(entry: Expander, values: Values) -> None:
    tried = list(expanded(entry))
    assert tried, f"{entry.name} declines every sample"
    for found in tried:
        arrays = found.case.arrays(values)
        results = zip(evaluate(found.operator, arrays), evaluate(found.expansion, arrays), strict=True)
        for expected, got in results:
            assert_close(got, expected, tolerance(entry, found), found)


def tolerance(entry: Expander, found: Expansion) -> float:
    """That of the coarsest data type in play."""
    types = [value.type.dtype.name for value in (*found.operator.inputs, *found.operator.outputs)]
    usual = max((TOLERANCE.get(name, 0.0) for name in types), default=0.0)
    return max(usual, APPROXIMATE.get(entry.name, 0.0)) if found.target == "ascend" else usual


def assert_close(got: np.ndarray, expected: np.ndarray, tolerance: float, what: object) -> None:
    """Within the tolerance of the largest number; infinities and NaN in the same places."""
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(got, expected, err_msg=str(what))
        return
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    got, expected = got.astype(wide), expected.astype(wide)
    scale = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0)))
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * scale, err_msg=str(what))


def test_infinities_and_nan(entry: Expander) -> None:
    """Operands with infinities, NaN, zeros of both signs and the ends of the range; in float64, or exact integers."""
    for found in expanded(entry):
        if found.case.of.name != "float64":
            continue
        arrays = found.case.arrays(hard)
        for expected, got in zip(evaluate(found.operator, arrays), evaluate(found.expansion, arrays), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, err_msg=str(found))


def test_the_expansion_is_basic_and_verifies(entry: Expander) -> None:
    for found in expanded(entry):
        verify(found.expansion)
        assert not [node.op.name for node in found.expansion.operators if node.op.composite]


def test_the_formula_is_one_line(entry: Expander) -> None:
    assert entry.doc.strip(), f"{entry.name} has no formula in its documentation"


def test_the_default_lists_name_every_expander() -> None:
    """An expander that no target uses by default is dead weight."""
    unused = [entry.name for entry in EXPANDERS if not any(entry.name in expand_ops(target) for target in ANCESTOR)]
    assert not unused
    assert {entry.name for entry in EXPANDERS} >= OURS


def test_a_wrong_formula_is_found() -> None:
    @expander(OPS["SiLU"])
    def half(x: Tensor, *, attrs: Attrs) -> Tensor:
        return x * 0.5

    with pytest.raises(AssertionError):
        test_same_numbers(half, mixed)


def test_a_formula_that_is_wrong_at_infinity_is_found() -> None:
    @expander(OPS["Sigmoid"])
    def naive(x: Tensor, *, attrs: Attrs) -> Tensor:
        return ops.exp(x) / (1.0 + ops.exp(x))

    test_same_numbers(naive, positive)
    with pytest.raises(AssertionError):
        test_infinities_and_nan(naive)


@pytest.mark.parametrize(
    ("name", "target", "types", "attributes", "reason"),
    [
        ("Tile", "gpu", ["f32[3]"], {"multiples": (2,)}, "not a broadcast"),
        ("Tanh", "cpu", ["f32[3]"], {}, "expanded on ascend only"),
        ("Erf", "gpu", ["f32[3]"], {}, "expanded on ascend only"),
        ("Erfc", "gpu", ["f32[3]"], {}, "kernels compute it"),
        ("Erf", "ascend", ["f64[3]"], {}, "accurate to float32 only"),
        ("Tanh", "ascend", ["f64[3]"], {}, "accurate to float32 only"),
        ("Sinh", "ascend", ["f64[3]"], {}, "accurate to float32 only"),
    ],
)
def test_declined(name: str, target: str, types: Sequence[str], attributes: dict[str, object], reason: str) -> None:
    builder = Builder()
    inputs = tuple(builder.parameter(f"x{i}", parse_type(text)) for i, text in enumerate(types))
    node = builder.node(OPS[name], inputs, Attrs.of(attributes))
    (entry,) = (entry for entry in EXPANDERS if entry.name == name)
    found = expand(entry, node, inputs, builder, target)
    assert isinstance(found, Declined)
    assert reason in found.reason
