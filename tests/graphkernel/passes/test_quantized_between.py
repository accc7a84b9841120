"""Between operators of kernels values are rounded to the very numbers that QuantizeLinear and DequantizeLinear give."""

from __future__ import annotations

import numpy as np
import pytest

from graphkernel.ops import OPS
from graphkernel.options import Options
from graphkernel.passes.base import Context
from graphkernel.passes.precision.quantized_between import quantized_between
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.text import parse

PAIR = """graph f(x: f32[8, 8], w: f32[8, 8]) {{
  const s: f32[] = [{scale}]
  const t: f32[] = [{other}]
  const z: {of}[] = [{zero}]
  {before}
  q: {of}[8, 8] = Onnx(a, s, z, attributes="[]", domain="", opset=21, op_type="QuantizeLinear", present=(1, 1, 1),
    result_types=("{of}[8, 8]",))
  d: f32[8, 8] = Onnx(q, t, z, attributes="[]", domain="", opset=21, op_type="DequantizeLinear", present=(1, 1, 1),
    result_types=("f32[8, 8]",))
  {after}
  return y
}}"""
ABS, NEG = "a: f32[8, 8] = Abs(x)", "y: f32[8, 8] = Neg(d)"
HALFWAY = np.linspace(-7.75, 8.0, 64).astype(np.float32)


def graph(
    scale: float = 0.25, other: float | None = None, zero: int = 0, of: str = "i8", before: str = ABS, after: str = NEG
) -> Graph:
    other = scale if other is None else other
    return parse(PAIR.format(scale=scale, other=other, zero=zero, of=of, before=before, after=after), OPS)


def rewritten(given: Graph) -> Graph:
    return quantized_between(given, Context(Options.parse({"opt_level": 2})))


def pairs(given: Graph) -> int:
    return sum(node.op.name == "Onnx" for node in given.operators)


@pytest.mark.parametrize(("of", "zero"), [("i8", 0), ("i8", -3), ("u8", 128), ("u8", 0), ("i16", 5), ("u16", 77)])
@pytest.mark.parametrize("scale", [0.25, 0.0731, 1e-3])
def test_the_numbers_are_the_same_halfway_and_beyond_the_ends_too(of: str, zero: int, scale: float) -> None:
    given = graph(scale=scale, zero=zero, of=of, before="a: f32[8, 8] = Neg(x)")
    found = rewritten(given)
    assert pairs(given) == 2
    assert pairs(found) == 0
    x = np.append(HALFWAY[:60], (500.0, -500.0, 1000.0, -1000.0)).astype(np.float32)
    arrays = x.reshape(8, 8), np.zeros((8, 8), np.float32)
    assert np.array_equal(evaluate(found, arrays)[0], evaluate(given, arrays)[0])


PRODUCT = "m: f32[8, 8] = MatMul(x, w, transpose_a=False, transpose_b=False)"
EPILOGUE = f"{PRODUCT}\n  b: f32[8, 8] = Add(m, x)\n  a: f32[8, 8] = Maximum(b, 0.0)"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(ABS, PRODUCT.replace("m:", "y:").replace("x,", "d,"), id="read by a product"),
        pytest.param(PRODUCT.replace("m:", "a:"), NEG, id="of a product"),
        pytest.param(EPILOGUE, NEG, id="of a product with what the library computes behind it"),
    ],
)
def test_beside_a_product_it_stays_on_integers(before: str, after: str) -> None:
    given = graph(before=before, after=after)
    assert rewritten(given) is given


def test_numbers_that_are_read_by_another_scale_stay() -> None:
    given = graph(other=0.5)
    assert rewritten(given) is given


def test_far_behind_a_product_values_are_rounded_in_a_kernel() -> None:
    chain = "b: f32[8, 8] = Exp(m)\n  c: f32[8, 8] = Neg(b)\n  e: f32[8, 8] = Abs(c)\n  a: f32[8, 8] = Sqrt(e)"
    assert pairs(rewritten(graph(before=f"{PRODUCT}\n  {chain}"))) == 0


TABLE = """graph f(i: i32[5]) {{
  const t: {of}[9, 4] = [{numbers}]
  const s: f32[] = [0.25]
  const z: {of}[] = [{zero}]
  d: f32[9, 4] = Onnx(t, s, z, attributes="[]", domain="", opset=21, op_type="DequantizeLinear", present=(1, 1, 1),
    result_types=("f32[9, 4]",))
  p: i32[5] = Places(i, extent=9)
  g: f32[5, 4] = Gather(d, p, axis=0)
  y: f32[5, 4] = Neg(g)
  return y
}}"""


@pytest.mark.parametrize(("of", "zero"), [("i8", -3), ("u8", 128)])
def test_rows_of_a_quantized_table_are_gathered_as_bytes(of: str, zero: int) -> None:
    numbers = ", ".join(str(number % 256 - (128 if of == "i8" else 0)) for number in range(3, 255, 7))
    given = parse(TABLE.format(of=of, numbers=numbers, zero=zero), OPS)
    found = rewritten(given)
    assert pairs(found) == 0
    (gather,) = [node for node in found.operators if node.op.name == "Gather"]
    assert gather.args[0].type.dtype == given.nodes[1].out.type.dtype
    rows = np.array([0, 8, 3, 3, 1], np.int32)
    assert np.array_equal(evaluate(found, (rows,))[0], evaluate(given, (rows,))[0])


SUM = "t: f32[2, 8, 1] = ReduceSum(e, axis=(2,), keep_dims=True)"


def attention(weights: str) -> Graph:
    """Two products with exponentials between them, and a pair of QuantizeLinear and DequantizeLinear at every edge."""
    pair = """
  q{n}: i8[{shape}] = Onnx({x}, s, z, attributes="[]", domain="", opset=21, op_type="QuantizeLinear", present=(1, 1, 1),
    result_types=("i8[{shape}]",))
  d{n}: f32[{shape}] = Onnx(q{n}, s, z, attributes="[]", domain="", opset=21, op_type="DequantizeLinear",
    present=(1, 1, 1), result_types=("f32[{shape}]",))"""
    shapes = {"k": "2, 8, 4", "v": "2, 8, 4", "a": "2, 8, 4", "m": "2, 8, 8", "w": "2, 8, 8", "n": "2, 8, 4"}
    spelled = {name: pair.format(n=name, shape=shape, x=name) for name, shape in shapes.items()}
    turned = "transpose_a=False, transpose_b=True"
    text = f"""graph f(x: f32[2, 8, 4]) {{
  const s: f32[] = [0.05]
  const z: i8[] = [3]
  k: f32[2, 8, 4] = Neg(x)
  v: f32[2, 8, 4] = Exp(x)
  a: f32[2, 8, 4] = Abs(x){spelled["k"]}{spelled["v"]}{spelled["a"]}
  m: f32[2, 8, 8] = BatchMatMul(da, dk, {turned}){spelled["m"]}
  e: f32[2, 8, 8] = Exp(dm)
  {SUM}
  w: f32[2, 8, 8] = {weights}{spelled["w"]}
  n: f32[2, 8, 4] = BatchMatMul(dw, dv, transpose_a=False, transpose_b=False){spelled["n"]}
  y: f32[2, 8, 4] = Neg(dn)
  return y
}}"""
    return parse(text, OPS)


@pytest.mark.parametrize(
    ("result", "left"), [("RealDiv(e, t)", 0), ("Sqrt(e)", 12)], ids=["attention", "no sum of rows"]
)
def test_products_of_an_attention_are_those_of_kernels(result: str, left: int) -> None:
    given = attention(result)
    assert pairs(rewritten(given)) == left


AGAIN = """c: f32[8, 8] = Transpose(d, perm=(1, 0))
  q2: i8[8, 8] = Onnx(c, {scale}, z, attributes="[]", domain="", opset=21, op_type="QuantizeLinear", present=(1, 1, 1),
    result_types=("i8[8, 8]",))
  d2: f32[8, 8] = Onnx(q2, {scale}, z, attributes="[]", domain="", opset=21, op_type="DequantizeLinear",
    present=(1, 1, 1), result_types=("f32[8, 8]",))
  y: f32[8, 8] = Neg(d2)"""


def test_what_is_rounded_already_is_not_rounded_again() -> None:
    given = graph(scale=0.0731, zero=-3, after=AGAIN.format(scale="s"))
    found = rewritten(given)
    assert sum(node.op.name == "Round" for node in found.operators) == 1
    x = np.random.default_rng(0).normal(0, 9, (8, 8)).astype(np.float32)
    assert np.array_equal(evaluate(found, (x, x))[0], evaluate(given, (x, x))[0])


def test_other_steps_round_again() -> None:
    other = "const u: f32[] = [0.5]\n  " + AGAIN.format(scale="u")
    found = rewritten(graph(scale=0.0731, after=other))
    assert sum(node.op.name == "Round" for node in found.operators) == 2
