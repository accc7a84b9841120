from collections import Counter
from dataclasses import replace

import pytest
from fusion_nets import (
    PATTERNS,
    attention_graph,
    context,
    cross_entropy,
    fused,
    layer_norm,
    operators,
    random_graph,
    same_numbers,
    softmax,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkernel import ops, optimize
from graphkernel.cluster.area import Area, Direction, fusion
from graphkernel.cluster.split_models import CPU, MODELS, Limits
from graphkernel.decisions import Decision
from graphkernel.frontends.trace import spec, trace
from graphkernel.passes.base import map_bodies
from graphkernel.passes.cluster import graph_kernel_cluster
from graphkernel.passes.finalise_kernels import graph_kernel_seal
from graphkernel.passes.split import enabled_patterns, graph_kernel_splitter, limits_of
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.text import show
from kernelgen.tensor.verify import verify


@pytest.mark.parametrize(
    "graph",
    [
        trace(softmax, spec((128, 768))),
        trace(softmax, spec(("B", 12, "S", "S"))),
        trace(layer_norm, spec((4, 128, 768)), spec((768,)), spec((768,))),
        trace(layer_norm, spec(("N", 768)), spec((768,)), spec((768,))),
        trace(cross_entropy, spec((512, 1000)), spec((512, 1000))),
        trace(lambda x, b: ops.log(softmax(x + b)), spec((512, 1000)), spec((1000,))),
    ],
    ids=["softmax", "softmax symbolic", "layer norm", "layer norm symbolic", "cross entropy", "bias softmax log"],
)
def test_reductions_over_rows_are_one_kernel(graph: Graph) -> None:
    result = fused(graph)
    verify(result)
    assert len(result.operators) == 1


def test_one_kernel_between_products() -> None:
    result = fused(attention_graph())
    assert operators(result) == [
        "MatMul",
        "[Add]",
        "[Transpose]",
        "MatMul",
        "[Mul ReduceMax Sub Exp ReduceSum RealDiv]",
        "MatMul",
        "[Add ReduceSum RealDiv Sub Mul ReduceSum RealDiv Add Rsqrt Mul Mul Add]",
    ]
    same_numbers(attention_graph(), result)


def test_a_bias_gradient_shares_a_kernel_with_row_sums() -> None:
    def net(x, y):
        product = x * y
        return ops.reduce_sum(product, axis=0), softmax(product)

    graph = trace(net, spec((512, 512)), spec((512, 512)))
    assert len(fused(graph).operators) == 1
    assert len(fused(graph, disable_fusion_pattern=("reduce_crossed",)).operators) == 2


def test_a_sum_of_all_elements_stays_apart() -> None:
    def net(x):
        exponential = ops.exp(x)
        return ops.reduce_sum(exponential), ops.reduce_sum(exponential, axis=1)

    assert len(fused(trace(net, spec((512, 512)))).operators) == 2


def test_a_basic_area_goes_back_to_the_graph() -> None:
    def net(x):
        a = ops.exp(x)
        return a, ops.reshape(a, (8,))

    assert operators(fused(trace(net, spec((2, 4))))) == ["[Exp]", "Reshape"]


def test_without_patterns_every_operator_is_a_kernel() -> None:
    """As MindSpore with ``--disable_fusion_pattern=e``."""
    graph = trace(lambda x, y: ops.reduce_sum(ops.exp((x - y) * 2.0), axis=1), spec((4, 4)), spec((4, 4)))
    assert operators(fused(graph, disable_fusion_pattern=("e",))) == ["[Sub]", "[Mul]", "[Exp]", "[ReduceSum]"]


def test_pattern_switches_match_parts_of_names_and_only_wins() -> None:
    def names(**options: object) -> list[str]:
        return [pattern.name for pattern in enabled_patterns(PATTERNS, context(**options).options)]

    assert names() == list(CPU)
    assert names(enable_fusion_pattern_only=("reduce_fwd",)) == ["reduce_fwd_depth", "reduce_fwd_width"]
    assert names(enable_fusion_pattern_only=("reshape",), disable_fusion_pattern=("reshape",)) == [
        "reshape",
        "isolate_reshape",
    ]
    assert "reduce_fwd_depth" not in names(disable_fusion_pattern=("depth",))


def test_the_log_says_which_patterns_are_on(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "graphkernel.passes"):
        enabled_patterns(PATTERNS, context(disable_fusion_pattern=("depth",)).options)
        enabled_patterns(PATTERNS, context(enable_fusion_pattern_only=("transpose",)).options)
    assert "Disable pattern by disable flag: reduce_fwd_depth" in caplog.messages
    assert "Enable pattern: reduce_fwd_width" in caplog.messages
    assert "Disable pattern by only flag: reduce_fwd_width" in caplog.messages
    assert caplog.messages.count("Enable pattern: transpose") == 2


@pytest.mark.parametrize(
    ("flag", "names", "target"),
    [
        ("enable_horizontal_fusion", {"h_broadcast", "h_reduce", "h_opaque"}, "gpu"),
        ("enable_csr_fusion", {"link_csr"}, "gpu"),
        ("enable_stitch_fusion", {"reduce_stitch"}, "gpu"),
        ("enable_allreduce_prologue_fusion", {"allreduce_fwd"}, "ascend"),
        ("enable_allreduce_epilogue_fusion", {"allreduce_bwd"}, "ascend"),
    ],
)
def test_patterns_with_a_flag_of_their_own(flag: str, names: set[str], target: str) -> None:
    on, off = (
        {p.name for p in enabled_patterns(PATTERNS, context(target=target, **{flag: value}).options)}
        for value in (True, False)
    )
    assert on - off == names


def test_matmul_depth_is_switched_off_by_its_flag() -> None:
    on, off = (
        {p.name for p in enabled_patterns(PATTERNS, context(disable_matmul_post_fusion=value).options)}
        for value in (False, True)
    )
    assert on - off == {"matmul_depth"}


def test_documented_patterns_stand_on_their_targets() -> None:
    everywhere = {f"elemwise_broadcast_{way}_{how}" for way in ("fwd", "bwd") for how in ("depth", "width")}
    everywhere |= {"reduce_fwd_depth", "reduce_fwd_width", "reshape"}
    for target, more in (
        ("cpu", set[str]()),
        ("gpu", set[str]()),
        ("ascend", {"slice", "elemany_addn", "matmul_depth"}),
    ):
        assert everywhere | more <= set(MODELS[target].patterns)


def test_a_pattern_in_no_table_runs_last() -> None:
    @fusion(Direction.FORWARD)
    def a_new_one(area: Area, limits: Limits) -> list[Area]:
        """Nothing."""
        return []

    found = enabled_patterns([a_new_one, *PATTERNS], context().options)
    assert [pattern.name for pattern in found] == [*CPU, "a_new_one"]


def test_flags_set_limits() -> None:
    assert limits_of(context(composite_op_limit_size=3).options).composite_op_limit_size == 3
    assert limits_of(context(reduce_fuse_depth=5).options).reduce_fuse_depth == 5
    assert limits_of(context(target="ascend").options).reduce_fuse_depth == 10


def test_every_pattern_has_its_turn() -> None:
    declared = {pattern.name for pattern in PATTERNS}
    assert {name for model in MODELS.values() for name in model.patterns} == declared
    assert all(len(set(model.patterns)) == len(model.patterns) for model in MODELS.values())


def test_equal_bodies_are_cut_alike_and_the_log_names_the_operators_of_each() -> None:
    def layer(x):
        return ops.reduce_sum(ops.exp(ops.transpose(x, (1, 0))), axis=0)

    def decided(*, layers: int) -> list[Decision]:
        given = context()
        graph = trace(lambda *inputs: [layer(x) for x in inputs], *[spec((512, 1024))] * layers)
        graph_kernel_splitter(graph_kernel_cluster(graph, given), given)
        return list(given.log.with_code("fused-pattern")) + list(given.log.with_code("not-fused"))

    one, three = decided(layers=1), decided(layers=3)
    assert len(one) > 0
    assert Counter((made.code, made.message) for made in three) == Counter(
        (made.code, made.message) for made in one * 3
    )
    assert len({made.subject for made in three}) == 3 * len({made.subject for made in one})


def test_a_second_run_changes_nothing() -> None:
    once = fused(random_graph(5, 60))
    assert graph_kernel_splitter(once, context()) is once


@given(st.integers(0, 10**6), st.sampled_from(["cpu", "gpu", "ascend"]))
@settings(max_examples=25, deadline=None)
def test_numbers_stay_and_runs_agree(seed: int, target: str) -> None:
    graph = random_graph(seed, 50)
    result = graph_kernel_seal(fused(graph, target=target), context(target=target))
    verify(result)
    same_numbers(graph, result)
    again = graph_kernel_seal(fused(random_graph(seed, 50), target=target), context(target=target))
    assert show(again) == show(result)


def test_kernels_are_few() -> None:
    graph = random_graph(11, 400, hosts=0.0)
    kernels = [node.body for node in fused(graph).operators if node.body is not None]
    assert len(kernels) < len(graph.operators) / 3
    assert all(len(body.operators) <= 200 for body in kernels)


def test_names_follow_content_after_a_change_inside() -> None:
    graph = graph_kernel_cluster(trace(lambda x: ops.neg(ops.exp(x)), spec((4,))), context())
    shorter = map_bodies(graph, lambda body: replace(body, outputs=(body.outputs[0].node.args[0],)))
    result = graph_kernel_splitter(shorter, context())
    assert [node.body.name for node in result.operators if node.body is not None] == ["Fused_Exp_fusion"]


@pytest.mark.parametrize(
    ("rows", "terms", "columns", "dtype", "kernels"),
    [
        (128, 768, 768, "float16", 1),
        (256, 768, 768, "float16", 2),
        (256, 256, 256, "float32", 1),
        (512, 512, 512, "float32", 2),
        (1, 4096, 64, "float16", 2),
        ("N", 64, 64, "float16", 2),
    ],
)
def test_on_a_gpu_a_large_product_is_left_to_the_library(
    rows: int | str, terms: int, columns: int, dtype: str, kernels: int
) -> None:
    graph = trace(
        lambda x, w, b: ops.gelu(ops.add(ops.matmul(x, w), b)),
        *(spec(shape, dtype) for shape in ((rows, terms), (terms, columns), (columns,))),
    )
    done = optimize(graph, target="gpu")
    assert len(done.operators) == kernels
    (first, *_) = done.operators
    assert (first.op.name == "MatMul") == (kernels == 2)
    assert len(first.args) == (3 if kernels == 1 else 2), "a bias stays with the kernel behind the product"
