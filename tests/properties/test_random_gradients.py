"""Gradients of random graphs: right by central differences, and kept by every level, target and flag."""

from __future__ import annotations

import numpy as np
from graph_samples import TOLERANCE, Sample, apart, case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphkernel as gk
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.verify import verify

Arrays = list[np.ndarray]
PATIENT = settings(suppress_health_check=[HealthCheck.too_slow])
STEPS = (1e-5, 1e-6)


def differentiated(graph: Graph, arrays: Arrays) -> tuple[Graph, dict[int, np.ndarray], Arrays]:
    """The gradient graph, cotangents by the places of outputs, and the gradients of all inputs behind what is written."""
    written = {alias.output for alias in graph.aliases}
    rng = np.random.default_rng(1)
    cotangents = {
        place: rng.standard_normal(y.shape).astype(y.dtype)
        for place, y in enumerate(gk.evaluate(graph, arrays))
        if place not in written and graph.outputs[place].type.dtype.is_float
    }
    gradient = gk.grad(graph, cotangents=True)
    verify(gradient)
    return gradient, cotangents, list(gk.evaluate(gradient, [*arrays, *cotangents.values()]))


def slope(graph: Graph, arrays: Arrays, cotangents: dict[int, np.ndarray], change: Arrays, step: float) -> float:
    ends = [
        gk.evaluate(graph, [x + sign * step * way for x, way in zip(arrays, change, strict=True)]) for sign in (1, -1)
    ]
    return sum(float(np.vdot(ends[0][at] - ends[1][at], dy)) for at, dy in cotangents.items()) / (2 * step)


@given(seed=st.integers(0, 10**9))
@PATIENT
def test_gradients_of_random_graphs_go_through_every_pipeline(seed: int) -> None:
    sample = case(Sample.of(seed))
    arrays = list(sample.arrays)
    gradient, cotangents, found = differentiated(sample.graph, arrays)
    fused = gk.optimize(gradient, flags=dict(sample.options))
    for got, want in zip(gk.evaluate(fused, [*arrays, *cotangents.values()]), found, strict=True):
        if np.isfinite(want).all():
            assert apart(got, want) <= TOLERANCE[sample.graph.inputs[0].type.dtype.name]


@given(seed=st.integers(0, 10**9))
@PATIENT
def test_central_differences_of_random_graphs_agree(seed: int) -> None:
    """In float64, along one direction; where two steps disagree there is a corner between them."""
    sample = case(Sample.of(seed))
    if sample.graph.inputs[0].type.dtype.name != "float64":
        return
    arrays = list(sample.arrays)
    _, cotangents, found = differentiated(sample.graph, arrays)
    rng = np.random.default_rng(2)
    change = [rng.standard_normal(x.shape) for x in arrays]
    gradients = found[len(found) - len(arrays) :]
    expected = [slope(sample.graph, arrays, cotangents, change, step) for step in STEPS]
    got = sum(float(np.vdot(gradient, way)) for gradient, way in zip(gradients, change, strict=True))
    scale = max(1.0, abs(expected[0]))
    if np.isfinite([*expected, got]).all() and abs(expected[0] - expected[1]) < 1e-5 * scale:
        assert abs(got - expected[0]) < 1e-4 * scale
