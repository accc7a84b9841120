"""Random ONNX models: every operator, data type and opset is drawn; planted faults are found; known mistakes are told."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from onnx import defs, helper

import graphkernel as gk
from graphkernel import ops
from graphkernel.frontends.onnx import rule_table as frontend
from graphkernel.frontends.onnx.check import ADDED
from graphkernel.frontends.onnx.rules.base import OnnxRule
from tests.fuzz import onnx_models
from tests.fuzz.models.contents import DATA_TYPES
from tests.fuzz.models.oracle import Array
from tests.fuzz.models.recipes import LEFT_OUT, RANDOM, RECIPES
from tests.fuzz.models.sample import NEWEST_OPSET, OLDEST_OPSET, ModelSample, draw, from_json, to_json
from tests.fuzz.onnx_models import FUZZER
from tests.fuzz.outcome import Kind, Outcome

SEEDS = range(300)


@cache
def sample(seed: int) -> ModelSample:
    """The model of a seed, for all tests that look at it."""
    return draw(seed)


def model(nodes: list[Any], inputs: dict[str, Array], outputs: dict[str, Any], opset: int = 17) -> ModelSample:
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()
    ]
    results = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(of)), None)
        for name, of in outputs.items()
    ]
    graph = helper.make_graph(nodes, "given", infos, results)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return ModelSample(made, (inputs, {name: array[::-1].copy() for name, array in inputs.items()}))


X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def test_every_operator_of_onnx_is_drawn_or_left_out_for_a_reason() -> None:
    known = {schema.name for schema in defs.get_all_schemas() if not schema.domain}
    assert known == set(RECIPES) | set(LEFT_OUT)
    assert set(RECIPES) & set(LEFT_OUT) == set()
    undrawn = {name for name in frontend.rules() if name not in (*RECIPES, *ADDED) and "::" not in name}
    assert {LEFT_OUT[name] for name in undrawn} <= {RANDOM}, (
        "an operator with a rule of our own is drawn if it can be checked"
    )


def test_samples_have_what_they_are_for() -> None:
    samples = [sample(seed) for seed in SEEDS]
    types = {array.dtype.name for s in samples for given in s.sets for array in given.values()}
    nodes = Counter(node.op_type for s in samples for node in s.model.graph.node)
    symbolic = sum(any(d.dim_param for i in s.model.graph.input for d in i.type.tensor_type.shape.dim) for s in samples)
    odd = sum(
        any(a.dtype.kind == "f" and not np.isfinite(a).all() for g in s.sets for a in g.values()) for s in samples
    )
    skipped = [node for s in samples for node in s.model.graph.node if "" in (*node.input, *node.output)]
    assert types == set(DATA_TYPES)
    assert {s.opset for s in samples} == set(range(OLDEST_OPSET, NEWEST_OPSET + 1))
    assert len(nodes) > 140
    assert symbolic > len(samples) / 5
    assert odd > len(samples) / 10
    assert any("" in node.input for node in skipped)
    assert any("" in node.output for node in skipped)


def test_a_seed_is_a_sample_and_text_holds_it() -> None:
    for seed in range(20):
        kept = from_json(to_json(sample(seed)))
        assert kept.model == draw(seed).model == sample(seed).model
        for given, again in zip(kept.sets, sample(seed).sets, strict=True):
            assert {name: array.tobytes() for name, array in given.items()} == {
                name: array.tobytes() for name, array in again.items()
            }


@pytest.mark.parametrize("level", range(4))
def test_models_without_a_finding(level: int) -> None:
    passed = 0
    for seed in FINE:
        outcome = FUZZER.check(sample(seed), level)
        assert not outcome.is_finding, (seed, outcome)
        passed += outcome.kind is Kind.PASSED
    assert passed > len(FINE) / 2


FINE = range(20)


def chained() -> ModelSample:
    nodes = [
        helper.make_node("Tanh", ["x"], ["a"]), helper.make_node("Abs", ["a"], ["b"]), helper.make_node("Sqrt", ["b"], ["y"]),
    ]  # fmt: skip
    return model(nodes, {"x": X}, {"y": np.float32})


def test_a_wrong_meaning_is_found_at_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    assert FUZZER.check(chained(), 2).kind is Kind.PASSED
    wrong = {**frontend.rules(), "Abs": OnnxRule("Abs", lambda call: ops.relu(*call.operands))}
    monkeypatch.setattr(frontend, "rules", lambda: wrong)
    assert FUZZER.check(chained(), 2).resembles(Outcome(Kind.WRONG, "Abs alone"))


def _planted(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    compile_soundly = gk.compile
    monkeypatch.setattr(onnx_models.gk, "compile", lambda graph, **options: change(compile_soundly(graph, **options)))


def test_an_answer_of_the_call_before_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stale:
        def __init__(self, executable: Any) -> None:
            self.executable, self.kept = executable, None

        def __call__(self, *arrays: Any) -> Any:
            kept, self.kept = self.kept, self.executable(*arrays)
            return kept or self.kept

    _planted(monkeypatch, Stale)
    assert FUZZER.check(chained(), 0).kind is Kind.WRONG


@pytest.mark.parametrize(
    "change", [lambda y: y[:1], lambda y: y.astype(np.float64), lambda y: y * 1.001, lambda y: y[::-1]]
)
def test_a_wrong_shape_type_number_or_order_is_found(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    _planted(monkeypatch, lambda executable: lambda *arrays: tuple(change(np.asarray(y)) for y in executable(*arrays)))
    assert FUZZER.check(chained(), 2).kind is Kind.WRONG


def test_an_exception_of_a_call_is_internal(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arrays: Any) -> Any:
        raise gk.GraphKernelError("a valid model must run")

    _planted(monkeypatch, lambda executable: broken)
    assert FUZZER.check(chained(), 2).kind is Kind.INTERNAL


def test_a_finding_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {**frontend.rules(), "Abs": OnnxRule("Abs", lambda call: ops.relu(*call.operands))}
    monkeypatch.setattr(frontend, "rules", lambda: wrong)
    sizes = [len(small.model.graph.node) for small in FUZZER.smaller(chained()) if FUZZER.check(small, 2).is_finding]
    assert min(sizes) == 2


def test_ill_conditioned_results_are_explained_and_not_wrong() -> None:
    scale = helper.make_node("Constant", [], ["k"], value_float=1e5)
    nodes = [scale, helper.make_node("Exp", ["x"], ["a"]), helper.make_node("Mul", ["a", "k"], ["b"]),
             helper.make_node("Sin", ["b"], ["y"])]  # fmt: skip
    assert not FUZZER.check(model(nodes, {"x": X}, {"y": np.float32}), 2).is_finding


def test_a_known_mistake_is_explained_by_its_reason() -> None:
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=int(helper.np_dtype_to_tensor_dtype(np.dtype(np.uint8))))]
    outcome = FUZZER.check(model(nodes, {"x": X * 1e9}, {"y": np.uint8}), 2)
    assert outcome.kind in (Kind.PASSED, Kind.EXPLAINED)
