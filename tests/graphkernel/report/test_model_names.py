"""Explanations understand the names of an ONNX model: those of its operators and of its nodes, however they are written."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

import graphkernel as gk
from graphkernel.errors import GraphKernelError
from graphkernel.frontends.onnx.importer import import_onnx
from tests.support.onnx_models import model

IMAGE, WEIGHT = np.ones((1, 2, 5, 5), np.float32), np.ones((2, 2, 3, 3), np.float32)
NODES = [
    helper.make_node("Conv", ["x", "w"], ["c"], name="/features/Conv"),
    helper.make_node("Relu", ["c"], ["r"], name="/features/Relu"),
    helper.make_node("HardSwish", ["r"], ["h"], name="/features/HardSwish"),
    helper.make_node("Neg", ["h"], ["y"]),
]
IN_A_LIBRARY = "--disable_pass=to_nhwc_format"  # the convolution
EXPLANATION = gk.explain(import_onnx(model(NODES, {"x": IMAGE, "w": WEIGHT})), flags=IN_A_LIBRARY)


@pytest.mark.parametrize("first", ["Conv", "/features/Conv", "features.Conv", "Conv2D"])
@pytest.mark.parametrize("second", ["Relu", "/features/Relu", "ReLU"])
def test_operators_and_nodes_have_the_models_names(first: str, second: str) -> None:
    told = EXPLANATION.why(first, second)
    assert told.startswith(f"no kernel holds both {first} and {second}")
    assert "not-fused-opaque" in told
    assert "for example /features/Conv -> /features/Relu\n" in told


@pytest.mark.parametrize("first", ["HardSwish", "/features/HardSwish"])
@pytest.mark.parametrize("second", ["y", "Neg", "Relu"])
def test_an_operator_that_we_write_as_others_is_followed_into_them(first: str, second: str) -> None:
    assert EXPLANATION.why(first, second).startswith(f"{first} and {second} are both in kernel")


def test_the_nearest_name_may_be_the_models() -> None:
    with pytest.raises(GraphKernelError, match=r"nothing is called 'Conf' \(did you mean 'Conv'\?\)"):
        EXPLANATION.why("Conf", "Relu")
    with pytest.raises(GraphKernelError, match=r"did you mean '/features/Conv'\?"):
        EXPLANATION.why("/feature/Conv", "Relu")
