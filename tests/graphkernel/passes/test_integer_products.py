"""Products of quantized matrices are kernels of ours: the integers of numpy, and of onnxruntime where it quantizes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx_models import model, run_onnxruntime

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.handoff import to_desc
from kernelgen.tensor.operators.matmul import MATMUL_INTEGER
from kernelgen.transforms.cpu import byte_pairs, byte_words
from kernelgen.verify import verify

Array = np.ndarray[Any, np.dtype[Any]]
COLUMNS, STEP = 64, 0.3
ZEROS: Mapping[str, object] = {"none": None, "one": 7, "by columns": range(-3, COLUMNS - 3)}
SEEDS = st.integers(0, 2**32 - 1)


def bytes_of(random: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Array:
    bounds = np.iinfo(kind)
    return random.integers(bounds.min, bounds.max + 1, shape).astype(kind)


def results(given: onnx.ModelProto, *arrays: Array) -> list[Array]:
    """Ours, on one thread, where nothing is left to a library."""
    exe = gk.compile(import_onnx(given), threads=1)
    assert not exe.report.host
    return [np.asarray(each) for each in exe(*arrays)]


@pytest.mark.parametrize(("rows", "weights"), [*product(("uint8", "int8"), repeat=2)])
@pytest.mark.parametrize("zeros", ZEROS)
@pytest.mark.parametrize("shape", [(5, 36), (2, 3, 33)])
def test_integers_are_those_of_the_definition(rows: str, weights: str, zeros: str, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    x, w = bytes_of(random, rows, shape), bytes_of(random, weights, (shape[-1], COLUMNS))
    last = [] if ZEROS[zeros] is None else [np.array(ZEROS[zeros]).astype(weights)]
    constants = {"w": w, "a": np.array(11, rows), **dict(zip("b", last, strict=False))}
    (found,) = results(
        model([helper.make_node("MatMulInteger", ["x", *constants], ["y"])], {"x": x}, constants=constants), x
    )
    less = [each.astype(np.int32) for each in last] or [0]
    assert np.array_equal(found, (x.astype(np.int32) - 11) @ (w.astype(np.int32) - less[0]))


def dynamic(x: Array, weights: Array) -> onnx.ModelProto:
    """What onnxruntime's quantizer makes of a product with a bias."""
    steps = (
        ("DynamicQuantizeLinear", "x", "q s z"), ("MatMulInteger", "q w z v", "i"), ("Cast", "i", "f"), ("Mul", "s t", "u"),
        ("Mul", "f u", "m"), ("Add", "m b", "y"),
    )  # fmt: skip
    nodes = [helper.make_node(name, before.split(), after.split()) for name, before, after in steps]
    nodes[2].attribute.append(helper.make_attribute("to", onnx.TensorProto.FLOAT))
    columns = weights.shape[1]
    constants = {
        "w": weights, "v": np.array(0, weights.dtype), "t": np.array(0.01, np.float32),
        "b": np.linspace(-1, 1, columns, dtype=np.float32),
    }  # fmt: skip
    return model(nodes, {"x": x}, ("y", "q", "s", "z"), constants)


@given(st.integers(1, 9), st.integers(20, 70), st.floats(1e-3, 1e3), st.floats(-1, 1), SEEDS)
@example(3, 32, 0.0, 0.0, 0)
@settings(max_examples=12, deadline=None)
def test_dynamic_quantization_is_that_of_onnxruntime(
    rows: int, terms: int, size: float, middle: float, seed: int
) -> None:
    """Weights of seven bits: on processors without VNNI, onnxruntime adds pairs of products in 16 bits, which hold no more."""
    random = np.random.default_rng(seed)
    x = ((random.standard_normal((rows, terms)) + middle) * size).astype(np.float32)
    given = dynamic(x, random.integers(-64, 65, (terms, COLUMNS)).astype(np.int8))
    (y, *quantized), (expected, *integers) = results(given, x), run_onnxruntime(given, {"x": x})
    for found, wanted in zip(quantized, integers, strict=True):
        assert np.array_equal(found, wanted)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6 * max(1.0, float(np.abs(expected).max())))


def static(x: Array, weights: Array, scales: Array, zero: Array) -> onnx.ModelProto:
    """A product between pairs of QuantizeLinear and DequantizeLinear."""
    steps = (
        ("QuantizeLinear", "x s z", "q"), ("DequantizeLinear", "q s z", "d"), ("DequantizeLinear", "w t v", "e"),
        ("MatMul", "d e", "m"), ("Add", "m b", "a"), ("QuantizeLinear", "a r z", "n"),
        ("DequantizeLinear", "n r z", "y"),
    )  # fmt: skip
    nodes = [helper.make_node(name, before.split(), [after]) for name, before, after in steps]
    constants = {
        "s": np.array(0.02, np.float32), "z": zero, "w": weights, "t": scales, "v": np.zeros(scales.shape, weights.dtype),
        "b": np.linspace(-1, 1, weights.shape[1], dtype=np.float32), "r": np.array(STEP, np.float32),
    }  # fmt: skip
    return model(nodes, {"x": x}, constants=constants)


@pytest.mark.parametrize("zero", [np.uint8(131), np.uint8(0), np.int8(-5)], ids=lambda zero: f"{zero.dtype} {zero}")
@pytest.mark.parametrize("scales", [(), (COLUMNS,)])
@pytest.mark.parametrize("shape", [(7, 40), (2, 5, 30)])
def test_static_quantization_is_within_one_step(zero: Array, scales: tuple[int, ...], shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal(shape).astype(np.float32)
    weights, of = bytes_of(random, "int8", (shape[-1], COLUMNS)), random.uniform(0.005, 0.02, scales).astype(np.float32)
    given = static(x, weights, np.asarray(of), np.asarray(zero))
    (found,), (expected,) = results(given, x), run_onnxruntime(given, {"x": x})
    steps = np.rint(np.abs(found - expected) / STEP)
    np.testing.assert_allclose(found / STEP, np.rint(found / STEP), atol=1e-4)
    assert steps.max() <= 1
    assert np.count_nonzero(steps) <= 0.01 * steps.size  # numbers in the middle of two steps


def kernel(rows: int, terms: int, columns: int) -> gk.Graph:
    weights = bytes_of(np.random.default_rng(0), "int8", (terms, columns))

    def network(x):
        return gk.ops.apply(MATMUL_INTEGER, x, weights, own_kernel=True) * 2

    return gk.optimize(gk.trace(network, gk.spec((rows, terms), "uint8")))


@pytest.mark.parametrize(("rows", "terms", "columns"), [(1, 8, 40), (3, 34, 17), (9, 16, 64), (2, 3, 5)])
def test_its_kernels_are_proved(rows: int, terms: int, columns: int) -> None:
    (node,) = kernel(rows, terms, columns).operators
    assert verify(to_desc(node, "cpu"), "cpu").status == "passed"


def test_terms_that_are_paired_wrongly_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = byte_words.at_term

    def backwards(byte: Any, terms: Any, several: int, place: int) -> Any:
        return right(byte, terms, several, several - 1 - place if byte.dtype.name == "int8" else place)

    for module in (byte_words, byte_pairs):
        monkeypatch.setattr(module, "at_term", backwards)
    (node,) = kernel(3, 34, 17).operators
    assert verify(to_desc(node, "cpu"), "cpu").status == "failed"
