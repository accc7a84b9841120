"""ONNX's quantized operators become Ascend's: the very integers, and refusals where they would be others."""

from __future__ import annotations

import re

import numpy as np
import pytest

import graphkernel as gk
from graphkernel.expanders.fused import NAMED
from graphkernel.expanders.lists import NATIVE_ON_ASCEND
from graphkernel.ops import OPS
from graphkernel.options import Options
from graphkernel.passes.base import Context
from graphkernel.passes.named_fusion import FUSION_GROUP, WRITTEN_OUT
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.text import parse

PASSES = {entry.name: entry for entry in (*WRITTEN_OUT, *FUSION_GROUP)}
ONNX = 'domain="", opset=17, present=(1, 1, 1)'

QUANTIZE = f"""graph f(x: f32[4, 3]) {{
  const s: f32[] = [0.25]
  const z: i8[] = [0]
  y: i8[4, 3] = Onnx(x, s, z, attributes="[]", {ONNX}, op_type="QuantizeLinear", result_types=("i8[4, 3]",))
  return y
}}"""
AXIS = r'attributes="[{\\"i\\": \\"%d\\", \\"name\\": \\"axis\\", \\"type\\": \\"INT\\"}]"'
BY_COLUMN = (
    QUANTIZE.replace("s: f32[] = [0.25]", "s: f32[3] = [0.25, 2.0, 0.5]")
    .replace("z: i8[] = [0]", "z: i8[3] = [0, 0, 0]")
    .replace('attributes="[]"', AXIS.replace("\\\\", "\\") % 1)
)
PRODUCT = f"""graph f(a: i8[4, 3], w: i8[3, 2]) {{
  const s: f32[] = [0.02]
  const z: i8[] = [0]
  const t: f32[2] = [0.5, 0.03]
  const u: i8[2] = [0, 0]
  x: f32[4, 3] = Onnx(a, s, z, attributes="[]", {ONNX}, op_type="DequantizeLinear", result_types=("f32[4, 3]",))
  v: f32[3, 2] = Onnx(w, t, u, {AXIS.replace(chr(92) * 2, chr(92)) % 1}, {ONNX}, op_type="DequantizeLinear",
    result_types=("f32[3, 2]",))
  y: f32[4, 2] = MatMul(x, v, transpose_a=False, transpose_b=False)
  return y
}}"""


def fused(text: str, name: str, **options: object) -> tuple[Graph, Graph, list[str]]:
    graph, context = parse(text, OPS), Context(Options.parse(options))
    after = PASSES[name](graph, context)
    return graph, after, [decision.message for decision in context.log]


def names(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.operators]


@pytest.mark.parametrize("text", [QUANTIZE, BY_COLUMN])
def test_the_integers_are_the_same_halfway_cases_included(text: str) -> None:
    graph, after, _ = fused(text, "written_quantize")
    assert names(after) == ["QuantV2"]
    rng = np.random.default_rng(1)
    halves = (rng.integers(-300, 300, (200, 4, 3)) / 2).astype(np.float32)
    for x in (*halves, np.full((4, 3), 1e30, np.float32), rng.standard_normal((4, 3)).astype(np.float32) * 20):
        assert (evaluate(after, [x])[0] == evaluate(graph, [x])[0]).all()


@pytest.mark.parametrize(
    ("pattern", "replacement", "reason"),
    [
        (r"\[0.25\]", "[0.3]", "no power of two"),
        (r"z: i8\[\] = \[0\]", "z: i8[] = [2]", "zero point is not 0"),
        (r"\bi8", "u8", "the result is u8"),
        (r"const s: f32\[\] = \[0.25\]\n", "s: f32[] = ReduceMax(x, axis=(0, 1), keep_dims=False)\n", "not constants"),
    ],
)
def test_what_would_be_other_integers(pattern: str, replacement: str, reason: str) -> None:
    text, count = re.subn(pattern, replacement, QUANTIZE)
    assert count
    graph, after, reasons = fused(text, "written_quantize")
    assert after is graph
    assert [found for found in reasons if reason in found]


def test_rows_have_no_scales_of_their_own() -> None:
    text = BY_COLUMN.replace("f32[3]", "f32[4]").replace("i8[3]", "i8[4]").replace("2.0, 0.5]", "2.0, 0.5, 1.0]")
    text = text.replace("[0, 0, 0]", "[0, 0, 0, 0]").replace('\\"1\\"', '\\"0\\"')
    graph, after, reasons = fused(text, "written_quantize")
    assert after is graph
    assert "along the last axis" in reasons[0]


def test_precision_may_be_given_up() -> None:
    text = QUANTIZE.replace("[0.25]", "[0.3]")
    graph, after, _ = fused(text, "written_quantize", exact_precision_mode=False)
    assert names(after) == ["QuantV2"]
    x = np.linspace(-30, 30, 12, dtype=np.float32).reshape(4, 3)
    steps = evaluate(after, [x])[0].astype(int) - evaluate(graph, [x])[0]
    assert abs(steps).max() <= 1


def test_a_product_of_dequantized_factors() -> None:
    graph, after, _ = fused(PRODUCT, "written_quant_product")
    assert names(after) == ["QuantBatchMatmul"]
    rng = np.random.default_rng(2)
    arrays = [rng.integers(-128, 128, shape).astype(np.int8) for shape in ((4, 3), (3, 2))]
    np.testing.assert_allclose(evaluate(after, arrays)[0], evaluate(graph, arrays)[0], rtol=1e-6, atol=1e-6)


def transposed_weight(text: str) -> str:
    text = text.replace("w: i8[3, 2]", "w: i8[2, 3]").replace("v: f32[3, 2]", "v: f32[2, 3]")
    return text.replace('("f32[3, 2]",)', '("f32[2, 3]",)').replace("transpose_b=False", "transpose_b=True")


def many_terms(text: str) -> str:
    text = text.replace("i8[4, 3]", "i8[4, 140000]").replace("f32[4, 3]", "f32[4, 140000]")
    return text.replace("i8[3, 2]", "i8[140000, 2]").replace("f32[3, 2]", "f32[140000, 2]")


def test_the_second_factor_may_be_transposed() -> None:
    text = transposed_weight(PRODUCT).replace('\\"1\\"', '\\"0\\"')
    graph, after, _ = fused(text, "written_quant_product")
    assert names(after) == ["QuantBatchMatmul"]
    arrays = [np.arange(12, dtype=np.int8).reshape(4, 3), np.arange(6, dtype=np.int8).reshape(2, 3)]
    np.testing.assert_allclose(evaluate(after, arrays)[0], evaluate(graph, arrays)[0], rtol=1e-6)


SCALES_OF_ROWS = (
    transposed_weight(PRODUCT)
    .replace("t: f32[2] = [0.5", "t: f32[3] = [0.5, 0.2")
    .replace("u: i8[2] = [0", "u: i8[3] = [0, 0")
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PRODUCT.replace("z: i8[] = [0]", "z: i8[] = [1]"), "a zero point is not 0"),
        (PRODUCT.replace("u: i8[2] = [0, 0]", "u: i8[2] = [0, 3]"), "a zero point is not 0"),
        (SCALES_OF_ROWS, "not along the columns"),
        (many_terms(PRODUCT), "may not fit int32"),
    ],
)
def test_what_is_no_product_of_int8(text: str, reason: str) -> None:
    graph, after, reasons = fused(text, "written_quant_product")
    assert after is graph
    assert reason in reasons[0]


def test_a_quantized_norm_of_an_exported_model_is_one_kernel() -> None:
    """From QuantizeLinear over a written norm of a sum to one operator, which is one kernel."""
    text = """graph f(x: f16[4, 8], y: f16[4, 8], g: f16[8]) {
      a: f16[4, 8] = Add(x, y)
      c: f32[4, 8] = Cast(a, dst_type="float32")
      p: f32[4, 8] = Square(c)
      m: f32[4, 1] = ReduceMean(p, axis=(1,), keep_dims=True)
      e: f32[4, 1] = Add(m, 1e-05)
      r: f32[4, 1] = Rsqrt(e)
      n: f32[4, 8] = Mul(c, r)
      h: f16[4, 8] = Cast(n, dst_type="float16")
      k: f16[4, 8] = Mul(h, g)
      const s: f32[] = [0.0625]
      const z: i8[] = [0]
      q: i8[4, 8] = Onnx(k, s, z, attributes="[]", domain="", opset=19, present=(1, 1, 1), op_type="QuantizeLinear",
        result_types=("i8[4, 8]",))
      return q, a
    }"""
    (kernel,) = gk.optimize(parse(text, OPS), target="ascend").operators
    assert kernel.body is not None
    assert [node.op.name for node in kernel.body.operators] == ["AddRmsNormQuantV2"]


def test_what_the_device_has_by_name_expands_by_its_name() -> None:
    assert set(NAMED) == NATIVE_ON_ASCEND
