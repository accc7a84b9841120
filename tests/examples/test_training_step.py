"""A training step: its losses are torch's, it is one executable, and fusion gives it few kernels."""

from __future__ import annotations

import json

import numpy as np
import pytest

import graphkernel as gk
from examples import training_step
from tests.support.sources import ROOT

RECORD = json.loads((ROOT / "tests" / "facts" / "torch_training.json").read_text())["losses"]


def test_the_losses_are_those_of_torch() -> None:
    found = training_step.train()
    np.testing.assert_allclose(found, RECORD, rtol=2e-5)
    assert found[-1] < found[0] / 2


@pytest.mark.parametrize("target", ["cpu", "gpu", "ascend"])
def test_less_than_half_of_the_launches_is_left(target: str) -> None:
    graph = training_step.graph()
    fused = gk.optimize(graph, target=target)
    kernels = sum(node.body is not None for node in fused.operators)
    products = [node.op.name for node in fused.operators if node.body is None]
    assert set(products) <= ({"MatMul", "BatchMatMul"} if target != "cpu" else set())
    assert kernels <= (6 if products else 9)
    assert len(fused.operators) * 2 < len(graph.operators)


def test_it_tells_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    training_step.main()
    assert "26 operators became" in capsys.readouterr().out
