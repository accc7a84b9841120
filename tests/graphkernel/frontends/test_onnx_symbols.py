"""Extents of a model's inputs: every way to write one is read, and numbers given at load take their places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper

import graphkernel as gk
from graphkernel.errors import FrontendError
from graphkernel.frontends.onnx.importer import import_onnx
from tests.support.onnx_models import model, run_onnxruntime

X = np.ones((2, 3, 4, 5), np.float32)


def relu(*extents: Any) -> ModelProto:
    made = model([helper.make_node("Relu", ["x"], ["y"])], {"x": X}, shapes={"x": extents})
    return made


def shape(of: ModelProto, **dims: int) -> str:
    return str(import_onnx(of, dims=dims).inputs[0].type)


@pytest.mark.parametrize(("extents", "type_"), [
    (("N", 3, "N", "height"), "f32[N, 3, N, height]"),
    ((None, 3, None, "x_0"), "f32[x_0_2, 3, x_2, x_0]"),
    (("?", 3, "?", "-1"), "f32[x_0, 3, x_2, x_3]"),
    (("batch size", 3, "seq-len", "unk::3"), "f32[d_batch_size, 3, d_seq_len, d_unk__3]"),
    (("past", 3, "past + N", "N"), "f32[past, 3, N + past, N]"),
    (("return", 3, "const", 5), "f32[d_return, 3, d_const, 5]"),
    (("2*heads", "past + 1", "A*B", 5), "f32[2*heads, past + 1, d_A_B, 5]"),
])  # fmt: skip
def test_every_way_to_write_an_extent_is_read(extents: Any, type_: str) -> None:
    made = relu(*extents)
    assert shape(made) == type_


def test_a_negative_one_is_an_extent_without_a_name() -> None:
    made = relu(2, 3, 4, 5)
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert shape(made) == "f32[x_0, 3, 4, 5]"


def test_extents_without_a_name_may_differ() -> None:
    made = relu("?", 3, "?", 5)
    (got,) = gk.compile(import_onnx(made))(X)
    np.testing.assert_array_equal(got, run_onnxruntime(made, {"x": X})[0])


def test_numbers_given_at_load_are_extents(tmp_path: Path) -> None:
    made = relu("batch size", 3, "2*H", None)
    onnx.save(made, tmp_path / "m.onnx")
    assert str(gk.load(tmp_path / "m.onnx", dims={"H": 8, "batch size": 2}).inputs[0].type) == "f32[2, 3, 16, x_3]"
    assert shape(made, d_batch_size=4, x_3=7) == "f32[4, 3, 2*H, 7]"


def test_numbers_given_for_shapes_are_computed_with() -> None:
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("ConstantOfShape", ["s"], ["y"])]
    made = model(nodes, {"x": X}, shapes={"x": ("A", "B", "C", 5)})
    (output,) = import_onnx(made, dims={"A": 2, "B": 3, "C": 4}).outputs
    assert output.constant is not None


@pytest.mark.parametrize(("dims", "message"), [
    ({"hight": 4}, r"no input has an extent 'hight' \(did you mean 'height'\?\); it has N, height"),
    ({"N": -1}, "N = -1 is no extent"),
    ({"N": True}, "N = True is no extent"),
])  # fmt: skip
def test_numbers_that_fit_nothing_are_named(dims: Any, message: str) -> None:
    with pytest.raises(FrontendError, match=message):
        import_onnx(relu("N", 3, "height", 5), dims=dims)
    with pytest.raises(FrontendError, match=r"every extent of its inputs is fixed"):
        import_onnx(relu(2, 3, 4, 5), dims={"N": 1})
