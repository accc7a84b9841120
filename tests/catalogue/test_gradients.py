"""Every operator has a gradient that central differences agree with, or a reason why it has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

import graphkernel as gk
from graphkernel.declarations import builtin_catalogue
from graphkernel.errors import GradientError
from graphkernel.expanders.base import Declined
from graphkernel.expanders.lists import expand_ops
from graphkernel.frontends import differentiate
from graphkernel.gradients.base import Application, Cotangents, Gradient
from graphkernel.gradients.reverse import Rules
from graphkernel.ops import OPS, Tensor
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.order import results_of
from kernelgen.tensor.types import Sym
from kernelgen.tensor.verify import verify
from tests.support.gradient_checks import DIFFERENTIABLE_TYPES, STEP, agree, points
from tests.support.operator_samples import Case, cases

CATALOGUE = builtin_catalogue()
RULES = {entry.name: entry for entry in CATALOGUE.gradients}
EXPANDED = {entry.name: entry for entry in CATALOGUE.expanders}
UNDEFINED = [name for name, entry in RULES.items() if entry.undefined]
FLAT = [name for name, entry in RULES.items() if entry.flat]
OF_NO_GRADIENT = {"ElemAny", "FloatStatus"}
SMOOTH = [name for name in DIFFERENTIABLE_TYPES if name not in (*UNDEFINED, "StopGradient", *OF_NO_GRADIENT)]
WRITTEN = [name for name in SMOOTH if name in RULES and name not in FLAT]
NEEDS_SIZES = {"Lu", "SolveTriangular", "Pool2D"}  # of matrices and images; symbols are refused with a reason
BACKWARD = {name for name in expand_ops("cpu") | expand_ops("gpu") | expand_ops("ascend") if name.endswith("Grad")}


def test_every_operator_with_floats_has_a_rule_an_expansion_or_a_reason() -> None:
    assert [name for name in DIFFERENTIABLE_TYPES if name not in RULES and name not in EXPANDED] == []


def test_rules_are_of_operators_with_floats() -> None:
    """Whose gradients would never be asked for otherwise; complex numbers have a reason of their own."""
    nowhere = {name for name in RULES if name not in DIFFERENTIABLE_TYPES}
    known_by_name = {
        "Onnx",
        "QuantBatchMatmul",
        "Send",
        "Receive",
        *(name for name in OPS if name.startswith("Quantbatchmatmul")),
    }
    assert nowhere <= known_by_name


@pytest.mark.parametrize("name", SMOOTH)
def test_central_differences_agree(name: str) -> None:
    found = list(points(OPS[name]))
    assert found, f"{name}: no sample is finite in float64"
    for point in found:
        expected = point.differences()
        gradients = point.gradients()
        assert agree(gradients, expected), (str(point.case), gradients, expected)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_wrong_rule_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each operand's cotangent forgotten, and 1 % too large: some sample notices."""
    known = [(point, point.differences()) for point in points(OPS[name])]
    seen = {place for point, expected in known for place, by in zip(point.floats, expected, strict=True) if by.any()}
    assert seen
    for place in seen:
        for fault in (_forgotten, _too_large):
            mutants = Rules({**RULES, name: _faulty(RULES[name], place, fault)}, EXPANDED)
            monkeypatch.setattr(differentiate, "rules_of", lambda _, mutants=mutants: mutants)
            assert not all(agree(point.gradients(), expected) for point, expected in known), (place, fault)


@pytest.mark.parametrize("name", SMOOTH)
def test_second_derivatives(name: str) -> None:
    """The gradient of a gradient against central differences of the gradient."""
    for point in list(points(OPS[name]))[:1]:
        first = gk.grad(point.graph(), wrt=point.names, cotangents=True)
        arrays = [*point.arrays, *point.cotangents.values()]
        weights = [np.cos(np.arange(y.size, dtype=np.float64)).reshape(y.shape) for y in gk.evaluate(first, arrays)]
        second = gk.grad(first, wrt=point.names, cotangents=True)
        found = gk.evaluate(second, [*arrays, *weights])
        for place, gradient in zip(point.floats, found, strict=True):
            direction = np.sin(1 + np.arange(gradient.size, dtype=np.float64)).reshape(gradient.shape)
            ends = [_moved(first, arrays, place, step * direction, weights) for step in (STEP, -STEP)]
            slope = (ends[0] - ends[1]) / (2 * STEP)
            np.testing.assert_allclose(
                np.vdot(gradient, direction), slope, rtol=1e-4, atol=1e-5, err_msg=str(point.case)
            )


def _moved(
    graph: Graph, arrays: Sequence[np.ndarray], place: int, change: np.ndarray, weights: Sequence[np.ndarray]
) -> float:
    moved = [array + change if at == place else array for at, array in enumerate(arrays)]
    return sum(float(np.vdot(y, weight)) for y, weight in zip(gk.evaluate(graph, moved), weights, strict=True))


@pytest.mark.parametrize("name", SMOOTH)
def test_every_shape_and_data_type(name: str) -> None:
    """Symbolic shapes, narrow floats: the gradient has the type of its operand, and the graph is whole."""
    for case in cases(OPS[name]):
        wrt = [f"x{place}" for place, type_ in enumerate(case.types) if type_.dtype.is_float]
        graph = as_graph(case)
        if not wrt or not any(y.type.dtype.is_float for y in graph.outputs):
            continue
        if name in NEEDS_SIZES and any(isinstance(extent, Sym) for extent in case.types[0].shape[-2:]):
            with pytest.raises(GradientError, match="must be known"):
                gk.grad(graph, wrt=wrt, cotangents=True)
            continue
        found = gk.grad(graph, wrt=wrt, cotangents=True)
        verify(found)
        types = [(y.type.shape, y.type.dtype) for y in results_of(found)]
        assert types == [(x.type.shape, x.type.dtype) for x in graph.inputs if x.node.name in wrt], str(case)


def as_graph(case: Case) -> Graph:
    builder = Builder()
    inputs = tuple(builder.parameter(f"x{place}", type_) for place, type_ in enumerate(case.types))
    return Graph("one", inputs, builder.node(case.op, inputs, case.sample.attrs).outs)


@pytest.mark.parametrize("target", ["cpu", "gpu", "ascend"])
def test_gradients_go_through_the_pipeline(target: str) -> None:
    """All operators' gradients, optimized, keep their numbers."""
    for name in SMOOTH:
        for point in list(points(OPS[name]))[:1]:
            graph = gk.grad(point.graph(), wrt=point.names, cotangents=True)
            arrays = [*point.arrays, *point.cotangents.values()]
            fused = gk.optimize(graph, 2, target)
            for found, expected in zip(gk.evaluate(fused, arrays), gk.evaluate(graph, arrays), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=name)


def test_gradient_operators_come_from_forward_functions() -> None:
    """Every gradient operator that the targets expand is what some operator's rule makes."""
    made: set[str] = set()
    for name in SMOOTH:
        for point in points(OPS[name]):
            graph = gk.grad(point.graph(), wrt=point.names, cotangents=True)
            made |= {node.op.name for node in graph.operators} - {name}
    assert BACKWARD - made == set()


@pytest.mark.parametrize("name", [name for name in UNDEFINED if name in DIFFERENTIABLE_TYPES])
def test_what_has_no_gradient_says_why(name: str) -> None:
    for point in points(OPS[name]):
        with pytest.raises(GradientError, match=f"{name}.*{RULES[name].undefined[:20]}"):
            point.gradients()


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
