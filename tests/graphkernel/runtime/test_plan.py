from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import graphkernel as gk
from graphkernel import ops
from graphkernel.ops import OPS
from graphkernel.runtime.onnxruntime.regions import OnnxRuntimeHost, RegionStep
from graphkernel.runtime.plan.plan import Plan, make_plan
from graphkernel.runtime.steps.host import NumpyHost
from graphkernel.runtime.steps.steps import NumpyStep, ViewStep
from kernelgen.tensor.graph import Builder, Graph, Value
from kernelgen.tensor.types import TensorType, dtype

SQUARE = TensorType((3, 3), dtype("float32"))
TAKEN, REFUSED = ("Add", "Mul", "MatMul"), ("Sinh", "Atan2")  # by onnxruntime's writers


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Graphs in which operators of the library and of numpy, and views, alternate at random."""
    builder = Builder()
    values: list[Value] = [builder.parameter(name, SQUARE) for name in "xy"]
    for _ in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from((*TAKEN, *REFUSED, "Reshape")))
        a, b = (draw(st.sampled_from(values)) for _ in range(2))
        if kind == "Reshape":
            values.append(builder.emit(OPS["Reshape"], builder.emit(OPS["Reshape"], a, shape=(9,)), shape=(3, 3)))
        else:
            values.append(builder.emit(OPS[kind], *(a, b)[: OPS[kind].arity]))
    outputs = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    return Graph("net", (values[0], values[1]), tuple(outputs))


def assert_order(plan: Plan) -> None:
    """Every step reads only what is there: inputs, constants, and results of earlier steps; every slot is filled once."""
    filled = {*plan.inputs, *(plan.slots[value] for value in plan.constants)}
    for step in plan.steps:
        assert filled.issuperset(step.inputs), f"{step.name} reads a slot that nobody filled"
        assert not filled.intersection(step.outputs)
        filled.update(step.outputs)
    assert filled.issuperset(plan.slots[value] for value in plan.graph.outputs)


@given(graphs())
def test_any_mixture_runs_in_order_and_gives_the_meaning(graph: Graph) -> None:
    arrays = [
        np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3),
        np.linspace(2, -1, 9, dtype=np.float32).reshape(3, 3),
    ]
    expected = gk.evaluate(graph, arrays)
    for host in (NumpyHost(), OnnxRuntimeHost(threads=1)):
        exe = gk.compile(graph, opt_level=0, host=host)
        assert_order(exe.plan)
        for _ in range(2):  # the second call runs on used buffers
            for got, wanted in zip(exe(*arrays), expected, strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_operators_of_the_library_form_one_region() -> None:
    def net(x: Any, w: Any) -> Any:
        hidden = ops.matmul(x, w)
        return ops.matmul(ops.reshape(ops.transpose(hidden), (3, 3)), w)

    plan = make_plan(gk.trace(net, gk.spec((3, 3)), gk.spec((3, 3))), {}, OnnxRuntimeHost())
    (step,) = plan.steps
    assert isinstance(step, RegionStep)
    assert {node.op.name for node in step.nodes} == {"MatMul", "Transpose", "Reshape"}


def test_region_is_cut_where_it_would_wait_for_itself() -> None:
    def net(x: Any) -> Any:
        a = ops.matmul(x, x)
        return ops.matmul(a, ops.sinh(a))

    plan = make_plan(gk.trace(net, gk.spec((3, 3))), {}, OnnxRuntimeHost())
    assert [type(step) for step in plan.steps] == [RegionStep, NumpyStep, RegionStep]
    assert list(plan.left_to_numpy.values()) == ["Sinh is left to kernels and numpy"]


def test_what_is_computed_from_constants_is_computed_where_it_is_needed() -> None:
    builder = Builder()
    x = builder.parameter("x", TensorType((3, 3), dtype("float32")))
    first, second = (
        builder.emit(OPS["Transpose"], builder.constant(np.full((3, 3), k, np.float32)), perm=(1, 0)) for k in range(2)
    )
    between = builder.emit(OPS["Sinh"], builder.emit(OPS["MatMul"], x, first))
    graph = Graph("g", (x,), (builder.emit(OPS["MatMul"], between, second),))
    plan = make_plan(graph, {}, OnnxRuntimeHost())
    found = [[node.op.name for node in step.nodes] for step in plan.steps if isinstance(step, RegionStep)]
    assert found == [["Transpose", "MatMul"], ["Transpose", "MatMul"]]


def test_views_cost_nothing_and_keep_their_memory_alive() -> None:
    def net(x: Any) -> Any:
        a = ops.matmul(x, x)
        view = ops.reshape(a, (9,))
        b = ops.sinh(ops.matmul(x, a))
        return ops.add(ops.sinh(view), ops.reshape(b, (9,)))

    graph = gk.trace(net, gk.spec((3, 3)))
    plan = make_plan(graph, {}, OnnxRuntimeHost())
    assert sum(isinstance(step, ViewStep) for step in plan.steps) == 2
    assert_order(plan)
    x = np.arange(9, dtype=np.float32).reshape(3, 3) / 10
    np.testing.assert_allclose(
        gk.compile(graph, opt_level=0, host=OnnxRuntimeHost())(x)[0], gk.evaluate(graph, [x])[0], rtol=1e-5
    )
