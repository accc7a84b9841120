"""A network beside other runtimes: one of two products, built here, without any peer but onnxruntime."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import graphkernel as gk
from benchmarks.whole_networks.__main__ import raced
from benchmarks.whole_networks.limits import limits
from benchmarks.whole_networks.race import race
from benchmarks.whole_networks.shares import flops, shares
from benchmarks.whole_networks.start import starts
from docs.network_races import _beside_mindspore, _steps, _times
from docs.roofline import Point, roofline
from graphkernel import ops

ROWS, INNER, COLUMNS = 8, 32, 48


@pytest.fixture
def arrays() -> list[np.ndarray]:
    return [np.random.default_rng(0).standard_normal((ROWS, INNER)).astype(np.float32)]


@pytest.fixture
def model(tmp_path: Path, arrays: list[np.ndarray]) -> Path:
    """``relu(x @ w) + 1``."""
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(1).standard_normal((INNER, COLUMNS)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["r"])]
    nodes.append(helper.make_node("Add", ["r", "one"], ["y"]))
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in {"x": [ROWS, INNER], "y": [ROWS, COLUMNS]}.items()
    ]
    constants = [
        numpy_helper.from_array(each, name) for each, name in ((weights, "w"), (np.ones(1, np.float32), "one"))
    ]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], constants)
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    np.savez(path.with_suffix(".npz"), x=arrays[0])
    return path


@pytest.mark.long
def test_contestants_take_turns_and_agree(model: Path, arrays: list[np.ndarray]) -> None:
    found = race(model, arrays, 2, 1)
    assert {"graphkernel", "onnxruntime", "onnxruntime, not spinning"} <= found.keys()
    assert 0 < found["graphkernel"]["least"] <= found["graphkernel"]["median"]
    assert found["graphkernel"]["off"] < 1e-5


@pytest.mark.long
def test_a_contestant_that_fails_is_told_and_the_others_go_on(model: Path, arrays: list[np.ndarray]) -> None:
    model.with_suffix(".pt2").write_bytes(b"no network")
    found = race(model, arrays, 1, 1)
    assert found["torch.compile"].startswith("torch.compile: ")
    assert found["graphkernel"]["least"] > 0


@pytest.mark.long
def test_races_alone_leave_the_rest_of_a_record(model: Path) -> None:
    found = raced(model, 1)
    assert found.keys() == {"bytes", "races", "load"}
    assert found["races"].keys() == {"1", "2"}


def test_a_start_is_a_process_of_its_own(model: Path) -> None:
    found: Any = starts("onnxruntime", model, model.with_suffix(".npz"), 1)
    assert [set(each) for each in found.values()] == 2 * [{"wall", "processor", "peak"}]
    assert "nobody" in starts("nobody", model, model.with_suffix(".npz"), 1)["cold"]


def test_steps_tell_what_they_compute_and_move(model: Path, arrays: list[np.ndarray]) -> None:
    rows = shares(model, arrays, 1)
    assert math.isclose(sum(row["gigaflop"] for row in rows), 2 * ROWS * INNER * COLUMNS / 1e9, abs_tol=1e-6)
    least = 4 * (ROWS * INNER + INNER * COLUMNS + ROWS * COLUMNS) / 1e9
    assert sum(row["gigabytes"] for row in rows) >= 0.99 * least


def test_operators_of_several_results_compute_none() -> None:
    pieces = gk.trace(lambda x: ops.split(x, 2, axis=1), gk.spec((4, 6)))
    assert flops(pieces.operators, {}) == 0


def test_the_machine_has_limits() -> None:
    found = limits()
    assert found.compute > found.bandwidth / 4 > 0, "a multiply-add a float that is read at least"


def test_the_page_tells_ratios_shares_and_what_is_missing() -> None:
    race_of = {
        "graphkernel": {"median": 2.0, "least": 1.0},
        "onnxruntime": {"median": 5.0, "least": 4.0},
        "openvino": {"median": 3.0, "least": 5.0},
        "torch.compile": "torch.compile: no",
    }
    networks = {"net": {"races": {"1": race_of, "2": race_of}, "load": [0.5, 1.0]}}
    assert "| `net` | 2.00 | 5.00 | 3.00 | 1.50 |  |  | 0.5 |" in _times(networks, "1")
    assert "| 4.00 |" in _times(networks, "2").splitlines()[-1]
    step = {
        "operators": "MatMul",
        "runner": "ours",
        "count": 3,
        "milliseconds": 2.0,
        "gigaflop": 0.2,
        "gigabytes": 0.02,
    }
    told = _steps({"steps": [step], "limits": {"compute": 200.0, "bandwidth": 40.0}})
    assert "| MatMul | ours | 3 | 2.00 | 100% | 100 | 50% | 10 | 25% |" in told


def test_the_page_tells_the_better_of_both_modes_of_mindspore() -> None:
    race_of = {
        "graphkernel": {"median": 2.0, "least": 1.0},
        "MindSpore": {"median": 5.0, "least": 4.0},
        "MindSpore, graph kernels": "MindSpore, graph kernels: no",
    }
    rows = list(_beside_mindspore({"networks": {"net": {"races": {"1": race_of, "2": race_of}, "load": 0.5}}}))
    assert rows[0] == ("`net`", "1", "2.00", "5.00", "", "2.50", "0.5")
    assert rows[1][-2] == "4.00"


def test_the_roof_bends_where_the_limits_meet() -> None:
    drawn = roofline([Point("net", 10.0, 100.0)], compute=200.0, bandwidth=20.0)
    assert drawn.count("<circle") == 1
    assert "<polyline" in drawn
