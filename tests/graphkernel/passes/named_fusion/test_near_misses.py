"""Graphs that are one condition short of a named fusion: they stay as they are, and the log says why.

Each is a case of the golden file with some of its text replaced (regular expression, replacement).
"""

from __future__ import annotations

import re

import pytest

from graphkernel import ops
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import OPS
from kernelgen.tensor.text import parse
from kernelgen.tensor.verify import verify
from tests.support.fusion_cases import CASES, PASSES, fused

Edits = tuple[tuple[str, str], ...]

MASKED, SWAPPED, PLAIN = (
    "masked attention",
    "masked attention with swapped operands and a shared mask",
    "attention without a mask",
)
SPLIT, BIASED, QUANTIZED = (
    "product in two pieces",
    "biased product in two pieces",
    "quantized product in two pieces",
)
QUANT_NORM, STATIC, SHARED = (
    "quantized norm",
    "quantized norm of a sum",
    "quantized norm of a sum of which the norm is needed too",
)
SQUARE: Edits = ((r"\bT\b", "4"),)  # as many positions as the head size, so that wrong transpositions have types
FLAT: Edits = ((r"\[B, 2, ", "[B, "), (r"\[B, 1, ", "[B, "), (r"\(3,\)", "(2,)"))

NEAR_MISSES: tuple[tuple[str, Edits, str], ...] = (
    (MASKED, ((r"\(3,\)", "(2,)"),), "the Softmax is not over the keys"),
    (MASKED, (*SQUARE, (r"perm=\(0, 1, 3, 2\)", "perm=(0, 1, 2, 3)")), "the key is not transposed"),
    (MASKED, (*SQUARE, (r"(q, t0, .*)transpose_b=False", r"\1transpose_b=True")), "the key is not transposed"),
    (
        MASKED,
        (*SQUARE, (r"(q, t0, )transpose_a=False", r"\1transpose_a=True")),
        "query, weights or values are transposed",
    ),
    (
        MASKED,
        (*SQUARE, (r"(t6, v, )transpose_a=False", r"\1transpose_a=True")),
        "query, weights or values are transposed",
    ),
    (
        MASKED,
        (*SQUARE, (r"(t6, v, .*)transpose_b=False", r"\1transpose_b=True")),
        "query, weights or values are transposed",
    ),
    (MASKED, ((r"T\]\) {", "T], d: f32[]) {"), (r"RealDiv\(t1, 2.0", "RealDiv(t1, d")), "the scale is not a constant"),
    (MASKED, ((r"k: f32\[B, 2", "k: f32[B, 1"), (r"t0: f32\[B, 2", "t0: f32[B, 1")), "differ in batch or heads"),
    (MASKED, ((r"\[B, 2,", "[B, H,"),), "heads or head size are not static"),
    (
        MASKED,
        ((r"(q|t7): f32\[B, 2, T", r"\1: f32[B, 2, 1"), (r"(t[1256]): f32\[B, 2, T", r"\1: f32[B, 2, 1")),
        "decoding",
    ),
    (MASKED, ((r"return t7", "return t7, t6"),), "the caller needs a result of Softmax t6"),
    (
        MASKED,
        ((r"return t7", "u: f32[B, 2, T, T] = Neg(t1)\n  return t7, u"),),
        "Neg u needs a result of BatchMatMul t1",
    ),
    (SWAPPED, FLAT, "not all of rank 4"),
    (PLAIN, ((r"FillV2\(0.0:f32", "FillV2(1.0:f32"),), "FillV2 does not fill with 0"),
    (PLAIN, ((r"v: (.*)\) {", r"v: \1, y: f32[]) {"), (r"Sqrt\(4.0:f32\)", "Sqrt(y)")), "the scale is not a constant"),
    ("layer norm of a sum", ((r"x2: f32\[N, 3, 8\]", "x2: f32[8]"),), "which is a broadcast"),
    ("layer norm of a sum", ((r"t1_1$", "t1_1, t1_2"),), "the caller needs a result of LayerNorm t1"),
    ("layer norm v3 of a sum", ((r"x2: f32\[N, 3, 8\]", "x2: f32[8]"),), "which is a broadcast"),
    ("layer norm ext of a sum", ((r"x2: f16\[N, 3, 8\]", "x2: f16[1, 8]"),), "which is a broadcast"),
    ("gated halves", ((r"Mul\(t0_1, t1", "Mul(t0_0, t1"), (r"SiLU\(t0_0", "SiLU(t0_1")), "SiLU is on the second piece"),
    ("gated halves", ((r"Mul\(t0_1, t1", "Mul(t0_0, t1"),), "SiLU is on the second piece"),
    ("gated halves", ((r"return t2", "return t2, t0_1"),), "the caller needs a result of SplitWithSize t0"),
    ("gated halves", ((r"return t2", "return t2, t1"),), "the caller needs a result of SiLU t1"),
    (
        "gated halves",
        (
            (r"x: f32\[N, 8", "x: f32[N, 10"),
            (r"t0_1: f32\[N, 4\]", r"t0_1: f32[N, 4], t0_2: f32[N, 2]"),
            (r"\(4, 4\)", "(4, 4, 2)"),
        ),
        "3 pieces, not two halves",
    ),
    (
        "gated halves",
        (
            (r"x: f32\[N, 8", "x: f32[N, 5"),
            (r"t0_0: f32\[N, 4", "t0_0: f32[N, 1"),
            (r"t1: f32\[N, 4", "t1: f32[N, 1"),
            (r"\(4, 4\)", "(1, 4)"),
        ),
        "are not halves",
    ),
    (SPLIT, ((r"f16", "f32"),), "the product is f32"),
    (SPLIT, ((r"\bw: f16\[8, 4\]", "w: f16[4, 8]"), (r"transpose_b=True", "transpose_b=False")), "not x @ weight.T"),
    (
        SPLIT,
        (
            (r"t3_0: f16\[B, 2, 5\], t3_1: f16\[B, 2, 3\]", "t3_0: f16[B, 1, 8], t3_1: f16[B, 1, 8]"),
            (r"axis=-1", "axis=1"),
            (r"\(5, 3\)", "(1, 1)"),
        ),
        "the split is not along the last axis",
    ),
    (
        SPLIT,
        (
            (r"t3_1: f16\[B, 2, 3\]", "t3_1: f16[B, 2, 1], t3_2: f16[B, 2, 1], t3_3: f16[B, 2, 1]"),
            (r"\(5, 3\)", "(5, 1, 1, 1)"),
        ),
        "4 pieces, expected 2 or 3",
    ),
    (
        SPLIT,
        (
            (r"t2: f16\[B, 2, 8\]", "t2: f16[2, B, 8]"),
            (r"\(B, 2, 8\)", "(2, B, 8)"),
            (r"f16\[B, 2, ([53])", r"f16[2, B, \1"),
        ),
        "not back to rank 3",
    ),
    (SPLIT, ((r"x: f16\[B, 2, 4\]", "x: f16[B, 8]"),), "not back to rank 3"),
    (SPLIT, ((r"x: f16\[B, 2, 4\]", "x: f16[B, 2, 2, 2]"),), "not back to rank 3"),
    (SPLIT, ((r"return t3_0", "return t1, t3_0"),), "the caller needs a result of MatMul t1"),
    (
        SPLIT,
        (
            (r"x: f16\[B, 2, 4\]", "x: f16[B, 2, 2]"),
            (r"2\*B, 4", "B, 4"),
            (r"2\*B, 8", "B, 8"),
            (r"\bB, 2, 8", "B, 1, 8"),
            (r"f16\[B, 2, ([53])\]", r"f16[B, 1, \1]"),
        ),
        "not back to rank 3",
    ),
    (BIASED, ((r"b_0: f16\[8\]", "b_0: f16[1]"),), "the bias is not a vector"),
    (QUANTIZED, ((r"float16", "float32"), (r"f16", "f32")), "the product is f32"),
    (QUANTIZED, ((r"w: i8\[8, 4\]", "w: i8[4, 8]"), (r"transpose_x2=True", "transpose_x2=False")), "not x @ weight.T"),
    (
        "reshape to the shape of another",
        ((r"y: f32\[N, 4\]", "y: i64[2]"), (r"Shape\(y\)", "Neg(y)"), (r"x: f32\[4\*N\]", "x: f32[4*N], z: f32[N]")),
        "not computed from shapes alone",
    ),
    (
        "reshape to the shape of another",
        ((r"\(N, 4\)", "(2*N, 2)"), (r"t1: f32\[N, 4\]", "t1: f32[2*N, 2]")),
        "the extents come to [N, 4], the reshape says [2*N, 2]",
    ),
    (QUANT_NORM, ((r"QuantV2\((.*)False", r"QuantV2(\1True"),), "the scale is squared"),
    (QUANT_NORM, ((r'"ROUND"', '"FLOOR"'),), "the rounding is not to nearest"),
    (QUANT_NORM, ((r"f16", "f32"),), "x is f32, expected float16"),
    (QUANT_NORM, ((r"o: i8", "o: i32"),), "offset is i32, expected int8"),
    (QUANT_NORM, ((r"return t1", "return t1, t0_0"),), "the caller needs a result of RmsNorm t0"),
    (STATIC, ((r"f16", "f32"),), "the addends are f32"),
    (STATIC, ((r"x2: f16\[N, 8\]", "x2: f16[8]"),), "the addends differ in type"),
    (STATIC, ((r"scale: f32", "scale: f16"),), "scale is f16, expected float32"),
    (STATIC, ((r"offset: i32", "offset: i8"),), "offset is i8, expected int32"),
    (STATIC, ((r"return t2", "return t1_1, t2"),), "the caller needs a result of RmsNorm t1"),
    (STATIC, ((r'"ROUND"', '"CEIL"'),), "the rounding is not to nearest"),
    (SHARED, ((r"\b8\]", "9000]"),), "its rows of 9000 are not static or longer than 8192"),
    (SHARED, ((r"\b8\]", "W]"),), "its rows of W are not static or longer than 8192"),
    (
        SHARED,
        ((r"return t2", "a: f16[N, 8] = Exp(t1_0)\n  b: f16[N, 8] = Abs(t1_0)\n  return a, b, t2"),),
        "more than 3 users",
    ),
    ("rms norm of a sum", ((r"x2: f16\[N, 8\]", "x2: f16[1, 8]"),), "which is a broadcast"),
    ("rms norm of a sum in float32", ((r"x2: f16\[N, 8\]", "x2: f16[8]"),), "which is a broadcast"),
    ("rms norm of a sum in float32", ((r"return t3", "return t2_1, t3"),), "the caller needs a result of RmsNorm t2"),
    ("rms norm of a sum in float32", ((r"return t3", "return t2_0, t3"),), "the caller needs a result of RmsNorm t2"),
    (
        "rms norm of a sum in float32",
        ((r"t3: f16", "t3: bf16"), (r'"float16"', '"bfloat16"')),
        "the last Cast gives bf16[N, 8], the Add f16[N, 8]",
    ),
    ("rms norm of a sum in float32", ((r"f32", "bf16"), (r'"float32"', '"bfloat16"')), "which is no wider than f16"),
    ("product summed over devices", ((r'"sum"', '"max"'),), "the AllReduce is not a sum"),
    ("product summed over devices", ((r"f16", "f32"),), "x is f32"),
    (
        "product summed over devices",
        ((r"x: f16\[N, 4\]", "x: f16[4, N]"), (r"transpose_a=False", "transpose_a=True")),
        "x is transposed",
    ),
    ("product summed over devices", ((r"return t1_0", "return t1_0, t0"),), "the caller needs a result of MatMul t0"),
    ("batched product summed over devices", ((r"w: f16\[3, 4\]", "w: f16[B, 3, 4]"),), "weight f16[B, 3, 4]"),
    (
        "pieces side by side",
        ((r"axis=1", "axis=0"), (r"f32\[3, 2\*K\]", "f32[6, K]")),
        "the concatenation is not along axis 1",
    ),
    ("pieces side by side", ((r"Concat\(t0_0, t0_1", "Concat(t0_1, t0_0"),), "not all joined, once each and in order"),
    ("pieces side by side", ((r"Concat\(t0_0, t0_1", "Concat(t0_0, t0_0"),), "not all joined, once each and in order"),
    ("pieces side by side", ((r"return t1", "return t1, t0_0"),), "the caller needs a result of Split t0"),
    ("pieces side by side", ((r"(\[\d), (2\*)?K", r"\1, \2K, 2"),), "not a matrix"),
    (
        "pieces side by side",
        ((r"x: f32\[6, K\]", "x: f32[3, 6]"), (r"axis=0", "axis=1"), (r"3, K\]", "3, 3]"), (r"2\*K", "6")),
        "the split is not along axis 0",
    ),
    (
        "pieces side by side",
        (
            (r"t0_0: f32.* = ", "t0: f32[6, K] = "),
            (r"\(3, 3\)", "(6,)"),
            (r"t0_0, t0_1", "t0"),
            (r"f32\[3, 2\*K\]", "f32[6, K]"),
        ),
        "1 pieces, expected 2 to 128",
    ),
    ("product and bias", ((r"f16", "f32"),), "the bias is f32, expected float16"),
    ("product and added bias", ((r"b: f16\[3\]", "b: f16[1]"),), "expected a vector of 3"),
    ("product and added bias", ((r"b: f16\[3\]", "b: f16[N, 3]"),), "expected a vector of 3"),
    ("product and relu", ((r"f16", "f32"),), "the product is f32"),
    ("product and gelu", ((r"return t1", "return t1, t0"),), "the caller needs a result of MatMul t0"),
    ("quantized product and bias", ((r"1.5, -2.0, 0.25", "1.25, -2.0, 0.25"),), "bias / scale is not whole"),
    ("quantized product and bias", ((r"\[0.5, 0.25", "[0.0, 0.25"),), "bias / scale does not fit int32"),
    ("quantized product and bias", ((r"\[0.5, 0.25", "[1e-20, 0.25"),), "bias / scale does not fit int32"),
    (
        "quantized product and bias",
        ((r"(w: i8\[4, 3\])", r"\1, b: f16[3]"), (r"Add\(c1", "Add(b")),
        "bias or scale are not constants",
    ),
    (
        "quantized product and bias",
        ((r"(w: i8\[4, 3\])", r"\1, b: f16[1]"), (r"Add\(c1", "Add(b")),
        "expected a vector of 3",
    ),
    (
        "quantized product and bias",
        (
            (r"(w: i8\[4, 3\])", r"\1, p: f32[N]"),
            (r"(w, c\d)", r"\1, p"),
            (r"optional=\(\)", 'optional=("pertoken_scale",)'),
        ),
        "has a bias or per-token scales already",
    ),
    (
        "quantized product and bias",
        ((r"return t1", "return t1, t0"),),
        "the caller needs a result of QuantBatchMatmul t0",
    ),
    ("quantized product summed over devices and bias", ((r'"sum"', '"max"'),), "the AllReduce is not a sum"),
    (
        "quantized product summed over devices and bias",
        ((r'"sum"', '"sum", rank_size=3'),),
        "bias / scale is not whole",
    ),
    (
        "quantized product summed over devices and bias",
        ((r"f16", "f32"), (r'"float16"', '"float32"')),
        "the product is f32",
    ),
)


@pytest.mark.parametrize(("case", "edits", "reason"), NEAR_MISSES)
def test_one_condition_short(case: str, edits: Edits, reason: str) -> None:
    text = CASES[case].before
    for pattern, replacement in edits:
        text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        assert count, f"{pattern} is not in the case"
    graph = parse(text, OPS)
    verify(graph)
    after, log = fused(graph, CASES[case])
    assert after is graph
    assert [decision.code for decision in log] == ["not-fused-named"]
    assert reason in next(iter(log)).message


def test_a_bias_is_rounded_where_precision_may_be_lost() -> None:
    case = CASES["quantized product and bias"]
    graph = parse(case.before.replace("1.5, -2.0, 0.25", "1.2, -2.0, 0.25"), OPS)
    after, _ = fused(graph, case, exact_precision_mode=False)
    assert "[2, -8, 2]" in str(after)


def test_devices_share_a_bias() -> None:
    case = CASES["quantized product summed over devices and bias"]
    graph = parse(case.before.replace('"sum"', '"sum", rank_size=2').replace("1.5, -2.0", "2.0, -2.0"), OPS)
    after, _ = fused(graph, case)
    assert "[2, -4, 1]" in str(after)


def test_a_product_cannot_wait_for_its_own_sum() -> None:
    text = """graph f(x: f32[N, 8], y: f32[N, 8]) {
      s: f32[N, 8] = Add(x, y)
      g: f32[8] = ReduceMax(s, axis=(0,), keep_dims=False)
      n_0: f32[N, 8], n_1: f32[N, 1] = RmsNorm(s, g, epsilon=1e-05)
      return n_0
    }"""
    graph = parse(text, OPS)
    block = CASES["rms norm of a sum"]
    after, log = fused(graph, block)
    assert after is graph
    assert "computed from a result of the product" in next(iter(log)).message


def test_two_products_cannot_wait_for_each_other() -> None:
    """Each fusion alone is possible; after the first the second would close a cycle."""
    text = """graph f(x: f32[8, 8], y: f32[8, 8]) {
      s: f32[8, 8] = Add(x, y)
      u: f32[8, 8] = Add(y, y)
      g: f32[8] = ReduceMax(u, axis=(0,), keep_dims=False)
      h: f32[8] = ReduceMax(s, axis=(0,), keep_dims=False)
      n_0: f32[8, 8], n_1: f32[8, 1] = RmsNorm(s, g, epsilon=1e-05)
      m_0: f32[8, 8], m_1: f32[8, 1] = RmsNorm(u, h, epsilon=1e-05)
      return n_0, m_0
    }"""
    after = PASSES["add_rms_norm_fusion"](parse(text, OPS))
    verify(after)
    assert [node.op.name for node in after.operators].count("AddRmsNorm") == 1


def test_many_pieces_are_not_joined() -> None:
    def net(x: ops.Tensor) -> ops.Tensor:
        return ops.concat(ops.split(x, 129, 0), 1)

    graph = trace(net, spec((129, 2)))
    after, log = fused(graph, CASES["pieces side by side"])
    assert after is graph
    assert "129 pieces" in next(iter(log)).message
