"""Convolutions of images that are quantized at run time are kernels of ours: the integers of the definition."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from onnx import helper, numpy_helper
from onnx_models import model, run_onnxruntime

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.handoff import to_desc
from graphkernel.passes.base import Context
from graphkernel.passes.precision.integer_convolutions import integer_convolutions
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.verify import verify

pytestmark = pytest.mark.usefixtures("shared_kernels")

Array = np.ndarray[Any, np.dtype[Any]]
CHANNELS = 16
FORMS: Mapping[str, tuple[int, int, int, Mapping[str, Any]]] = {
    "points": (12, 1, 1, {}),
    "inside": (8, 1, 3, {}),
    "padded": (8, 1, 3, {"pads": (1, 1, 1, 1)}),
    "strided": (8, 1, 3, {"pads": (1, 0, 2, 1), "strides": (2, 1)}),
    "dilated": (8, 1, 3, {"pads": (2, 2, 2, 2), "dilations": (2, 2)}),
    "a picture": (3, 1, 3, {"pads": (1, 1, 1, 1)}),
    "by channels": (16, 16, 3, {"pads": (1, 1, 1, 1)}),
    "by groups": (32, 4, 3, {"pads": (1, 1, 1, 1)}),
}
ZEROS: Mapping[str, Any] = {"none": None, "one": 5, "by channels": range(-8, 8)}


def network(form: str, kind: str, zeros: str, is_positive: bool) -> tuple[onnx.ModelProto, Array, Array]:
    """An image, quantized, and its convolution; the weights and the image."""
    random = np.random.default_rng(0)
    channels, group, size, attributes = FORMS[form]
    bounds = np.iinfo(kind)
    weights = random.integers(bounds.min, bounds.max + 1, (CHANNELS, channels // group, size, size)).astype(kind)
    constants = {"w": weights}
    if ZEROS[zeros] is not None:
        constants["v"] = (np.array(ZEROS[zeros]) + (128 if kind == "uint8" else 0)).astype(kind)
    nodes = [helper.make_node("Relu", ["x"], ["r"])] if is_positive else []
    nodes += [
        helper.make_node("DynamicQuantizeLinear", ["r" if is_positive else "x"], ["q", "s", "z"]),
        helper.make_node("ConvInteger", ["q", "w", "z", *list(constants)[1:]], ["y"], group=group, **attributes),
    ]
    x = random.standard_normal((2, channels, 9, 8)).astype(np.float32) + np.float32(0.3)
    return model(nodes, {"x": x}, ("y", "q", "z"), constants), weights, x


def convolved(q: Array, zero: Array, weights: Array, zeros: Array, form: str) -> Array:
    """The definition: sums of products of differences, around the image 0."""
    _, group, _, given = FORMS[form]
    top, left, bottom, right = given.get("pads", (0, 0, 0, 0))
    (down, across), (row, column) = given.get("strides", (1, 1)), given.get("dilations", (1, 1))
    image = np.pad(q.astype(np.int64) - int(zero), ((0, 0), (0, 0), (top, bottom), (left, right)))
    kernel = weights.astype(np.int64) - zeros.astype(np.int64).reshape(-1, 1, 1, 1)
    spans = tuple(step * (n - 1) + 1 for step, n in zip((row, column), kernel.shape[2:], strict=True))
    windows = sliding_window_view(image, spans, (2, 3))[:, :, ::down, ::across, ::row, ::column]
    parts = zip(np.split(windows, group, 1), np.split(kernel, group), strict=True)
    return np.concatenate([np.einsum("nchwij,ocij->nohw", window, part) for window, part in parts], 1)


@pytest.mark.parametrize(("form", "is_positive"), [*product(FORMS, (False, True))])
def test_integers_are_those_of_the_definition(form: str, is_positive: bool) -> None:
    given, weights, x = network(form, "int8", "none", is_positive)
    exe = gk.compile(import_onnx(given), threads=1)
    assert not exe.report.host
    found, q, zero = map(np.asarray, exe(x))
    _, expected, offset = run_onnxruntime(given, {"x": x})
    assert np.array_equal(q, expected)
    assert np.array_equal(zero, offset)
    assert found.dtype == np.int32
    assert np.array_equal(found, convolved(q, zero, weights, np.zeros(1), form))


@pytest.mark.parametrize(("kind", "zeros"), [*product(("int8", "uint8"), ZEROS)])
@pytest.mark.parametrize("form", ["points", "padded", "a picture", "by groups"])
def test_zero_points_of_weights_are_taken_off(form: str, kind: str, zeros: str) -> None:
    given, weights, x = network(form, kind, zeros, is_positive=False)
    exe = gk.compile(import_onnx(given), threads=1)
    assert not exe.report.host
    found, q, zero = map(np.asarray, exe(x))
    held = {each.name: numpy_helper.to_array(each) for each in given.graph.initializer}
    assert np.array_equal(found, convolved(q, zero, weights, held.get("v", np.zeros(1)), form))


def test_an_image_without_negative_numbers_is_not_padded_and_nothing_is_taken_off() -> None:
    given, _, _ = network("padded", "int8", "none", is_positive=True)
    made = gk.optimize(import_onnx(given), opt_level=2, target="cpu")
    names = {node.op.name for kernel in made.operators for node in (kernel.body.operators if kernel.body else [kernel])}
    assert not names & {"PadAkg", "ReduceMin", "ConvInteger", "Onnx"}


def lone(channels: int, weights: Array | None, **attributes: Any) -> onnx.ModelProto:
    """A convolution of bytes with a zero point, both given at run time, and constant weights where they are given."""
    random = np.random.default_rng(0)
    inputs = {"q": random.integers(0, 256, (2, channels, 9, 8)).astype(np.uint8), "z": np.array(3, np.uint8)}
    held = {} if weights is None else {"w": weights}
    inputs |= {"w": np.ones((CHANNELS, channels, 3, 3), np.int8)} if weights is None else {}
    return model([helper.make_node("ConvInteger", ["q", "w", "z"], ["y"], **attributes)], inputs, constants=held)


def with_known_zero(kind: str, zero: int | None = 9) -> tuple[onnx.ModelProto, Array]:
    """A padded convolution of bytes of a ``kind``, whose ``zero`` point is a constant, or is left out; and the image."""
    random, bounds = np.random.default_rng(0), np.iinfo(kind)
    q = random.integers(bounds.min, bounds.max + 1, (2, 8, 9, 8)).astype(kind)
    held = {"w": random.integers(-128, 128, (CHANNELS, 8, 3, 3)).astype(np.int8)}
    held |= {} if zero is None else {"z": np.array(zero, kind)}
    return model([helper.make_node("ConvInteger", ["q", *held], ["y"], pads=(1, 1, 1, 1))], {"q": q}, constants=held), q


def along_one_axis() -> onnx.ModelProto:
    """The same along one axis, without a border."""
    q = np.zeros((2, 8, 9), np.uint8)
    return model([helper.make_node("ConvInteger", ["q", "w"], ["y"])], {"q": q}, constants={"w": ones(8)[:, :, 0]})


def ones(inner: int) -> Array:
    return np.ones((CHANNELS, inner, 3, 3), np.int8)


STAY = {
    "the border is computed": lone(8, ones(8), pads=(1, 1, 1, 1)),
    "weights are computed": lone(8, None),
    "bytes with a sign": with_known_zero("int8")[0],
    "one axis": along_one_axis(),
    "groups of many terms": lone(30, ones(15), group=2),
}


@pytest.mark.parametrize("why", STAY)
def test_what_does_not_fit_stays(why: str) -> None:
    graph = import_onnx(STAY[why])
    assert integer_convolutions(graph, Context(gk.Options.parse({"opt_level": 2}))) is graph


def automatic(padding: str) -> onnx.ModelProto:
    """An image quantized at run time, and its convolution with automatic padding and strides."""
    x = np.random.default_rng(0).standard_normal((2, 16, 9, 8)).astype(np.float32)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("ConvInteger", ["q", "w", "z"], ["y"], auto_pad=padding, strides=(2, 2)),
    ]
    return model(
        nodes, {"x": x}, constants={"w": np.arange(-64, 80).astype(np.int8).reshape(1, 16, 3, 3).repeat(16, 0)}
    )


@pytest.mark.parametrize("padding", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_automatic_padding_is_that_of_convolutions_of_floats(padding: str) -> None:
    given, x = automatic(padding), np.random.default_rng(1).standard_normal((2, 16, 9, 8)).astype(np.float32)
    exe = gk.compile(import_onnx(given), threads=1)
    assert not exe.report.host
    assert np.array_equal(exe(x)[0], run_onnxruntime(given, {"x": x})[0])


def test_automatic_padding_of_open_extents_stays() -> None:
    given = automatic("SAME_UPPER")
    for dim, name in zip(given.graph.input[0].type.tensor_type.shape.dim[2:], ("rows", "columns"), strict=True):
        dim.dim_param = name
    graph = import_onnx(given)
    assert integer_convolutions(graph, Context(gk.Options.parse({"opt_level": 2}))) is graph


@pytest.mark.parametrize("given", [lone(8, ones(8)), lone(28, ones(14), group=2)], ids=["inside", "groups"])
def test_what_nearly_did_not_fit_goes(given: onnx.ModelProto) -> None:
    made = integer_convolutions(import_onnx(given), Context(gk.Options.parse({"opt_level": 2})))
    assert "Conv2D" in {node.op.name for node in made.operators}


@pytest.mark.parametrize("flags", ["--disable_cluster_ops=Conv2D", "--enable_cluster_ops_only=Add"])
def test_flags_that_keep_convolutions_out_of_kernels_leave_them(flags: str) -> None:
    graph = import_onnx(network("padded", "int8", "none", is_positive=False)[0])
    (entry,) = gk.compile(graph, flags=flags).report.host
    assert entry.operators == ("DynamicQuantizeLinear", "ConvInteger")


def test_what_is_quantized_for_others_stays() -> None:
    given, _, _ = network("padded", "int8", "none", is_positive=False)
    given.graph.node.append(helper.make_node("DynamicQuantizeLinear", ["s"], ["q2", "s2", "z2"]))
    given.graph.output.append(helper.make_tensor_value_info("q2", onnx.TensorProto.UINT8, []))
    made = integer_convolutions(import_onnx(given), Context(gk.Options.parse({"opt_level": 2})))
    assert [node.op.name for node in made.operators].count("Onnx") == 1


@pytest.mark.parametrize("zero", [9, 0, None])
def test_a_border_is_a_zero_point_that_is_known(zero: int | None) -> None:
    given, q = with_known_zero("uint8", zero)
    exe = gk.compile(import_onnx(given), threads=1)
    assert not exe.report.host
    assert np.array_equal(exe(q)[0], run_onnxruntime(given, {"q": q})[0])


@pytest.mark.parametrize("form", ["padded", "a picture", "by channels", "by groups"])
def test_kernels_are_proved(form: str) -> None:
    made = gk.optimize(import_onnx(network(form, "int8", "one", is_positive=False)[0]), opt_level=2, target="cpu")
    kernels = [node for node in made.operators if node.body and any(each.op is CONV2D for each in node.body.operators)]
    assert kernels
    assert [verify(to_desc(node, "cpu"), "cpu").status for node in kernels] == ["passed"] * len(kernels)


def test_a_library_takes_bytes_with_floats_as_floats() -> None:
    random = np.random.default_rng(0)
    image = random.integers(0, 256, (1, 16, 5, 6)).astype(np.uint8)
    weights = random.integers(-128, 128, (16, 1, 3, 3)).astype(np.float32)

    def mixed(x: Any) -> Any:
        return gk.ops.apply(CONV2D, x, weights, group=16, pad=(1, 1, 1, 1))

    graph = gk.trace(mixed, gk.spec(image.shape, "uint8"))
    expected = convolved(image, np.zeros(()), weights, np.zeros(1), "by channels")
    assert np.array_equal(gk.evaluate(graph, [image])[0], expected)
    exe = gk.compile(graph, opt_level=0)
    assert exe.report.host
    assert np.array_equal(exe(image)[0], expected)
