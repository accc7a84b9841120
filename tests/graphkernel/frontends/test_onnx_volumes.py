"""Convolutions of volumes are those of images: onnxruntime's numbers, in kernels alone, with no volume between two of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import graphkernel
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.operators.shape import TRANSPOSE

pytestmark = pytest.mark.usefixtures("shared_kernels")


@dataclass(frozen=True)
class Case:
    """A convolution; those behind the first have its ``results`` as channels."""

    shape: tuple[int, ...]
    results: int
    window: tuple[int, int, int]
    strides: tuple[int, int, int] = (1, 1, 1)
    pads: tuple[int, ...] = (0,) * 6
    dilations: tuple[int, int, int] = (1, 1, 1)
    group: int = 1


CASES = {
    "plain": Case((1, 16, 6, 14, 12), 16, (3, 3, 3), pads=(1,) * 6),
    "ends": Case((1, 4, 6, 9, 7), 8, (3, 3, 2), pads=(2, 0, 1, 0, 1, 0)),
    "strided": Case((1, 3, 7, 18, 16), 16, (3, 5, 5), (2, 2, 1), (1, 2, 2, 1, 2, 2)),
    "apart": Case((1, 8, 9, 12, 12), 8, (3, 3, 3), pads=(2, 1, 1, 2, 1, 1), dilations=(2, 1, 1)),
    "images": Case((1, 8, 5, 12, 12), 16, (1, 3, 3), (2, 1, 1), (0, 1, 1, 0, 1, 1)),
    "depths": Case((1, 16, 6, 8, 8), 16, (3, 1, 1), pads=(1, 0, 0, 1, 0, 0)),
    "several": Case((3, 8, 5, 10, 10), 8, (3, 3, 3), (1, 2, 2), (1,) * 6),
}
LEFT = {
    "several, strided": Case((2, 8, 6, 10, 10), 8, (3, 3, 3), (2, 1, 1), (1,) * 6),
    "groups": Case((1, 8, 6, 10, 10), 8, (3, 3, 3), pads=(1,) * 6, group=4),
}


def model(path: Path, case: Case, depth: int = 1) -> np.ndarray:
    """Writes a chain of ``depth`` convolutions with residuals between them to a ``path``; gives numbers for it."""
    draw = np.random.default_rng(0)
    name, nodes, held = "x", [], []
    for number in range(depth):
        channels = (case.shape[1] if number == 0 else case.results) // case.group
        weights = draw.standard_normal((case.results, channels, *case.window)) / np.sqrt(
            channels * np.prod(case.window)
        )
        held.append(numpy_helper.from_array(weights.astype(np.float32), f"w{number}"))
        held.append(numpy_helper.from_array(draw.standard_normal(case.results).astype(np.float32), f"b{number}"))
        nodes.append(
            helper.make_node(
                "Conv", [name, f"w{number}", f"b{number}"], [f"c{number}"], strides=case.strides, pads=case.pads,
                dilations=case.dilations, group=case.group,
            )
        )  # fmt: skip
        nodes.append(helper.make_node("Relu", [f"c{number}"], [f"r{number}"]))
        nodes.append(helper.make_node("Add", [f"r{number}", name if number else f"c{number}"], [f"y{number}"]))
        name = f"y{number}"
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, case.shape)
    graph = helper.make_graph(
        nodes, "volumes", [given], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)], held
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return draw.standard_normal(case.shape).astype(np.float32)


def agrees(path: Path, x: np.ndarray) -> graphkernel.Executable:
    exe = graphkernel.compile(graphkernel.load(path))
    (wanted,) = onnxruntime.InferenceSession(path).run(None, {"x": x})
    np.testing.assert_allclose(exe(x)[0], np.asarray(wanted), rtol=1e-4, atol=1e-4)
    return exe


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_convolution_of_volumes_is_one_of_images(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    agrees(path, model(path, case))
    operators = graphkernel.load(path).operators
    assert sum(node.op is CONV2D for node in operators) == 1


@pytest.mark.parametrize("case", LEFT.values(), ids=LEFT)
def test_others_are_a_librarys(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    agrees(path, model(path, case))
    assert not any(node.op is CONV2D for node in graphkernel.load(path).operators)


@pytest.mark.parametrize("count", [1, 2])
def test_between_convolutions_there_are_images_alone(count: int, tmp_path: Path) -> None:
    path, turned = tmp_path / "model.onnx", list[int]()
    case = Case((count, 32, 4, 28, 28), 32, (3, 3, 3), pads=(1,) * 6)
    for depth in (1, 3):
        exe = agrees(path, model(path, case, depth))
        assert exe.report.host == ()
        graph = graphkernel.optimize(graphkernel.load(path))
        operators = [inner for node in graph.operators for inner in (node.body.operators if node.body else (node,))]
        turned.append(sum(node.op is TRANSPOSE for node in operators))
    assert turned[0] == turned[1]


@pytest.mark.parametrize("shape", [(8, 1, 1, 1), (1, 8, 5, 1, 1), (5, 1, 1), (1, 12), (1,)], ids=str)
def test_what_is_broadcast_to_volumes_is_broadcast_to_images(shape: tuple[int, ...], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    x = model(path, Case((1, 8, 5, 10, 12), 8, (3, 3, 3), pads=(1,) * 6), depth=2)
    whole = onnx.load(path)
    scale = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    whole.graph.initializer.append(numpy_helper.from_array(scale, "scale"))
    (relu,) = (node for node in whole.graph.node if node.output[0] == "r0")
    relu.CopyFrom(helper.make_node("Mul", ["c0", "scale"], ["r0"]))
    onnx.save(whole, path)
    agrees(path, x)
