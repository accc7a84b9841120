"""Random programs through everything: optimize at every level, compile every kernel, run, compare with the meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import programs

import graphkernel as gk
import kernelgen
from graphkernel.handoff import to_desc
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import FUSED, Graph

Program = tuple[Graph, list[np.ndarray[Any, Any]]]
PATIENT = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize("target", ["cpu", "python"])
@given(program=programs(), level=st.integers(1, 3))
@PATIENT
def test_compiled_programs_mean_what_they_meant(target: str, program: Program, level: int) -> None:
    graph, arrays = program
    expected = evaluate(graph, arrays)
    fused = gk.optimize(graph, opt_level=level)
    executable = gk.compile(fused, compiler=lambda desc, **_: kernelgen.compile(desc, target=target))
    assert executable.report.fallbacks == ()
    for got, want in zip(executable(*arrays), expected, strict=True):
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)


@given(program=programs())
@PATIENT
def test_every_kernel_is_proved(program: Program) -> None:
    fused = gk.optimize(program[0], opt_level=2)
    for node in fused.operators:
        if node.op is FUSED and node.body is not None:
            proof = kernelgen.compile(to_desc(node, "cpu"), target="python").proof
            assert {"bounds", "legality"} <= {fact.check for fact in proof.facts}
