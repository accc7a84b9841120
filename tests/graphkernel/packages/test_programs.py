"""What runs out of a package is what was compiled: steps on numpy, numbers of shapes, derived extents, and those of data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import model

import graphkernel as gk
from graphkernel.errors import InputError, PackageError, RuntimeFailure
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.packages.programs import Parts, program_text, read_program
from graphkernel.runtime.steps.program import Program
from kernelgen.native import mapped
from tests.graphkernel.frontends import test_onnx_extents_of_data as of_data
from tests.graphkernel.runtime import test_numbers_of_shapes as of_shapes
from tests.kernelgen.tensor.test_derived import HEAD

pytestmark = pytest.mark.skipif(not mapped.is_supported(), reason="packages are made on x86-64 Linux")

Calls = Sequence[Sequence[np.ndarray]]


def cases() -> Iterator[tuple[str, gk.Graph, Calls]]:
    for name in of_shapes.PROGRAMS:
        graph = of_shapes.graph_of(name)
        yield name, graph, [of_shapes.arrays_for(graph, sizes) for sizes in of_shapes.SIZES]
    for name in of_data.MODELS:
        yield name, import_onnx(of_data.made(name)), [[x] for x in of_data.DATA]
    head = gk.parse(HEAD)
    yield "derived extents", head, [[np.linspace(-1, 1, extent, dtype=np.float32)] for extent in (4, 9, 20)]


CASES = {name: (graph, calls) for name, graph, calls in cases()}


@pytest.mark.parametrize("host", ["auto", "numpy"])
@pytest.mark.parametrize("name", CASES)
def test_it_runs_as_it_was_compiled(name: str, host: str, tmp_path: Path) -> None:
    graph, calls = CASES[name]
    compiled = gk.compile(graph, host=host)
    compiled.save(tmp_path / "net.gkx")
    loaded = gk.load_compiled(tmp_path / "net.gkx")
    assert (loaded.inputs, loaded.outputs) == (compiled.inputs, compiled.outputs)
    for arrays in calls:
        for got, wanted in zip(loaded(*arrays), compiled(*arrays), strict=True):
            np.testing.assert_array_equal(got, wanted)
    assert said(loaded.plan.program) == said(loaded.program)  # what is planned when somebody asks is what runs


def test_what_was_loaded_can_be_saved_again(tmp_path: Path) -> None:
    """Two operators of a library read one number, which the text of the graph has twice, before weights that are laid out.

    What is added to rows of a product stands in the text, and is read as it is.
    """
    random = np.random.default_rng(0)
    inputs = {"x": random.integers(0, 256, (1, 2, 8, 64)).astype(np.uint8), "a": np.array(3, np.uint8)}
    constants: dict[str, np.ndarray] = {
        "z": np.array(0, np.int8),
        "w": random.normal(size=(64, 100)).astype(np.float32),
    }
    constants["b"] = random.normal(size=(8, 1)).astype(np.float32)
    constants |= {name: random.integers(-9, 9, (4, 2, 1, 1)).astype(np.int8) for name in ("u", "v")}
    nodes = [
        helper.make_node("ConvInteger", ["x", "v", "a", "z"], ["s"]),
        helper.make_node("ConvInteger", ["x", "u", "a", "z"], ["t"]),
        helper.make_node("Cast", ["t"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["f", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["y"]),
        helper.make_node("Cast", ["s"], ["g"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["f", "g"], ["h"]),
    ]
    compiled = gk.compile(import_onnx(model(nodes, inputs, ("y", "h"), constants)))
    compiled.save(tmp_path / "first.gkx")
    gk.load_compiled(tmp_path / "first.gkx").save(tmp_path / "second.gkx")
    again = gk.load_compiled(tmp_path / "second.gkx")
    for got, wanted in zip(again(*inputs.values()), compiled(*inputs.values()), strict=True):
        np.testing.assert_array_equal(got, wanted)


def said(program: Program) -> str:
    """A program as text; kernels by the order in which they come."""
    known: dict[int, int] = {}
    return program_text(
        program, lambda step: known.setdefault(id(step.kernel), len(known)), lambda array: array.tobytes().hex()
    )


def test_what_does_not_fit_is_said_as_ever(tmp_path: Path) -> None:
    graph = gk.trace(lambda x: gk.ops.exp(x), gk.spec(("N", 4)))
    gk.compile(graph).save(tmp_path / "net.gkx")
    loaded = gk.load_compiled(tmp_path / "net.gkx")
    with pytest.raises(InputError, match=r"input x is f32\[N, 4\], got shape \(3, 5\)"):
        loaded(np.ones((3, 5), np.float32))
    with pytest.raises(InputError, match="no input is called y"):
        loaded(y=np.ones((3, 4), np.float32))


def test_a_step_that_fails_names_its_operator(tmp_path: Path) -> None:
    graph = gk.trace(lambda x, i: gk.ops.gather(x, i, axis=0), gk.spec((4, 4)), gk.spec((2,), "int64"))
    gk.compile(graph, host="onnxruntime").save(tmp_path / "net.gkx")
    loaded = gk.load_compiled(tmp_path / "net.gkx")
    with pytest.raises(RuntimeFailure, match="Gather"):
        loaded(np.ones((4, 4), np.float32), np.array([0, 9]))


def test_attributes_of_any_kind_come_back() -> None:
    attrs = {
        "a": 1,
        "b": -0.5,
        "c": float("inf"),
        "d": "text",
        "e": (1, (2.0, "x")),
        "f": True,
        "g": gk.spec(("2*N",)).shape[0],
    }
    graph = gk.compile(gk.trace(lambda x: gk.ops.exp(x), gk.spec((4,))), opt_level=0, host="numpy").program
    (step,) = graph.steps
    node: Any = replace(step.node, attrs=step.node.attrs.with_(**attrs))  # pyright: ignore[reportAttributeAccessIssue]
    text = said(graph._replace(steps=(step._replace(node=node),)))  # pyright: ignore[reportAttributeAccessIssue]
    again: Any = read_program(text, Parts((), (), {}, {"Exp": "kernelgen.tensor.operators.elemwise"})).steps[0]
    assert again.node.attrs.text == node.attrs.text
    with pytest.raises(PackageError, match="no file of operators"):
        read_program(text, Parts((), (), {}, {"Exp": "../evil"}))
