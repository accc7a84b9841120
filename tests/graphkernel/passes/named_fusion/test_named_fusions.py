"""The named fusion passes on the cases of their golden file: the numbers stay, whatever the target does with the products."""

from __future__ import annotations

import pytest

import graphkernel as gk
from graphkernel.declarations import builtin_catalogue
from graphkernel.expanders.lists import NATIVE_ON_ASCEND
from graphkernel.ops import OPS
from graphkernel.options import Options
from graphkernel.passes.expand import graph_kernel_expander
from graphkernel.passes.named_fusion import FUSION_GROUP
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.text import parse
from kernelgen.tensor.verify import verify
from tests.support.fusion_cases import CASES, PASSES, arrays_for, assert_near, fused
from tests.support.golden import Block

NAMES = [
    "FlashAttentionFusionV1",
    "FlashAttentionFusionV2",
    "add_layer_norm_fusion",
    "add_layer_norm_v3_fusion",
    "add_layer_norm_ext_fusion",
    "inference_swiglu_fusion",
    "inference_matmul_split_fusion",
    "shape_reshape",
    "add_rms_norm_quant_fusion",
    "rms_norm_quant_fusion",
    "add_rms_norm_fusion",
    "add_cast_rms_norm_cast_fusion",
    "MatMulAllReduce",
    "split_concat_fusion",
    "matmul_elemwise_fusion",
    "inference_qbmm_add_fusion",
    "inference_qbmm_allreduce_add_fusion",
]


@pytest.fixture(params=CASES)
def block(request: pytest.FixtureRequest) -> Block:
    return CASES[request.param]


def same_numbers(before: Graph, after: Graph) -> None:
    arrays = arrays_for(before)
    for found, expected in zip(evaluate(after, arrays), evaluate(before, arrays), strict=True):
        assert_near(found, expected)


def test_every_pass_of_the_appendix_is_there_and_has_a_case() -> None:
    assert [entry.name for entry in FUSION_GROUP] == NAMES
    assert {name for block in CASES.values() for name in block.passes} == set(NAMES)


def test_the_products_compute_the_same(block: Block) -> None:
    before = parse(block.before, OPS)
    after, log = fused(before, block)
    verify(after)
    same_numbers(before, after)
    assert [decision.code for decision in log] == ["fused-named"]


def test_the_expanded_products_compute_the_same(block: Block) -> None:
    before = parse(block.before, OPS)
    after, _ = fused(before, block)
    expanded = graph_kernel_expander(after, builtin_catalogue().context(Options()))
    verify(expanded)
    assert not [node.op.name for node in expanded.operators if node.op.name in NATIVE_ON_ASCEND]
    same_numbers(before, expanded)


def test_a_second_run_changes_nothing(block: Block) -> None:
    after, _ = fused(parse(block.before, OPS), block)
    again, log = fused(after, block)
    assert again is after
    assert not len(log)


def test_all_passes_in_their_order_keep_the_numbers(block: Block) -> None:
    before = parse(block.before, OPS)
    graph = before
    for entry in FUSION_GROUP:
        graph = entry(graph)
    same_numbers(before, graph)


def test_layers_in_a_row() -> None:
    """Each sum feeds a norm and the next sum, as in a residual network: every pair becomes one operator."""
    text = """graph f(x: f32[N, 8], y: f32[N, 8], g: f32[8]) {
      s0: f32[N, 8] = Add(x, y)
      n0_0: f32[N, 8], n0_1: f32[N, 1] = RmsNorm(s0, g, epsilon=1e-05)
      s1: f32[N, 8] = Add(n0_0, s0)
      n1_0: f32[N, 8], n1_1: f32[N, 1] = RmsNorm(s1, g, epsilon=1e-05)
      s2: f32[N, 8] = Add(s1, n1_0)
      n2_0: f32[N, 8], n2_1: f32[N, 1] = RmsNorm(s2, g, epsilon=1e-05)
      return n2_0, s2
    }"""
    before = parse(text, OPS)
    after = PASSES["add_rms_norm_fusion"](before)
    assert [node.op.name for node in after.operators] == ["AddRmsNorm"] * 3
    same_numbers(before, after)


def test_one_sum_under_two_norms_joins_the_first() -> None:
    text = """graph f(x: f32[N, 8], y: f32[N, 8], g: f32[8], h: f32[8]) {
      s: f32[N, 8] = Add(x, y)
      n_0: f32[N, 8], n_1: f32[N, 1] = RmsNorm(s, g, epsilon=1e-05)
      m_0: f32[N, 8], m_1: f32[N, 1] = RmsNorm(s, h, epsilon=1e-05)
      return n_0, m_0
    }"""
    before = parse(text, OPS)
    after = PASSES["add_rms_norm_fusion"](before)
    assert sorted(node.op.name for node in after.operators) == ["AddRmsNorm", "RmsNorm"]
    same_numbers(before, after)
    assert PASSES["add_rms_norm_fusion"](after) is after


def test_elsewhere_a_flag_brings_the_products(block: Block) -> None:
    before = parse(block.before, OPS)
    forced = gk.explain(before, target="cpu", flags=f"--enable_pass={block.passes[0]}")
    assert "fused-named" in {decision.code for decision in forced.decisions}
    same_numbers(before, forced.after)


def test_an_expanded_product_takes_no_more_calls_than_its_parts(block: Block) -> None:
    before = parse(block.before, OPS)
    without, forced = (gk.optimize(before, flags=flags) for flags in ("", f"--enable_pass={block.passes[0]}"))
    assert calls(forced) <= calls(without)


def calls(graph: Graph) -> int:
    """Kernels and operators of the host library; views cost nothing."""
    return sum(node.op.kind is not Kind.RESHAPE for node in graph.operators)
