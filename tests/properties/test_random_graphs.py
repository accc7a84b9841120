"""Random graphs under random flags keep their numbers; ``python -m tests.random_graphs`` does many more of them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_samples import TOLERANCE, Sample, apart, case, failure, smallest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphkernel as gk
from graphkernel import ops
from kernelgen.errors import BackendUnavailable
from kernelgen.tensor.graph import Graph, Node, Value, keep
from tests.support.sources import ROOT

PATIENT = settings(suppress_health_check=[HealthCheck.too_slow])
HOSTS = {"cpu": "numpy", "gpu": "auto"}  # numpy computes on no device


@given(seed=st.integers(0, 10**9))
@PATIENT
def test_random_graphs_keep_their_numbers(seed: int) -> None:
    assert failure(Sample.of(seed)) is None


@pytest.mark.parametrize("target", HOSTS)
@given(seed=st.integers(0, 10**9))
@PATIENT
def test_compiled_random_graphs_keep_their_numbers_and_write_only_what_they_say(target: str, seed: int) -> None:
    given_ = case(Sample.of(seed))
    graph = given_.graph
    level = given_.options["opt_level"]
    executable = gk.compile(
        gk.optimize(graph, flags={"opt_level": level, "target": target}), target=target, host=HOSTS[target]
    )
    buffers = [array.copy() for array in given_.arrays]
    outputs = results(executable, buffers)
    expected = gk.evaluate(graph, given_.arrays)
    tolerance = TOLERANCE[graph.inputs[0].type.dtype.name]
    assert all(apart(got, want) <= tolerance for got, want in zip(outputs, expected, strict=True))
    written = {alias.input: alias.output for alias in graph.aliases}
    for index, (buffer, array) in enumerate(zip(buffers, given_.arrays, strict=True)):
        np.testing.assert_array_equal(buffer, outputs[written[index]] if index in written else array)


def results(executable: gk.Executable, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """What it computes; the test is skipped where kernels of a GPU cannot be compiled."""
    try:
        return executable(*arrays)
    except BackendUnavailable as error:
        pytest.skip(str(error))


def test_a_sample_is_the_same_every_time() -> None:
    first, second = case(Sample.of(7)), case(Sample.of(7))
    assert first.graph == second.graph
    assert first.options == second.options
    assert all(np.array_equal(a, b) for a, b in zip(first.arrays, second.arrays, strict=True))


def test_a_planted_fault_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    right = gk.optimize
    monkeypatch.setattr(gk, "optimize", lambda graph, **options: _wrong_tanh(right(graph, **options)))
    sample = next(Sample.of(seed) for seed in range(100) if failure(Sample.of(seed)))
    small, why = smallest(sample)
    graph = case(small).graph
    assert "differs by" in why
    assert any(node.op.name == "Tanh" for node in graph.operators)
    assert len(graph.operators) <= 12
    assert len(case(small).options) == 2


def test_the_command_writes_a_record(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    command = [sys.executable, "-m", "tests.random_graphs", "--count", "4", "--json", str(out), "--processes", "1"]
    subprocess.run(command, cwd=ROOT, timeout=120, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    record = json.loads(out.read_text())
    assert record["graphs"] == 4
    assert record["failures"] == []


def _wrong_tanh(graph: Graph) -> Graph:
    """The graph with the sigmoid where it has a hyperbolic tangent, in kernels and outside."""

    def wrong(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        changed: dict[str, Any] = {}
        if node.op.name == "Tanh":
            changed = {"op": ops.OPS["Sigmoid"]}
        elif node.body is not None:
            changed = {"body": node.body.rebuild(wrong)}
        return replace(keep(node, args), **changed).outs

    return graph.rebuild(wrong)
