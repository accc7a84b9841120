"""The text form: what it looks like, that it reads back, and what its errors say."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from graphkernel.errors import ParseError
from graphkernel.ops import OPS
from kernelgen.tensor.constant_data import ConstantData
from kernelgen.tensor.graph import Alias, Builder, Graph
from kernelgen.tensor.scanner import tokens
from kernelgen.tensor.text import parse, show
from kernelgen.tensor.types import TensorType, dtype, sym

MYNET = """graph mynet(x: f32[N, 4]) {
  t0: f32[N, 4] = Mul(x, 2.0)
  t1: f32[N, 4] = Add(t0, 1.0)
  return t1
}
"""

EVERYTHING = """kernel Fused_Mul_Add(a: f32[N, 4], b: f32[4]) {
  t0: f32[N, 4] = Mul(a, b)
  t1: f32[N, 4] = Add(t0, -0.0)
  return t1, t0
}

graph "odd name"(x: f32[N, 4], w: f32[4], "in.put 1": i32[2*N + 1], n: f16[]@NC1HWC0) {
  const c0: f32[4] = [1.0, inf, nan, nan(0x7fc00001)]
  f_0: f32[N, 4], f_1: f32[N, 4] = Fused_Mul_Add(x, c0)
  g_0: f32[N, 4], g_1: f32[N, 4] = Fused_Mul_Add(f_1, w)
  t2: f32[N] = ReduceSum(g_0, axis=(1,), keep_dims=False)
  return f_0, w -> w, 2.5:f64
}
"""


@pytest.mark.parametrize("piece", ["ab", r"\\n", r"a\"b"])
def test_a_long_text_is_read_in_memory_of_its_length(piece: str):
    text = f'"{piece * 100_000}"'
    tracemalloc.start()
    (token, _) = tokens(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert token.text == text
    assert peak < 8 * len(text)


def test_a_small_graph_reads_and_prints_as_documented():
    assert show(parse(MYNET, OPS)) == MYNET


def test_all_features_read_back():
    graph = parse(EVERYTHING, OPS)
    dead_removed = EVERYTHING.replace("  g_0: f32[N, 4], g_1: f32[N, 4] = Fused_Mul_Add(f_1, w)\n", "")
    dead_removed = dead_removed.replace("  t2: f32[N] = ReduceSum(g_0, axis=(1,), keep_dims=False)\n", "")
    assert show(graph) == dead_removed
    assert parse(show(graph), OPS) == graph
    assert graph.aliases == (Alias(1, 1),)


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "message"),
    [
        ("Mul(x, 2.0)", "Mull(x, 2.0)", 2, 19, "unknown operator or kernel 'Mull' (did you mean 'Mul'?)"),
        ("Mul(x, 2.0)", "Mul(y, 2.0)", 2, 23, "'y' is not defined"),
        ("Mul(x, 2.0)", "Mul(x)", 2, 19, "takes 2 operands, got 1"),
        ("Mul(x, 2.0)", "Mul(x, 2.0, axis=1)", 2, 19, "has no attribute 'axis'"),
        ("Mul(x, 2.0)", "Mul(x, 2.0:f16)", 2, 19, "Cast one of them"),
        ("Mul(x, 2.0)", "Mul(x, 2.0:f17)", 2, 26, "unknown data type 'f17'"),
        ("Mul(x, 2.0)", "Mul(3.0, 2.0)", 2, 23, "no named operand"),
        ("Mul(x, 2.0)", "Mul(x, 2.0, 3=1)", 2, 32, "expected ','"),
        ("t0: f32[N, 4]", "t0: f32[N, 5]", 2, 19, "Mul gives (f32[N, 4]), but the text says (f32[N, 5])"),
        ("t0: f32[N, 4]", "t0: f33[N, 4]", 2, 7, "unknown data type 'f33'"),
        ("t0: f32[N, 4]", "t0: f32[nan, 4]", 2, 7, "the word 'nan' is no extent"),
        ("t0: f32[N, 4]", "t0: f32[-inf + 2, 4]", 2, 7, "the word 'inf' is no extent"),
        ("t0: f32[N, 4]", "x: f32[N, 4]", 2, 3, "'x' is defined twice"),
        ("t0: f32[N, 4]", "t0 f32[N, 4]", 2, 6, "expected ':'"),
        ("t0: f32[N, 4]", "inf: f32[N, 4]", 2, 3, "expected a name"),
        ("return t1", "return t1 -> t0", 4, 16, "is not an input"),
        ("return t1", "return t1 -> ", 5, 1, "expected a name"),
        ("return t1", "return 1.0", 4, 10, "write it behind the number"),
        ("return t1\n}", "return t1\n", 6, 1, "expected ','"),
        ("graph mynet", "grph mynet", 1, 1, "expected 'graph'"),
        ("return t1\n}\n", "return t1\n}\n}", 6, 1, "expected the end of the text"),
        ("x: f32[N, 4])", "x: f32[N, 4]) $", 1, 27, "unexpected character '$'"),
    ],
)
def test_errors_name_line_column_and_what_was_expected(old, new, line, column, message):
    broken = MYNET.replace(old, new, 1)
    assert broken != MYNET
    with pytest.raises(ParseError) as caught:
        parse(broken, OPS)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_the_example_of_the_documentation_reads_back():
    page = (Path(__file__).parents[3] / "docs" / "text_ir.md").read_text()
    example = page.split("```")[1].lstrip()
    assert show(parse(example, OPS)) == example


def test_large_constants_print_by_digest_and_take_their_content_as_weights():
    builder = Builder()
    weight = np.arange(64, dtype=np.float32).reshape(8, 8)
    x = builder.parameter("x", TensorType((sym("N"), 8), dtype("f32")))
    constant = builder.constant(weight)
    graph = Graph("dense", (x,), (builder.emit(OPS["MatMul"], x, constant),))
    text = show(graph)
    assert constant.node.data
    digest = constant.node.data.digest
    assert f"const c0: f32[8, 8] = sha256:{digest}" in text
    without = parse(text, OPS)
    assert without == graph
    assert without.nodes[1].out.constant is None
    filled = parse(text, OPS, {digest: weight})
    assert ConstantData.of(weight).digest == digest
    np.testing.assert_array_equal(np.asarray(filled.nodes[1].out.constant), weight)
    with pytest.raises(ParseError, match="other content"):
        parse(text, OPS, {digest: weight + 1})


def test_labels_that_clash_or_are_no_names_are_made_unique():
    one, two = Builder(), Builder()
    x = one.parameter("x", TensorType((4,), dtype("f32")))
    first = one.emit(OPS["Neg"], x)
    second = two.emit(OPS["Neg"], first)
    third = two.emit(OPS["Neg"], second, name="a/b c")
    graph = Graph("g", (x,), (third,))
    assert '  t0_2: f32[4] = Neg(t0)\n  "a/b c": f32[4] = Neg(t0_2)\n' in show(graph)
    assert parse(show(graph), OPS) == graph


def test_two_kernels_of_one_name_and_one_named_like_an_operator_stay_apart():
    builder = Builder()
    x = builder.parameter("x", TensorType((4,), dtype("f32")))

    def kernel(name: str, op: str) -> Graph:
        inner = Builder()
        a = inner.parameter("a", x.type)
        return Graph(name, (a,), (inner.emit(OPS[op], a),))

    calls = [builder.fused(kernel(*pair), [x]).out for pair in (("K", "Neg"), ("K", "Abs"), ("Neg", "Exp"))]
    text = show(Graph("g", (x,), tuple(calls)))
    assert [line.split("(")[0] for line in text.splitlines() if line.startswith("kernel")] == [
        "kernel K", "kernel K_2", "kernel Neg_2",
    ]  # fmt: skip
    parse(text, OPS)
