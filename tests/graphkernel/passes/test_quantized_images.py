"""Quantized image networks are kernels of ours as a whole: within one step of onnxruntime, or left alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model, run_onnxruntime

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.passes.base import Context
from graphkernel.passes.precision.quantized_images import quantized_images
from kernelgen.tensor.operators.nn import CONV2D

STEP = 0.05
ZEROS = {"uint8 0": np.uint8(0), "uint8": np.uint8(131), "int8 least": np.int8(-128), "int8": np.int8(3)}


def network(zero: Any, channels: int, group: int, attributes: Mapping[str, Any]) -> tuple[onnx.ModelProto, np.ndarray]:
    """Two convolutions with biases and a sum with what the first one gives, each between pairs; scales by channels."""
    random = np.random.default_rng(0)
    size = int(attributes.get("kernel_shape", (3, 3))[0])
    nodes: list[onnx.NodeProto] = []

    def add(name: str, operands: str, result: str, **attrs: Any) -> None:
        nodes.append(helper.make_node(name, operands.split(), [result], **attrs))

    def pair(value: str, result: str) -> None:
        add("QuantizeLinear", f"{value} s z", f"{value}_q")
        add("DequantizeLinear", f"{value}_q s z", result)

    pair("x", "u")
    add("DequantizeLinear", "w1 t1 n1", "v1", axis=0)
    add("Conv", "u v1 c1", "a", **attributes, group=group)
    pair("a", "b")
    add("DequantizeLinear", "w2 t2 n2", "v2", axis=0)
    add("Conv", "b v2 c2", "r")
    pair("r", "p")
    add("Add", "p b", "e")
    pair("e", "y")
    constants = {"s": np.float32(STEP), "z": zero}
    for number, shape in ((1, (16, channels // group, size, size)), (2, (16, 16, 1, 1))):
        constants |= {
            f"w{number}": random.integers(-127, 128, shape).astype(np.int8), f"n{number}": np.zeros(16, np.int8),
            f"t{number}": random.uniform(0.001, 0.002, 16).astype(np.float32),
            f"c{number}": random.standard_normal(16).astype(np.float32),
        }  # fmt: skip
    x = random.standard_normal((2, channels, 9, 8)).astype(np.float32)
    return model(nodes, {"x": x}, constants={name: np.asarray(each) for name, each in constants.items()}), x


FORMS: Mapping[str, tuple[int, int, Mapping[str, Any]]] = {
    "padded": (8, 1, {"pads": (1, 1, 1, 1)}), "strided": (8, 1, {"pads": (1, 0, 1, 2), "strides": (2, 1)}),
    "a picture": (3, 1, {"pads": (1, 1, 1, 1)}), "points": (12, 1, {"kernel_shape": (1, 1)}),
    "by channels": (16, 16, {"pads": (1, 1, 1, 1)}),
}  # fmt: skip


CASES = (
    ("padded", "uint8 0"),
    ("strided", "int8"),
    ("a picture", "uint8"),
    ("points", "int8 least"),
    ("by channels", "uint8"),
)


@pytest.mark.parametrize(("form", "zero"), CASES)
def test_numbers_are_within_one_step_of_onnxruntime(form: str, zero: str) -> None:
    given, x = network(ZEROS[zero], *FORMS[form])
    exe = gk.compile(import_onnx(given), threads=1)
    assert not exe.report.host
    found, (expected,) = np.asarray(exe(x)[0]), run_onnxruntime(given, {"x": x})
    steps = np.rint(np.abs(found - expected) / STEP)
    assert np.count_nonzero(steps) <= 0.02 * steps.size  # numbers in the middle of two steps
    assert steps.max() <= 2  # of both summands


@pytest.mark.parametrize("form", FORMS)
def test_sums_are_of_bytes_but_those_of_groups(form: str) -> None:
    given, _ = network(ZEROS["uint8"], *FORMS[form])
    made = quantized_images(import_onnx(given), Context(gk.Options.parse({"opt_level": 2})))
    kinds = [node.out.type.dtype.name for node in made.operators if node.op.name == "Conv2D"]
    assert kinds == ["float32" if form == "by channels" else "int32", "int32"]


@pytest.mark.parametrize("zero", ZEROS)
def test_bytes_without_a_sign_are_all_that_kernels_hand_on(zero: str) -> None:
    given, _ = network(ZEROS[zero], *FORMS["padded"])
    made = gk.optimize(import_onnx(given), opt_level=2, target="cpu")
    *kernels, _ = made.operators  # the last one puts the result into its order
    read = [arg for kernel in kernels for arg in kernel.args if arg.node in kernels]
    assert {value.type.dtype.name for value in read} == {"uint8"}


def blocks(count: int) -> onnx.ModelProto:
    """Residual blocks of two convolutions each, behind a convolution; every result is quantized and read again."""
    random, channels = np.random.default_rng(0), 16
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, np.ndarray] = {"s": np.array(STEP, np.float32), "z": np.array(0, np.uint8)}

    def read_again(value: str) -> str:
        nodes.append(helper.make_node("QuantizeLinear", [value, "s", "z"], [f"{value}_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{value}_q", "s", "z"], [f"{value}_r"]))
        return f"{value}_r"

    def convolved(value: str, result: str) -> str:
        constants[f"{result}_w"] = random.integers(-127, 128, (channels, channels, 3, 3)).astype(np.int8)
        constants[f"{result}_s"] = random.uniform(0.001, 0.002, channels).astype(np.float32)
        nodes.append(helper.make_node("DequantizeLinear", [f"{result}_w", f"{result}_s"], [f"{result}_v"], axis=0))
        nodes.append(helper.make_node("Conv", [value, f"{result}_v"], [result], pads=(1, 1, 1, 1)))
        return result

    value = read_again(convolved(read_again("x"), "first"))
    for number in range(count):
        inner = read_again(convolved(value, f"inner{number}"))
        outer = read_again(convolved(inner, f"outer{number}"))
        nodes.append(helper.make_node("Add", [outer, value], [f"sum{number}"]))
        nodes.append(helper.make_node("Relu", [f"sum{number}"], [f"kept{number}"]))
        value = read_again(f"kept{number}")
    nodes.append(helper.make_node("Identity", [value], ["y"]))
    return model(nodes, {"x": np.zeros((1, channels, 16, 16), np.float32)}, constants=constants)


def test_bytes_that_a_sum_reads_too_are_handed_on_once() -> None:
    made = gk.optimize(import_onnx(blocks(3)), opt_level=2, target="cpu")
    products = [
        kernel for kernel in made.operators if kernel.body and any(node.op is CONV2D for node in kernel.body.operators)
    ]
    assert len(products) == 7
    assert [[out.type.dtype.name for out in kernel.outs] for kernel in products[:-1]] == [["uint8"]] * 6


def test_what_cannot_be_arithmetic_as_a_whole_stays() -> None:
    given, _ = network(ZEROS["int8"], *FORMS["padded"])
    last = next(node for node in given.graph.node if node.output[0] == "e_q")
    last.input[1:] = ["t1", "n1"]  # scales by channels
    graph = import_onnx(given)
    assert quantized_images(graph, Context(gk.Options.parse({"opt_level": 2}))) is graph
