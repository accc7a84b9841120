"""Regions of onnxruntime in a child that was forked after they ran: right, not hanging, and let go of in peace."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
from ctypes import CDLL
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import OptionError
from graphkernel.onnx_writing.writer import Writer
from graphkernel.runtime.onnxruntime.c_interface import MOST_SHAPES, Binding, OnnxRuntimeError
from graphkernel.runtime.onnxruntime.initializers import initializer, lies_beside
from graphkernel.runtime.onnxruntime.regions import OnnxRuntimeHost, RegionStep
from graphkernel.runtime.onnxruntime.sessions import RegionModel, open_session
from kernelgen.system.cores import core_count
from tests.support.forks import SECONDS, in_forked_child

SIZE = 300
X = np.random.default_rng(0).random((SIZE, SIZE), np.float32)
W = np.eye(SIZE, dtype=np.float32)
IN_REGIONS = "--disable_cluster_ops=MatMul"
"""Leaves products to the library, also those of weights."""


def net(x: Any, w: Any) -> Any:
    return ops.matmul(ops.exp(ops.matmul(x, w)) * x, w)


def compiled() -> Any:
    """Two regions, which have constants and threads, with a kernel between them; run once."""
    exe = gk.compile(gk.trace(lambda x: net(x, W), X), 2, host=OnnxRuntimeHost(threads=2), flags=IN_REGIONS)
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


def session_of(
    node: str, weight: np.ndarray, threads: int | None = None, objects: bool = False, folded: str = "Identity"
) -> Any:
    """``y = node(x, folded(weight))`` over matrices like the weight."""
    writer = Writer(17)
    writer.emit(node, "x", writer.emit(folded, writer.constant(weight)), result="y")
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, weight.shape) for name in "xy"]
    (constant,) = writer.constants
    graph = helper.make_graph(writer.nodes, "g", info[:1], info[1:], [initializer(weight, constant)])
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
    weights = {constant: weight} if lies_beside(weight) else {}
    return open_session(RegionModel(content, weights, objects), threads, True)


def run(session: Any, x: np.ndarray) -> np.ndarray:
    binding = session.binding(["x"], ["y"])
    binding.bind_input(0, 1, x.shape, x.ctypes.data)
    binding.run()
    return binding.taken(0).numpy()


def test_a_session_has_no_copy_of_a_weight_that_it_only_reads() -> None:
    if version("onnxruntime").split(".") < ["1", "32", "0"]:
        pytest.skip("this onnxruntime copies weights")
    weight = np.ones((64, 64), np.float32)
    session = session_of("Add", weight)
    weight[...] = 5.0
    np.testing.assert_array_equal(run(session, np.zeros_like(weight)), weight)


OPENED = """
import ctypes
from pathlib import Path
import numpy as np
from tests.graphkernel.runtime.test_sessions import session_of

def resident():
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) * 1024

weights = [np.full((1 << 10, 1 << 10), value, np.float32) for value in range(4)]
sessions = [session_of("Mul", weights[0])]
before = resident()
sessions += [session_of("Mul", weight, folded="Transpose") for weight in weights]
opened = resident()
ctypes.CDLL(None).malloc_trim(0)
print(opened - before, opened - resident())
"""


@pytest.mark.skipif(
    not hasattr(CDLL(None), "malloc_trim"), reason="this C library keeps no freed memory that it gives back"
)
def test_open_sessions_leave_no_freed_memory_behind() -> None:
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    done = subprocess.run(
        [sys.executable, "-c", OPENED], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    grown, freed = map(int, done.stdout.split())
    assert grown > 1 << 24
    assert freed < 1 << 20


RUN = (
    """
from pathlib import Path
import numpy as np
from onnx import parser
from graphkernel.runtime.onnxruntime.sessions import RegionModel, open_session
from tests.graphkernel.runtime.test_sessions import run

CHAIN = """
    + repr(
        """
<ir_version: 9, opset_import: ["" : 17]>
g (float[1024, 1024] x) => (float[1024, 1024] y) {
    a = MatMul(x, x)
    b = MatMul(a, x)
    c = MatMul(a, b)
    y = Add(b, c)
}
"""
    )
    + """

def resident():
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) * 1024

x = np.zeros((1 << 10, 1 << 10), np.float32)
content = parser.parse_model(CHAIN).SerializeToString()
sessions = [open_session(RegionModel(content, {}), 1, True) for _ in range(4)]
found = []
for _ in range(4):
    for session in sessions:
        run(session, x)
    found.append(resident())
print(found[-1] - found[0], x.nbytes)
"""
)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted as on Linux")
def test_later_runs_take_the_memory_of_the_first() -> None:
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    grown, array = map(int, done.stdout.split())
    assert grown < array


@pytest.mark.parametrize("objects", [False, True])
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (64, 64)])
def test_results_that_onnxruntime_allocates_are_read(shape: tuple[int, ...], objects: bool) -> None:
    weight = np.full(shape, 2.0, np.float32)
    session = session_of("Mul", weight, objects=objects)
    x = np.full(shape, 3.0, np.float32)
    found = session.run(["y"], {"x": x})[0] if objects else run(session, x)
    np.testing.assert_array_equal(found, np.full(shape, 6.0, np.float32))


def test_what_onnxruntime_refuses_is_told() -> None:
    with pytest.raises(OnnxRuntimeError, match="MatMul"):
        session_of("MatMul", np.ones((2, 3), np.float32))
    session = session_of("MatMul", np.ones((2, 2), np.float32))
    with pytest.raises(OnnxRuntimeError, match="invalid dimensions for input: x"):
        run(session, np.ones((3, 3), np.float32))
    assert (run(session, np.ones((2, 2), np.float32)) == 2.0).all()


THREADS = """
import os, sys
import numpy as np
import graphkernel as gk
from graphkernel import ops

def count():
    return len(os.listdir("/proc/self/task"))

def net(x):
    for _ in range(10):
        x = ops.exp(ops.matmul(x, np.eye(300, dtype=np.float32)) * 0.1)
    return x

x, threads = np.ones((300, 300), np.float32), eval(sys.argv[1])
options = {"host": "onnxruntime", "flags": "--disable_cluster_ops=MatMul", **threads}
exe = gk.compile(gk.trace(net, x), **options)
exe(x)
one = count()
assert len(exe.plan.steps) >= 20, exe.plan.steps
more = [gk.compile(gk.trace(lambda x: net(x) * float(k), x), **options) for k in range(9)]
for each in more:
    each(x)
print(one, count())
"""


def threads_of(count: int, given: str) -> tuple[int, int]:
    """The threads of a process with one model of ten regions, and with ten such models."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(count), "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.getcwd()}
    done = subprocess.run(
        [sys.executable, "-c", THREADS, given], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    one, ten = map(int, done.stdout.split())
    return one, ten


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted on Linux")
def test_ten_models_have_the_threads_of_one() -> None:
    one, ten = threads_of(2, "{}")
    assert one == ten
    assert one <= 1 + 2 * (2 - 1) + 1  # itself, those of both pools, and one that libraries may start


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted on Linux")
def test_one_thread_starts_none_for_kernels() -> None:
    alone, _ = threads_of(2, "{'threads': 1}")
    together, _ = threads_of(2, "{}")
    assert alone < together or core_count() == 1


@pytest.mark.parametrize("threads", [1, 2])
def test_as_many_threads_as_asked_for(threads: int) -> None:
    exe = gk.compile(gk.trace(lambda x: net(x, W), X), 2, threads=threads, flags=IN_REGIONS)
    assert is_right(exe)
    regions = [step for step in exe.plan.steps if isinstance(step, RegionStep)]
    assert len(regions) == 2


@pytest.mark.parametrize("threads", [0, -1, True])
def test_a_call_needs_a_thread(threads: int) -> None:
    with pytest.raises(OptionError, match="a call runs on one thread at least"):
        gk.compile(gk.trace(lambda x: net(x, W), X), threads=threads)
    with pytest.raises(OptionError, match="a call runs on one thread at least"):
        gk.jit(lambda x: net(x, W), threads=threads)


def test_a_binding_knows_no_more_shapes_than_it_may():
    api: Any = SimpleNamespace(call=lambda *_: None, memory=None, pointer=None)
    binding = Binding(api, api, ["x"], [])
    for rows in range(3 * MOST_SHAPES):
        binding.bind_input(0, TensorProto.FLOAT, (rows, 2), 0)
    assert 0 < len(binding._layouts) <= MOST_SHAPES
