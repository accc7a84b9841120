"""Every code of the closed list is given by some run, and every operator and dependence that a cluster meets gets one."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from graphkernel.decisions import REASONS, DecisionLog
from graphkernel.declarations import builtin_catalogue
from graphkernel.ops import OPS
from graphkernel.options import Options
from graphkernel.passes.base import run_steps
from graphkernel.passes.cluster import graph_kernel_cluster
from graphkernel.patterns.drive import simplify
from graphkernel.patterns.language import Safety
from graphkernel.pipeline import steps_for
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.text import parse
from tests.support.golden import blocks
from tests.support.random_programs import programs

CATALOGUE = builtin_catalogue()
TESTS = Path(__file__).parents[1]

CASES = {
    "not-expanded-unlisted": (
        "x: f32[4, 8]", "y: f32[4, 4] = Swiglu(x, axis=-1)", "--target=ascend --disable_pass=inference_swiglu_fusion"
    ),
    "not-expanded-undeclared": (
        "x: f32[4]", 'y: i64[1] = Onnx(x, attributes="[]", domain="", op_type="Shape", opset=20, present=(1,), '
        'result_types=("i64[1]",))', ""
    ),
    "total-inverted": ("x: f32[4, 8]", "y: f32[4, 8] = Softmax(x, axis=(-1,))", ""),
    "fused-single": ("x: f32[4]", "y: f32[4] = Exp(x)", ""),
    "not-fused-unlisted": ("x: f32[4, 4]", "y: i32[4] = Argmax(x, axis=1, output_type=\"int32\")", "--target=gpu"),
    "not-fused-disabled": ("x: f32[4]", "y: f32[4] = Exp(x)", "--disable_cluster_ops=Exp"),
    "not-fused-opaque": (
        "x: f32[4, 4]", "y: f32[4, 4] = MatMul(x, x, transpose_a=False, transpose_b=False)", ""
    ),
    "own-product": (
        "x: f32[4, 32]", f"const w: f32[32, 32] = [{', '.join(['0.5'] * 1024)}]\n"
        "  y: f32[4, 32] = MatMul(x, w, transpose_a=False, transpose_b=False)", ""
    ),
    "not-own-product": (
        "x: f32[512, 64]", f"const w: f32[64, 17] = [{', '.join(['0.5'] * 1088)}]\n"
        "  y: f32[512, 17] = MatMul(x, w, transpose_a=False, transpose_b=False)", ""
    ),
    "not-own-convolution": (
        "x: f32[1, 8, 32, 32]", f"const w: f32[8, 1, 3, 3] = [{', '.join(['0.5'] * 72)}]\n"
        "  y: f32[1, 8, 32, 32] = Conv2D(x, w, group=8, pad=(1, 1, 1, 1))", ""
    ),
    "own-convolution": (
        "x: f32[1, 3, 3, 3]", f"const w: f32[2, 3, 3, 3] = [{', '.join(['0.5'] * 54)}]\n"
        "  y: f32[1, 2, 1, 1] = Conv2D(x, w)", ""
    ),
    "by-tiles": (
        "x: f32[1, 32, 64, 64]", f"const w: f32[32, 32, 3, 3] = [{', '.join(['0.5'] * 9216)}]\n"
        + "".join(f"  {y}: f32[1, 32, 64, 64] = Conv2D({x}, w, pad=(1, 1, 1, 1))\n" for x, y in ("xa", "ab", "by")), ""
    ),
    "own-gather": ("x: f32[100, 8], i: i64[4]", "y: f32[4, 8] = Gather(x, i, axis=0)", ""),
    "few-segments": (
        "x: f32[8, 512], i: i32[8]",
        "s: f32[1024, 512] = UnsortedSegmentSum(x, i, num_segments=1024)\n  y: f32[1024, 512] = Exp(s)", ""
    ),
    "behind-product": (
        "q: f32[2, 12, 16], k: f32[2, 16, 40], v: f32[2, 40, 16]",
        "s: f32[2, 12, 40] = BatchMatMul(q, k, transpose_a=False, transpose_b=False)\n"
        "  m: f32[2, 12, 1] = ReduceMax(s, axis=(2,), keep_dims=True)\n  d: f32[2, 12, 40] = Sub(s, m)\n"
        "  e: f32[2, 12, 40] = Exp(d)\n  t: f32[2, 12, 1] = ReduceSum(e, axis=(2,), keep_dims=True)\n"
        "  p: f32[2, 12, 40] = RealDiv(e, t)\n"
        "  y: f32[2, 12, 16] = BatchMatMul(p, v, transpose_a=False, transpose_b=False)", ""
    ),
    "by-rows": (
        "x: f32[64, 32], w: f32[32, 16]",
        "s: f32[64, 16], o: bool[0] = MatMulAllReduce(x, w, rank_size=2)\n  y: f32[64, 16] = Exp(s)", ""
    ),
    "not-fused-dtype": ("x: c64[4]", "y: c64[4] = Neg(x)", ""),
    "not-fused-empty": ("x: f32[0]", "y: f32[0] = Neg(x)", ""),
    "not-fused-shape": (
        "x: f16[M, M]", "y: f16[M, M] = MatMul(x, x, transpose_a=False, transpose_b=False)", "--target=ascend"
    ),
    "not-fused-named": (
        "x: f32[4, 8]",
        "a: f32[4, 8] = Neg(x)\n  b_0: f32[2, 8], b_1: f32[2, 8] = Split(a, axis=0, size_splits=(2, 2))\n"
        "  y: f32[2, 16] = Concat(b_1, b_0, axis=1)",
        "--target=ascend",
    ),
    "not-fused-symbol": ("x: f32[4]", "y: f32[N, 4] = BroadcastTo(x, shape=(N, 4))", ""),
    "not-fused-kept": ("x: f32[4]", "y: f32[4] = Exp(x, keep_basic=True)", ""),
    "not-fused-cycle": (
        "x: f32[4, 4]",
        "a: f32[4, 4] = Exp(x)\n  b: f32[4, 4] = MatMul(a, x, transpose_a=False, transpose_b=False)\n"
        "  y: f32[4, 4] = Add(a, b)", ""
    ),
    "not-fused-limit": (
        "x: f32[4]", "a: f32[4] = Exp(x)\n  y: f32[4] = Tanh(a)", "--composite_op_limit_size=1"
    ),
}  # fmt: skip
"""A program (inputs, lines up to y) and flags for each code that no golden file shows."""


def decisions(graph: Graph, flags: str) -> DecisionLog:
    options, log = Options.parse(flags), DecisionLog()
    run_steps(graph, steps_for(options), CATALOGUE.context(options, log))
    return log


@cache
def shown() -> frozenset[str]:
    """The codes that the golden files show."""
    passes = {entry.name: entry for entry in CATALOGUE.passes}
    log = DecisionLog()
    for file in sorted(TESTS.rglob("*.gk")):
        for block in blocks(file.read_text(encoding="utf-8")):
            graph, context = parse(block.before, OPS), CATALOGUE.context(Options.parse(block.flags), log)
            for name in block.passes:
                graph = passes[name](graph, context)
    return frozenset(decision.code for decision in log)


@pytest.mark.parametrize("code", sorted(set(REASONS) - {"rule-budget"}))
def test_a_run_gives_the_code(code: str) -> None:
    if code not in CASES:
        assert code in shown()
        return
    inputs, lines, flags = CASES[code]
    log = decisions(parse(f"graph g({inputs}) {{\n  {lines}\n  return y\n}}", OPS), flags)
    assert code in {decision.code for decision in log}, list(map(str, log))


def test_the_budget_of_rules_can_run_out() -> None:
    graph = parse("graph g(x: f32[4]) {\n  a: f32[4] = Neg(x)\n  y: f32[4] = Neg(a)\n  return y\n}", OPS)
    assert simplify(graph, CATALOGUE.rules, Safety.EXACT, budget=0).exhausted


@pytest.mark.parametrize("kept_out", [(), ("Tanh",), ("Mul", "Exp")])
@given(program=programs())
def test_every_operator_and_every_dependence_that_is_cut_gets_a_reason(
    kept_out: tuple[str, ...], program: tuple[Graph, list[np.ndarray[Any, Any]]]
) -> None:
    graph, _ = program
    log = DecisionLog()
    after = graph_kernel_cluster(graph, CATALOGUE.context(Options(disable_cluster_ops=kept_out), log))
    kernel = {
        inner.name: node.name
        for node in after.operators
        for inner in (node.body.operators if node.body is not None else (node,))
    }
    outside = [decision for decision in log if not decision.code.startswith("fused-")]
    alone = {decision.subject for decision in outside if not decision.other}
    apart = {(decision.subject, decision.other) for decision in outside}
    for node in graph.operators:
        assert log.about(node.name), f"nothing is said of {node.name}"
        for producer in dict.fromkeys(arg.node for arg in node.args if arg.node in graph.operators):
            pair = (producer.name, node.name)
            assert kernel[pair[0]] == kernel[pair[1]] or alone & set(pair) or pair in apart, pair
