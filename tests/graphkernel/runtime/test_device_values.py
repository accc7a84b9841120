"""On a device (a stand-in for cupy): extents that operators define, and values that no device holds."""

from __future__ import annotations

import numpy as np
import pytest

import graphkernel as gk
from graphkernel.errors import RuntimeFailure
from graphkernel.frontends.onnx.importer import import_onnx
from tests.graphkernel.frontends.test_onnx_extents_of_data import DATA, MODELS, X, made
from tests.graphkernel.frontends.test_onnx_opaque import CASES
from tests.graphkernel.runtime.test_device_plans import compiled
from tests.support import fake_cupy
from tests.support.fake_cupy import FakeDevice


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    return fake_cupy.install(monkeypatch)


@pytest.mark.parametrize("name", MODELS)
def test_extents_that_depend_on_data(name: str) -> None:
    graph = import_onnx(made(name))
    exe = compiled(graph)
    for x in DATA:
        for found, expected in zip(exe(x), gk.evaluate(graph, [x]), strict=True):
            assert isinstance(found, np.ndarray)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_plan_that_waits_for_extents_is_not_captured() -> None:
    exe = compiled(import_onnx(made("rows that are found, in a kernel")))
    with pytest.raises(RuntimeFailure, match=r"a plan with steps on the host cannot be captured: .*nz"):
        exe.capture(X)


HELD = {"narrow floats between kernels", "numbers of four bits as weights"}


@pytest.mark.parametrize("name", CASES)
def test_texts_and_lists_are_refused_before_anything_is_compiled(name: str) -> None:
    opaque, (data, *_) = CASES[name]
    graph = import_onnx(opaque)
    values = [data[each] for each in graph.input_names]
    if name in HELD:
        np.testing.assert_allclose(compiled(graph)(*values)[0], gk.evaluate(graph, values)[0], rtol=1e-5)
        return
    with pytest.raises(RuntimeFailure, match=r"which a device cannot hold: compile with target='cpu'"):
        compiled(graph)
