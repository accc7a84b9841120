"""What goes wrong in a call is told with the operator and its name; the next call is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import GraphKernelError, InputError, RuntimeFailure
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.runtime.onnxruntime.regions import OnnxRuntimeHost
from graphkernel.runtime.steps.host import NumpyHost
from kernelgen.tensor.graph import Graph
from tests.support.onnx_models import model

Array = np.ndarray[Any, Any]
HOSTS = {"onnxruntime": OnnxRuntimeHost(threads=1), "numpy": NumpyHost()}
MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)


def imported(
    nodes: list[Any], constants: dict[str, Array], of: Array = MATRIX, shape: tuple[Any, ...] = ("N", 4)
) -> Graph:
    return import_onnx(model(nodes, {"x": of}, constants=constants, shapes={"x": shape}))


def gathered() -> Graph:
    node = helper.make_node("Gather", ["table", "x"], ["y"], name="look_up")
    return imported([node], {"table": MATRIX}, np.zeros(2, np.int64), ("N",))


def scattered() -> Graph:
    node = helper.make_node("ScatterElements", ["data", "x", "updates"], ["y"], name="put")
    constants = {"data": np.zeros(4, np.float32), "updates": np.ones(2, np.float32)}
    return imported([node], constants, np.zeros(2, np.int64), (2,))


CASES: dict[str, tuple[Callable[[], Graph], str, Array, Array]] = {
    "an index beyond its axis": (gathered, "Gather look_up", np.asarray([7, 0]), np.asarray([2, 0])),
    "a place beyond the end": (scattered, "ScatterElements put", np.asarray([9, 0]), np.asarray([1, 0])),
}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", CASES)
def test_a_failed_call_names_the_operator_and_the_next_one_is_right(name: str, host: str) -> None:
    make, subject, bad, good = CASES[name]
    graph = make()
    executable = gk.compile(graph, 0, host=HOSTS[host])
    with pytest.raises(RuntimeFailure, match=subject) as failed:
        executable(bad)
    assert failed.value.__cause__ is not None
    assert "onnxruntime/core" not in str(failed.value)
    for got, wanted in zip(executable(good), gk.evaluate(graph, [good]), strict=True):
        np.testing.assert_allclose(got, wanted)


def test_of_many_operators_in_a_region_the_one_that_failed_is_named() -> None:
    nodes = [
        helper.make_node(
            "Selu" if step else "Gather", [f"v{step}"] if step else ["table", "x"], [f"v{step + 1}"], name=f"op{step}"
        )
        for step in range(12)
    ]
    nodes.append(helper.make_node("Identity", ["v12"], ["y"]))
    executable = gk.compile(
        imported(nodes, {"table": MATRIX}, np.zeros(2, np.int64), ("N",)),
        flags="--disable_cluster_ops=Gather",
        host=HOSTS["onnxruntime"],
    )
    with pytest.raises(RuntimeFailure, match=r"^Gather op0 fails: indices element out of data bounds, idx=7 "):
        executable(np.asarray([7, 0]))


def test_a_numpy_step_is_named_too() -> None:
    graph = gk.trace(lambda x: ops.sinh(ops.argmax(x, 0, output_type="int64").astype("float32")), gk.spec((0, 4)))
    with pytest.raises(RuntimeFailure, match=r"Argmax .* fails: ValueError"):
        gk.compile(graph, 0, host="numpy")(np.zeros((0, 4), np.float32))


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("of", ["float32", "float16", "int32", "uint8"])
def test_the_extremes_of_nothing_are_those_of_the_type(of: str, host: str, level: int) -> None:
    """For static shapes as for symbols, in kernels and outside."""
    least, greatest = (-np.inf, np.inf) if of.startswith("f") else (np.iinfo(of).min, np.iinfo(of).max)
    for rows in (0, "N"):
        graph = gk.trace(lambda x: (ops.reduce_max(x, 0), ops.reduce_min(x, 0)), gk.spec((rows, 4), of))
        largest, smallest = gk.compile(graph, level, host=HOSTS[host])(np.zeros((0, 4), of))
        assert (largest == least).all()
        assert (smallest == greatest).all()


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("function", [ops.softmax, ops.log_softmax])
def test_a_softmax_of_empty_rows_is_empty(function: Callable[[Any], Any], level: int) -> None:
    for columns in (0, "N"):
        executable = gk.compile(gk.trace(function, gk.spec((64, columns))), level)
        assert executable(np.zeros((64, 0), np.float32))[0].shape == (64, 0)


@pytest.mark.parametrize(
    "out", [5, None, "xy", {0: MATRIX}, np.zeros((3, 4), np.float32), iter(())], ids=lambda out: type(out).__name__
)
def test_out_that_is_no_tuple_is_refused(out: Any) -> None:
    executable = gk.compile(gk.trace(lambda x: (x + 1.0,), gk.spec((3, 4))))
    if out is None:
        assert executable(MATRIX, out=out)[0].shape == (3, 4)
    else:
        with pytest.raises(InputError, match="out= takes a tuple of arrays"):
            executable(MATRIX, out=out)


def test_outputs_that_share_memory_are_refused() -> None:
    executable = gk.compile(gk.trace(lambda x: (x + 1.0, x * 2.0), gk.spec((3, 4))))
    one, wide = np.zeros((3, 4), np.float32), np.zeros((3, 8), np.float32)
    for first, second in ((one, one), (one, one[...]), (one[::-1], one), (wide[:, :4], wide[:, 3:7])):
        with pytest.raises(InputError, match=r"out\[0\] and out\[1\] share memory"):
            executable(MATRIX, out=(first, second))
    executable(MATRIX, out=(wide[:, ::2], wide[:, 1::2]))  # between each other, but apart
    np.testing.assert_array_equal(wide[:, ::2], MATRIX + 1)
    np.testing.assert_array_equal(wide[:, 1::2], MATRIX * 2)


def test_out_over_an_input_gives_the_result() -> None:
    executable = gk.compile(gk.trace(ops.transpose, gk.spec((4, 4))))
    square = np.arange(16, dtype=np.float32).reshape(4, 4)
    wanted = square.T.copy()
    executable(square, out=(square,))
    np.testing.assert_array_equal(square, wanted)


def test_every_error_of_a_call_is_ours() -> None:
    executable = gk.compile(gathered(), host=HOSTS["onnxruntime"])
    for arguments in (
        (),
        (None,),
        (MATRIX,),
        (np.asarray([1.5]),),
        (object(),),
        (np.asarray([9]),),
        (np.asarray(["a"]),),
    ):
        with pytest.raises(GraphKernelError):
            executable(*arguments)
