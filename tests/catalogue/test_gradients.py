"""Every operator has a gradient that central differences agree with, or a reason why it has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from graphkernel.declarations import builtin_catalogue
from graphkernel.expanders.base import Declined
from graphkernel.gradients.base import Application, Cotangents, Gradient
from graphkernel.ops import OPS, Tensor
from tests.support.gradient_checks import DIFFERENTIABLE_TYPES, agree, points

CATALOGUE = builtin_catalogue()
RULES = {entry.name: entry for entry in CATALOGUE.gradients}
EXPANDED = {entry.name for entry in CATALOGUE.expanders}
UNDEFINED = [name for name, entry in RULES.items() if entry.undefined]
FLAT = [name for name, entry in RULES.items() if entry.flat]
SMOOTH = [name for name in DIFFERENTIABLE_TYPES if name not in (*UNDEFINED, "StopGradient", "ElemAny", "FloatStatus")]
WRITTEN = [name for name in SMOOTH if name in RULES and name not in FLAT]
NEEDS_SIZES = {"Lu", "SolveTriangular", "Pool2D"}  # of matrices and images; symbols are refused with a reason


def test_every_operator_with_floats_has_a_rule_an_expansion_or_a_reason() -> None:
    assert [name for name in DIFFERENTIABLE_TYPES if name not in RULES and name not in EXPANDED] == []


def test_rules_are_of_operators_with_floats() -> None:
    """Whose gradients would never be asked for otherwise; complex numbers have a reason of their own."""
    nowhere = {name for name in RULES if name not in DIFFERENTIABLE_TYPES}
    known_by_name = {"Onnx", "QuantBatchMatmul", *(name for name in OPS if name.startswith("Quantbatchmatmul"))}
    assert nowhere <= known_by_name | {"FloatStatus", "ElemAny"}


@pytest.mark.parametrize("name", SMOOTH)
def test_central_differences_agree(name: str) -> None:
    found = list(points(OPS[name]))
    assert found, f"{name}: no sample is finite in float64"
    for point in found:
        expected = point.differences()
        gradients = point.gradients()
        assert agree(gradients, expected), (str(point.case), gradients, expected)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_wrong_rule_is_found(name: str) -> None:
    """Each operand's cotangent forgotten, and 1 % too large: some sample notices."""
    known = [(point, point.differences()) for point in points(OPS[name])]
    seen = {place for point, expected in known for place, by in zip(point.floats, expected, strict=True) if by.any()}
    assert seen
    for place in seen:
        for fault in (_forgotten, _too_large):
            mutant = _with_rule(name, _faulty(RULES[name], place, fault))
            assert not all(agree(point.gradients(mutant), expected) for point, expected in known), (place, fault)


def _forgotten(cotangent: Tensor) -> None:
    return None


def _too_large(cotangent: Tensor) -> Tensor:
    return cotangent * 1.01


def _faulty(rule: Gradient, place: int, fault: Callable[[Tensor], Tensor | None]) -> Gradient:
    def function(of: Application) -> Cotangents | Declined:
        declared = rule.function(of)
        if isinstance(declared, Declined):
            return declared
        found = list(declared)
        if place < len(found) and (cotangent := found[place]) is not None:
            found[place] = fault(cotangent)
        return found

    return replace(rule, function=function)


def _with_rule(name: str, rule: Gradient):
    others = tuple(entry for entry in CATALOGUE.gradients if entry.name != name)
    return replace(CATALOGUE, gradients=(*others, rule))
