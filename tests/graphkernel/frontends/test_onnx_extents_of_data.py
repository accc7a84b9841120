"""Extents that depend on data: models with them load, keep what follows from them, and agree with onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, helper

import graphkernel as gk
from graphkernel.errors import InputError
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.runtime.steps.steps import KernelStep
from kernelgen.tensor.verify import verify
from tests.support.onnx_models import model, run_onnxruntime

X = np.array([0, 1, 0, 2, 3, 0], np.float32)
DATA = (X, np.ones(6, np.float32), np.zeros(6, np.float32), X[::-1].copy(), X[:4].copy())
WEIGHTS = {
    "first": np.array([0]), "rows": np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4), "one": np.array([1]),
    "bias": np.array([1, -2, 3, 0.5], np.float32), "flat": np.array([-1]), "zero": np.array(0), "last": np.array([-1]),
}  # fmt: skip


def node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, inputs.split(), outputs.split(), **attributes)


FOUND = [node("NonZero", "x", "nz"), node("Squeeze", "nz first", "i"), node("Gather", "rows i", "r", axis=0)]
MODELS: dict[str, tuple[Sequence[NodeProto], Sequence[str]]] = {
    "rows that are found, in a kernel": (
        [*FOUND, node("Add", "r bias", "s"), node("Relu", "s", "t"), node("Exp", "t", "y")], ["y"]
    ),
    "their shape, sum and mean": (
        [*FOUND, node("Exp", "r", "e"), node("Shape", "e", "y"), node("ReduceSum", "e first", "z", keepdims=0),
         node("ReduceMean", "e", "w", axes=[1])], ["y", "z", "w", "i"],
    ),
    "their number, and nothing else": ([*FOUND, node("Size", "r", "y")], ["y"]),
    "an expansion to as many": (
        [*FOUND, node("Shape", "r", "s"), node("Expand", "bias s", "e"), node("Mul", "e r", "y")], ["y"]
    ),
    "two numbers that may differ": (
        [*FOUND, node("Neg", "x", "m"), node("Add", "m x", "o"), node("NonZero", "o", "q"),
         node("Concat", "nz q", "y", axis=1)],
        ["y", "q"],
    ),
    "the first and the others": (
        [*FOUND, node("Slice", "i first one", "y"), node("Slice", "i one flat_end", "z"), node("Exp", "r", "w")],
        ["y", "z", "w"],
    ),
    "whether there are any": (
        [*FOUND, node("Shape", "i", "s"), node("Equal", "s first", "y"), node("Reshape", "r flat", "z")], ["y", "z"]
    ),
    "data that depend on what depends on data": (
        [*FOUND, node("Relu", "r", "t"), node("Exp", "t", "e"), node("NonZero", "t", "q"), node("Transpose", "q", "p"),
         node("GatherND", "e p", "g"), node("Tanh", "g", "h"), node("Mul", "h h", "y")], ["y", "e"],
    ),
}  # fmt: skip


def made(name: str) -> ModelProto:
    nodes, outputs = MODELS[name]
    constants = {**WEIGHTS, "flat_end": np.array([9])}
    used = {operand for each in nodes for operand in each.input}
    return model(nodes, {"x": X}, outputs, {k: v for k, v in constants.items() if k in used}, shapes={"x": ("N",)})


def agree(got: Sequence[Any], expected: Sequence[Any]) -> None:
    for mine, theirs in zip(got, expected, strict=True):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("flags", ["", "--enable_debug_mode=true"])
def test_models_agree_with_onnxruntime_for_all_data(name: str, flags: str) -> None:
    graph = import_onnx(made(name))
    verify(graph)
    assert gk.parse(str(graph)) == graph
    for level, host in [(0, "numpy"), *((level, "auto") for level in range(4))]:
        optimized = gk.optimize(graph, level)
        assert gk.parse(str(optimized)) == optimized
        executable = gk.compile(graph, level, flags=flags or None, host=host)
        results = [(executable(x), run_onnxruntime(made(name), {"x": x}), x) for x in DATA]
        for got, expected, x in results:  # after all calls: none may take another's memory
            agree(got, expected)
            agree(gk.evaluate(optimized, [x]), expected)


def kernels() -> Iterator[Any]:
    executable = gk.compile(import_onnx(made("rows that are found, in a kernel")))
    yield from (step for step in executable.plan.steps if isinstance(step, KernelStep))


def test_what_follows_is_fused() -> None:
    assert len(list(kernels())) == 1


def test_results_go_where_the_caller_wants_if_they_fit() -> None:
    executable = gk.compile(import_onnx(made("rows that are found, in a kernel")))
    (expected,) = run_onnxruntime(made("rows that are found, in a kernel"), {"x": X})
    place = np.empty_like(expected)
    executable(X, out=(place,))
    agree([place], [expected])
    with pytest.raises(InputError, match=r"out\[0\] must be a writeable array float32\[3, 4\], got float32\[1, 4\]"):
        executable(X, out=(np.empty((1, 4), np.float32),))


def test_symbols_have_the_names_that_the_model_declares() -> None:
    of = made("rows that are found, in a kernel")
    of.graph.value_info.append(helper.make_tensor_value_info("nz", 7, [1, "found"]))
    assert str(import_onnx(of).outputs[0].type) == "f32[found, 4]"
    of.graph.value_info[0].type.tensor_type.shape.dim[1].dim_param = "N"  # the input has it
    assert str(import_onnx(of).outputs[0].type) == "f32[u0, 4]"


def test_plans_of_models_without_such_extents_are_one_segment() -> None:
    of = model([helper.make_node("Exp", ["x"], ["y"])], {"x": X}, shapes={"x": ("N",)})
    assert len(gk.compile(import_onnx(of)).plan.segments) == 1
