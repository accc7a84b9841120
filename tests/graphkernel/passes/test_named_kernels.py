"""What becomes of a named operator on Ascend: parts where neighbours join them, else a kernel that holds it by name."""

from __future__ import annotations

import numpy as np
import pytest

import graphkernel as gk
from graphkernel.expanders.lists import NATIVE_ON_ASCEND
from graphkernel.export.network import describe
from graphkernel.handoff import to_desc
from graphkernel.ops import OPS
from graphkernel.passes.named_kernels import basic
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.inline import inline
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.text import parse
from kernelgen.tensor.verify import verify
from tests.support.fusion_cases import CASES, FILE, arrays_for, assert_near
from tests.support.golden import Block, blocks

NORM_OF_A_SUM = """graph f(x: f32[N, 8], y: f32[N, 8], g: f32[8], b: f32[8]) {
  s: f32[N, 8] = Add(x, y)
  n_0: f32[N, 8], n_1: f32[N, 1], n_2: f32[N, 1] = LayerNorm(s, g, b, begin_norm_axis=1, begin_params_axis=1, epsilon=1e-05)
  return n_0
}"""
BESIDE_ANOTHER = NORM_OF_A_SUM.replace("return n_0", "e: f32[N, 8] = Exp(n_0)\n  return e")


@pytest.fixture(params=CASES)
def block(request: pytest.FixtureRequest) -> Block:
    return CASES[request.param]


def outside(graph: Graph) -> set[str]:
    """The operators that no kernel holds; views need none."""
    return {node.op.name for node in graph.operators if node.body is None and node.op.kind is not Kind.RESHAPE}


def codes(text: str, flags: str = "") -> set[str]:
    return {decision.code for decision in gk.explain(parse(text, OPS), target="ascend", flags=flags).decisions}


def kernels(graph: Graph) -> list[list[str]]:
    return [[inner.op.name for inner in node.body.operators] for node in graph.operators if node.body is not None]


def test_nothing_but_communication_is_left_without_a_kernel(block: Block) -> None:
    before = parse(block.before, OPS)
    after = gk.optimize(before, target="ascend")
    verify(after)
    assert outside(after) <= {"AllReduce", "MatMulAllReduce"}
    assert parse(str(after), OPS) == after
    arrays = arrays_for(before)
    for found, expected in zip(evaluate(after, arrays), evaluate(before, arrays), strict=True):
        assert_near(found, expected)


def test_a_named_operator_takes_no_more_launches_than_its_parts(block: Block) -> None:
    """Never a launch more than without the named fusion: the cost decides."""
    before = parse(block.before, OPS)
    without = gk.optimize(before, target="ascend", flags=f"--disable_pass={','.join(block.passes)}")
    assert launches(gk.optimize(before, target="ascend")) <= launches(without)


def launches(graph: Graph) -> int:
    return sum(node.op.kind is not Kind.RESHAPE for node in graph.operators)


def test_the_parts_stand_where_a_neighbour_joins_them() -> None:
    assert "kept-named" in codes(NORM_OF_A_SUM)
    assert "expanded-named" in codes(BESIDE_ANOTHER)
    (alone,) = kernels(gk.optimize(parse(NORM_OF_A_SUM, OPS), target="ascend"))
    assert alone == ["AddLayerNorm"]
    (together,) = kernels(gk.optimize(parse(BESIDE_ANOTHER, OPS), target="ascend"))
    assert {"Exp", "ReduceSum"} <= set(together)


def test_flags_decide_before_the_cost() -> None:
    kept = gk.optimize(parse(BESIDE_ANOTHER, OPS), target="ascend", flags="--disable_expand_ops=AddLayerNorm")
    assert kernels(kept) == [["AddLayerNorm"], ["Exp"]]
    asked = gk.optimize(parse(NORM_OF_A_SUM, OPS), target="ascend", flags="--enable_expand_ops=AddLayerNorm")
    assert "AddLayerNorm" not in {name for held in kernels(asked) for name in held}
    only = "--enable_expand_ops_only=ReLU"
    assert not {"kept-named", "expanded-named"} & codes(BESIDE_ANOTHER, only)


def test_a_kernel_without_a_generator_is_the_operator_again() -> None:
    fused = gk.optimize(parse(NORM_OF_A_SUM, OPS), target="ascend")
    dissolved, _ = inline(fused, lambda node: True)
    assert [node.op.name for node in dissolved.operators] == ["AddLayerNorm"]


def test_the_generator_is_handed_the_parts() -> None:
    fused = gk.optimize(parse(NORM_OF_A_SUM, OPS), target="ascend")
    (kernel,) = fused.operators
    described = {op.op.name for op in to_desc(kernel, "ascend").operators}
    assert {"Add", "ReduceSum", "Rsqrt"} <= described
    assert not described & NATIVE_ON_ASCEND
    assert kernel.body is not None
    assert basic(basic(kernel.body)) is not kernel.body


def test_optimizing_again_keeps_the_kernel() -> None:
    once = gk.optimize(parse(NORM_OF_A_SUM, OPS), target="ascend")
    assert gk.optimize(once, target="ascend") == once


def test_an_export_names_the_operator_in_its_own_order() -> None:
    text = NORM_OF_A_SUM.replace("(s, g, b,", "(s, b, g,")
    (node,) = describe(gk.optimize(parse(text, OPS), target="ascend"))["nodes"]
    assert node["kernel"].endswith("_named")
    named = node["stands_for"]
    assert named["operator"] == "AddLayerNorm"
    assert named["inputs"] == ["x", "y", "b", "g"]
    assert named["outputs"] == [node["outputs"][0]["name"], None, None, None]
    assert named["attributes"]["epsilon"] == "1e-05"
    (other,) = describe(gk.optimize(parse(BESIDE_ANOTHER, OPS), target="ascend"))["nodes"]
    assert "stands_for" not in other


SIMULATED = [name for name, block in CASES.items() if "AllReduce" not in block.before and "attention" not in name]


@pytest.mark.parametrize("name", [*SIMULATED, "attention without a mask"])
def test_kernels_run_in_the_simulator(name: str) -> None:
    before = parse(CASES[name].before, OPS)
    exe = gk.compile(before, target="ascend")
    assert not exe.report.fallbacks
    assert not exe.report.host
    arrays = arrays_for(before)
    for found, expected in zip(exe(*arrays), evaluate(before, arrays), strict=True):
        assert_near(found, expected)


WRITTEN_OUT = {block.case: block for block in blocks((FILE.parent / "written_out.gk").read_text())}
RUN_HERE = ("positions", "attention of groups of heads, without a mask")


@pytest.mark.parametrize("name", RUN_HERE)
def test_what_exporters_write_out_runs_in_the_simulator(name: str) -> None:
    before = parse(WRITTEN_OUT[name].before, OPS)
    exe = gk.compile(before, target="ascend")
    assert not exe.report.fallbacks
    assert not exe.report.host
    assert len(exe.report.kernels) == 1
    arrays = arrays_for(before)
    for found, expected in zip(exe(*arrays), evaluate(before, arrays), strict=True):
        assert_near(found, expected)


def test_a_query_that_sees_no_key_gets_zeros_in_the_simulator() -> None:
    text = """graph f(q: f16[1, 2, 4, 8], k: f16[1, 1, 4, 8], v: f16[1, 1, 4, 8], m: f16[1, 1, 4, 4]) {
      y: f16[1, 2, 4, 8] = PromptFlashAttention(q, k, v, m, input_layout="BNSD", num_heads=2, num_key_value_heads=1,
        optional=("pse_shift",), scale_value=0.5, zero_hidden=True)
      return y
    }"""
    graph = parse(text, OPS)
    arrays = arrays_for(graph)
    arrays[3][0, 0, 2] = -np.inf
    exe = gk.compile(graph, target="ascend")
    assert not exe.report.host
    (found,), (expected,) = exe(*arrays), evaluate(graph, arrays)
    assert not found[0, :, 2].any()
    assert_near(found, expected)
