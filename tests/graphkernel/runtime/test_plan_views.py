"""What a view shows is there before it is read: kinds of views x data types x known and unknown shapes x neighbours."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import TypeRuleError
from graphkernel.ops import OPS, Tensor
from graphkernel.runtime.onnxruntime.regions import OnnxRuntimeHost
from graphkernel.runtime.steps.host import NumpyHost
from kernelgen.tensor.graph import Builder, Graph, Value
from kernelgen.tensor.types import TensorType, dtype, parse_type

TYPES = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "int64", "bool")
SHAPES = {"static": "[2, 3, 4]", "symbolic": "[B, S, 4]", "one symbol": "[B, 3, 4]"}
EXTENTS = ((2, 3, 4), (5, 3, 4), (2, 3, 4))
VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "reshape": lambda x: ops.reshape(x, (-1, 4)),
    "chain": lambda x: ops.squeeze(ops.expand_dims(ops.reshape(x, (-1, 2)), 0), (0,)),
    "expand": lambda x: ops.expand_dims(x, 1),
    "squeeze": lambda x: ops.squeeze(ops.expand_dims(x, 0), (0,)),
    "flat": lambda x: ops.reshape(x, (-1,)),
}


def host_operator(builder: Builder, value: Value, op_type: str, result: TensorType) -> Value:
    """An operator that only onnxruntime runs."""
    return builder.emit(
        OPS["Onnx"], value, op_type=op_type, opset=17, attributes="[]", result_types=(str(result),), domain=""
    )


def viewed(builder: Builder, value: Value, kind: str) -> Value:
    return VIEWS[kind](Tensor(value, builder)).value


def net(of: str, shape: str, kind: str, *, shown: bool) -> Graph:
    """Two operators of onnxruntime with views between them, the views perhaps a result as well."""
    builder = Builder()
    x = builder.parameter("x", parse_type(f"{dtype(of).short}{SHAPES[shape]}"))
    first = host_operator(builder, x, "Identity", x.type)
    view = viewed(builder, first, kind)
    last = host_operator(builder, view, "Identity", view.type)
    return Graph("net", (x,), (last, view) if shown else (last,))


def content(shape: tuple[int, ...], of: str, start: int) -> np.ndarray[Any, Any]:
    return (np.arange(np.prod(shape)) % 7 + start).reshape(shape).astype(dtype(of).numpy)


def assert_calls_are_right(graph: Graph, level: int = 0) -> None:
    """Calls with other content and other extents in turn: what the call before left would show."""
    executable = gk.compile(graph, level, host=OnnxRuntimeHost(threads=1))
    of = graph.inputs[0].type
    for number, extents in enumerate(EXTENTS if not of.is_static else (EXTENTS[0],) * 3):
        x = content(extents, of.dtype.name, number)
        for got, wanted in zip(executable(x), gk.evaluate(graph, [x]), strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("shown", [False, True])
@pytest.mark.parametrize("shape", ["static", "one symbol"])
@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize("of", TYPES)
def test_views_between_operators_of_the_library(of: str, kind: str, shape: str, shown: bool) -> None:
    assert_calls_are_right(net(of, shape, kind, shown=shown))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize("of", ["float32", "float16", "uint8"])
def test_views_of_unknown_extents_at_every_level(of: str, level: int) -> None:
    for shown in (False, True):
        assert_calls_are_right(net(of, "symbolic", "chain", shown=shown), level)


def test_extents_that_do_not_follow_from_the_operand_cut_the_region() -> None:
    """Batches are joined for a product and parted again behind it."""
    builder = Builder()
    x, w = builder.parameter("x", parse_type("f32[B, S, 8]")), builder.parameter("w", parse_type("f32[8, 8]"))
    weight = Tensor(w, builder)
    parted = ops.reshape(ops.matmul(ops.reshape(Tensor(x, builder), (-1, 8)), weight), x.type.shape)
    graph = Graph("net", (x, w), (ops.matmul(parted, weight).value,))
    executable = gk.compile(graph, opt_level=0, host=OnnxRuntimeHost(threads=1))
    weights = np.eye(8, dtype=np.float32)
    for number, extents in enumerate(((2, 3, 8), (1, 5, 8), (2, 3, 8))):
        x_ = content(extents, "float32", number)
        np.testing.assert_allclose(executable(x_, weights)[0], x_, rtol=1e-6)


def test_threads_of_one_executable_never_see_each_other() -> None:
    graph = net("float16", "one symbol", "chain", shown=True)
    executable = gk.compile(graph, opt_level=0, host=OnnxRuntimeHost(threads=1))

    def calls(start: int) -> bool:
        found: list[bool] = []
        for turn in range(40):
            x = content((1 + (start + turn) % 3, 3, 4), "float16", start)
            found += [
                np.array_equal(got, wanted) for got, wanted in zip(executable(x), gk.evaluate(graph, [x]), strict=True)
            ]
        return all(found)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(calls, range(8)))


@pytest.mark.parametrize("seed", range(60))
def test_random_chains_of_library_views_kernels_and_numpy(seed: int) -> None:
    assert_calls_are_right(random_chain(Random(seed)), seed % 4)


def random_chain(random: Random) -> Graph:
    """Operators of onnxruntime, of numpy and of kernels with views in any place, many values read twice and shown."""
    builder = Builder()
    of = random.choice(("float32", "float16", "int32", "uint8"))
    values = [builder.parameter("x", parse_type(f"{dtype(of).short}{random.choice(tuple(SHAPES.values()))}"))]
    for _ in range(random.randint(3, 12)):
        value, kind = random.choice(values[-3:]), random.choice(("host", "numpy", "kernel", "view", "view"))
        if kind == "host":
            values.append(host_operator(builder, value, "Identity", value.type))
        elif kind == "view":
            values.append(moved(builder, value, random.choice(tuple(VIEWS))))
        else:
            tensor = Tensor(value, builder)
            values.append((tensor + tensor if kind == "kernel" else -tensor).value)
    shown = random.sample(values[1:], min(len(values) - 1, random.randint(1, 3)))
    return Graph("chain", (values[0],), tuple(dict.fromkeys((*shown, values[-1]))))


def moved(builder: Builder, value: Value, kind: str) -> Value:
    """The view, or the value itself where its extents do not let it."""
    try:
        return viewed(builder, value, kind)
    except TypeRuleError:
        return value


def test_numpy_runs_the_same_plans() -> None:
    graph = net("uint8", "static", "chain", shown=True)
    x = content((2, 3, 4), "uint8", 1)
    for got, wanted in zip(gk.compile(graph, opt_level=0, host=NumpyHost())(x), gk.evaluate(graph, [x]), strict=True):
        np.testing.assert_array_equal(got, wanted)
