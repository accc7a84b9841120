"""Gradients against torch.autograd, from a record of what it gave (``tests/torch_gradients.py``): corners and ties included."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.declarations import builtin_catalogue
from graphkernel.ops import OPS
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.types import Attrs, TensorType, dtype
from tests.support.sources import ROOT

FACTS = json.loads((ROOT / "tests" / "facts" / "torch_gradients.json").read_text())["facts"]

NOT_IN_TORCH = {
    "AllReduce": "one process is a world of one device",
    "AllGather": "as AllReduce",
    "ReduceScatter": "as AllReduce",
    "AllToAll": "as AllReduce",
    "Dropout": "draws numbers of its own",
    "EqualCount": "a count",
    "ElemAny": "a flag",
    "FloatStatus": "a flag",
}


def array(entry: dict[str, Any]) -> np.ndarray:
    return np.asarray(entry["values"], entry.get("dtype", "float64")).reshape(entry["shape"])


def gradients(fact: dict[str, Any]) -> list[np.ndarray]:
    builder = Builder()
    operands = [array(entry) for entry in fact["operands"]]
    inputs = tuple(builder.parameter(f"x{i}", TensorType(x.shape, dtype(x.dtype))) for i, x in enumerate(operands))
    results = builder.node(OPS[fact["op"]], inputs, Attrs.of(fact["attrs"])).outs
    seen = [place for place, entry in enumerate(fact["cotangents"]) if entry is not None]
    graph = gk.grad(Graph("one", inputs, tuple(results[place] for place in seen)), cotangents=True)
    return list(gk.evaluate(graph, [*operands, *(array(fact["cotangents"][place]) for place in seen)]))


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: f"{fact['op']}-{fact['attrs']}".replace(" ", ""))
def test_torch_agrees(fact: dict[str, Any]) -> None:
    expected = [array(entry) for entry in fact["gradients"] if entry is not None]
    for found, other in zip(gradients(fact), expected, strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-7, atol=1e-11)  # of constants that torch keeps in float32


def test_every_rule_is_held_against_torch() -> None:
    held = {fact["op"] for fact in FACTS}
    rules = {entry.name for entry in builtin_catalogue().gradients if not entry.undefined}
    assert rules - held == set(NOT_IN_TORCH)
    assert {entry.name for entry in builtin_catalogue().gradients if entry.undefined} & held == set()


def test_where_torch_differs() -> None:
    """Equal operands: torch gives half to each, MindSpore's MaximumGrad all to the first."""
    x = np.zeros(1)
    for function in (ops.maximum, ops.minimum):
        assert gk.grad(lambda x, y, f=function: ops.reduce_sum(f(x, y)), argnums=(0, 1))(x, x) == ([1.0], [0.0])


def test_a_loss_cut_off_at_its_greatest_has_a_finite_gradient() -> None:
    """By labels too, where torch gives infinity: the logarithm is taken as -100."""
    p, labels = np.array([0.0, 1.0]), np.array([0.5, 0.5])
    found = gk.grad(lambda p, z: ops.binary_cross_entropy(p, z, reduction="sum"), argnums=(0, 1))(p, labels)
    np.testing.assert_array_equal(found, [[-5e11, 5e11], [100, -100]])
