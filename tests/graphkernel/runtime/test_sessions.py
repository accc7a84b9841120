"""Regions of onnxruntime in a child that was forked after they ran: right, not hanging, and let go of in peace."""

from __future__ import annotations

import gc
import multiprocessing
import threading
from typing import Any

import numpy as np
import pytest
from onnx import helper

import graphkernel as gk
from graphkernel import ops
from graphkernel.runtime.onnx_writer import Writer, initializer
from graphkernel.runtime.regions import OnnxRuntimeHost, RegionStep
from graphkernel.runtime.sessions import RegionModel, open_session
from tests.support.forks import SECONDS, in_forked_child

pytest.importorskip("onnxruntime")

SIZE = 300
X = np.random.default_rng(0).random((SIZE, SIZE), np.float32)
W = np.eye(SIZE, dtype=np.float32)


def net(x: Any, w: Any) -> Any:
    return ops.matmul(ops.exp(ops.matmul(x, w)) * x, w)


def compiled() -> Any:
    """Two regions, which have constants and threads, with a kernel between them; run once."""
    exe = gk.compile(gk.trace(lambda x: net(x, W), X), 2, host=OnnxRuntimeHost(threads=2))
    assert is_right(exe)
    return exe


def is_right(exe: Any) -> bool:
    return bool(np.allclose(exe(X)[0], np.exp(X) * X, rtol=1e-4))


def test_a_child_runs_what_its_parent_has_run() -> None:
    exe = compiled()
    assert in_forked_child(lambda: all(is_right(exe) for _ in range(3))) == 0
    assert in_forked_child(lambda: is_right(exe) and in_forked_child(lambda: is_right(exe)) == 0) == 0
    assert is_right(exe)


def test_a_child_compiles_after_its_parent() -> None:
    compiled()
    assert in_forked_child(lambda: is_right(compiled())) == 0


@pytest.mark.parametrize("runs_first", [False, True])
def test_a_child_lets_go_of_what_its_parent_has_run(runs_first: bool) -> None:
    held = [compiled()]

    def dropped() -> bool:
        right = is_right(held[0]) if runs_first else True
        held.clear()
        gc.collect()
        return right

    assert in_forked_child(dropped) == 0


def test_threads_of_a_child_may_be_the_first_to_run() -> None:
    exe = compiled()

    def together() -> bool:
        found: list[bool] = []
        threads = [threading.Thread(target=lambda: found.append(is_right(exe))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found == [True] * 4

    assert in_forked_child(together) == 0


def test_a_pool_of_forked_workers_runs() -> None:
    exe = compiled()
    with multiprocessing.get_context("fork").Pool(2, initializer=_KEPT.append, initargs=(exe,)) as pool:
        assert pool.apply_async(_kept_is_right).get(SECONDS)


_KEPT: list[Any] = []


def _kept_is_right() -> bool:
    return is_right(_KEPT[-1])


def regions_of(exe: Any) -> list[RegionStep]:
    return [step for step in exe.plan.steps if isinstance(step, RegionStep)]


def test_regions_read_weights_where_the_graph_has_them() -> None:
    first, second = regions_of(compiled())
    constants = [arg.constant for region in (first, second) for node in region.nodes for arg in node.args]
    graph_has = {id(array) for array in constants if array is not None}
    lent = [array for region in (first, second) for array in region.session.model.weights.values()]
    assert len(lent) == 2
    assert {id(array) for array in lent} == graph_has
    assert all(len(region.session.model.content) < W.nbytes // 100 for region in (first, second))


def test_a_session_has_no_copy_of_a_weight_that_it_only_reads() -> None:
    import onnxruntime

    if not hasattr(onnxruntime.SessionOptions, "add_external_initializers_from_files_in_memory"):
        pytest.skip("this onnxruntime copies weights")
    weight = np.ones((64, 64), np.float32)
    builder = Writer(17)
    builder.emit("Add", "x", builder.constant(weight), result="y")
    info = [helper.make_tensor_value_info(name, 1, (64, 64)) for name in "xy"]
    (constant,) = builder.constants
    graph = helper.make_graph(builder.nodes, "g", info[:1], info[1:], [initializer(weight, constant)])
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
    session = open_session(RegionModel(content, {constant: weight}), 1, True)
    weight[...] = 5.0
    assert (session.run(None, {"x": np.zeros_like(weight)})[0] == 5.0).all()
