"""Graphs and executables go to other processes, however deep they are."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import GraphKernelError, RuntimeFailure
from graphkernel.ops import OPS
from graphkernel.runtime.executable import Executable
from graphkernel.runtime.poison import PoisonedMemory
from graphkernel.runtime.steps.host import NumpyHost
from kernelgen.tensor.graph import Alias, Builder, Graph
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.families import declare
from kernelgen.tensor.types import TensorType, dtype
from kernelgen.tensor.verify import verify

Array = np.ndarray[Any, Any]
X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


def network(x: Any, state: Any) -> Any:
    weights = np.arange(16, dtype=np.float32).reshape(4, 4) / 16
    hidden = ops.tanh(ops.matmul(x, weights) + 0.5)
    ops.assign(state, hidden * 2.0)
    return ops.softmax(hidden), ops.reshape(hidden, (-1,)), *ops.split(hidden, (1, 3), 1)


def traced() -> Graph:
    return gk.trace(network, gk.spec(("N", 4)), gk.spec(("N", 4)))


def deep(length: int) -> Graph:
    builder = Builder()
    value = builder.parameter("x", TensorType((2,), dtype("float32")))
    start = value
    for _ in range(length):
        value = builder.emit(OPS["Neg"], value)
    return Graph("deep", (start,), (value,), (Alias(0, 0),))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_graphs_come_back_equal(protocol: int) -> None:
    for graph in (traced(), gk.optimize(traced())):
        found = pickle.loads(pickle.dumps(graph, protocol))
        assert found == graph
        assert str(found) == str(graph)
        verify(found)
        with pytest.raises(ValueError, match="read-only"):
            next(node.data.array for node in found.nodes if node.data is not None)[...] = 0


@pytest.mark.parametrize("length", [1_000, 5_000, 20_000])
def test_no_depth_is_too_deep(length: int) -> None:
    graph = deep(length)
    assert len(pickle.loads(pickle.dumps(graph)).operators) == length
    assert copy.deepcopy(graph) is graph
    assert copy.deepcopy({"graphs": [graph]})["graphs"][0] == graph
    assert copy.copy(graph) == graph


@pytest.mark.parametrize("level", [None, 0, 2, 3])
def test_executables_come_back_and_compute_the_same(level: int | None) -> None:
    executable = gk.compile(traced(), level)
    found = pickle.loads(pickle.dumps(executable))
    assert isinstance(found, Executable)
    assert (found.report.kernel_calls, found.report.opt_level) == (
        executable.report.kernel_calls,
        executable.report.opt_level,
    )
    for got, wanted in zip(found(X, X.copy()), executable(X, X.copy()), strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert copy.deepcopy(executable)(X, X.copy())[0].shape == (4, 4)


@pytest.mark.release_memory
def test_how_it_was_compiled_comes_back_too() -> None:
    executable = gk.compile(traced(), flags="--enable_debug_mode=true --opt_level=1", host=NumpyHost())
    found = pickle.loads(pickle.dumps(executable))
    assert isinstance(found.memory, PoisonedMemory)
    assert found.report.library == "numpy"
    assert not isinstance(pickle.loads(pickle.dumps(gk.compile(traced()))).memory, PoisonedMemory)


def test_a_process_that_was_started_anew_can_be_given_one() -> None:
    executable = gk.compile(traced(), 2)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        got = pool.apply(executable, (X, X.copy()))
    for result, wanted in zip(got, executable(X, X.copy()), strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_what_cannot_be_pickled_is_said() -> None:
    compiled = gk.compile(traced())
    with pytest.raises(RuntimeFailure, match="pickle the graph and compile it there"):
        pickle.dumps(Executable(compiled.plan, compiled.report))
    own = declare("Own", Kind.ELEMWISE, 1, lambda types, attrs: types, lambda x, attrs: x)
    builder = Builder()
    value = builder.parameter("x", TensorType((2,), dtype("float32")))
    with pytest.raises(GraphKernelError, match="operator Own is not one of graphkernel's own"):
        pickle.dumps(Graph("f", (value,), (builder.emit(own, value),)))
    for op in OPS.values():
        assert pickle.loads(pickle.dumps(op)) is op
