import pytest
from fusion_nets import attention_graph, context, operators, random_graph, same_numbers

from graphkernel import ops
from graphkernel.cluster.ops_lists import CLUSTER_OPS, cluster_ops
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import OPS
from graphkernel.passes.cluster import MOST_SIZES, graph_kernel_cluster
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.types import Attrs, sym
from kernelgen.tensor.verify import verify


def clustered(graph: Graph, **options: object) -> list[str]:
    result = graph_kernel_cluster(graph, context(**options))
    verify(result)
    return operators(result)


CHAIN = trace(lambda x, y: ops.add(ops.sub(ops.add(ops.sub(x, y), 1.0), x), y), spec((4,)), spec((4,)))


def test_host_operators_divide_clusters() -> None:
    assert clustered(attention_graph()) == [
        "MatMul",
        "[Add Transpose]",
        "MatMul",
        "[Mul ReduceMax Sub Exp ReduceSum RealDiv]",
        "MatMul",
        "[Add ReduceSum RealDiv Sub Mul ReduceSum RealDiv Add Rsqrt Mul Mul Add]",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["[Sub Add Sub Add]"]),
        ({"disable_cluster_ops": ("Sub",)}, ["Sub", "[Add]", "Sub", "[Add]"]),
        ({"enable_cluster_ops": ("Sub",), "disable_cluster_ops": ("Sub",)}, ["Sub", "[Add]", "Sub", "[Add]"]),
        ({"enable_cluster_ops_only": ("Sub",)}, ["[Sub]", "Add", "[Sub]", "Add"]),
        ({"enable_cluster_ops_only": ("Add", "Sub"), "disable_cluster_ops": ("Sub",)}, ["[Sub Add Sub Add]"]),
        ({"enable_cluster_ops_only": ("Exp",)}, ["Sub", "Add", "Sub", "Add"]),
    ],
)
def test_flags_choose_operators(options, expected) -> None:
    """The outcomes of MindSpore's flags on the same chain."""
    assert clustered(CHAIN, **options) == expected


def test_levels_admit_lists() -> None:
    graph = trace(lambda x: ops.reduce_sum(ops.exp(x), axis=0), spec((4, 4)))
    assert clustered(graph, fusion_ops_level=0) == ["[Exp]", "ReduceSum"]
    assert clustered(graph, fusion_ops_level=1) == ["[Exp ReduceSum]"]


def test_a_single_operator_is_a_kernel_but_a_reshape_is_not() -> None:
    assert clustered(trace(ops.exp, spec((4,)))) == ["[Exp]"]
    views = trace(lambda x: ops.reshape(ops.reshape(x, (4,)), (2, 2)), spec((4, 1)))
    assert graph_kernel_cluster(views, context()) is views


def test_complex_and_empty_tensors_stay_outside() -> None:
    assert clustered(trace(ops.neg, spec((4,), "complex64"))) == ["Neg"]
    assert clustered(trace(ops.neg, spec((4, 0)))) == ["Neg"]


@pytest.mark.parametrize("name", ["keep_basic", "skip", "inplace_algo"])
def test_attributes_keep_an_operator_out(name: str) -> None:
    builder = Builder()
    x = builder.parameter("x", spec((4,)))
    kept = builder.node(OPS["Exp"], (x,), Attrs.of({name: True}))
    free = builder.node(OPS["Neg"], (kept.out,), Attrs.of({name: False}))
    given = context()
    assert operators(graph_kernel_cluster(Graph("g", (x,), free.outs), given)) == ["Exp", "[Neg]"]
    assert [d.message for d in given.log.with_code("not-fused-kept")] == [f"{kept.name} has the attribute {name}"]


def test_ascend_refuses_what_its_kernels_do_not_take() -> None:
    graph = trace(lambda x: ops.exp(ops.cast(x + x, "float32")), spec((4,), "int64"))
    given = context(target="ascend")
    assert operators(graph_kernel_cluster(graph, given)) == ["Add", "Cast", "[Exp]"]
    assert len(given.log.with_code("not-fused-dtype")) == 2


def test_reasons_are_recorded() -> None:
    given = context(disable_cluster_ops=("Sub",))
    graph_kernel_cluster(CHAIN, given)
    assert [d.code for d in given.log.about("t0")] == ["not-fused-disabled"]
    assert [d.code for d in given.log.about("t1")] == ["fused-single"]
    given = context()
    graph_kernel_cluster(attention_graph(), given)
    assert len(given.log.with_code("not-fused-opaque")) == 3


def test_running_it_again_changes_nothing() -> None:
    once = graph_kernel_cluster(attention_graph(), context())
    assert graph_kernel_cluster(once, context()) is once


@pytest.mark.parametrize("seed", range(6))
def test_numbers_stay(seed: int) -> None:
    graph = random_graph(seed, 40, hosts=0.2)
    result = graph_kernel_cluster(graph, context())
    verify(result)
    same_numbers(graph, result)


@pytest.mark.parametrize("target", CLUSTER_OPS)
def test_lists_name_operators_that_exist(target: str) -> None:
    """Names of the ancestor's lists that graphkernel does not declare are only those it never makes."""
    assert cluster_ops(target, 2) - set(OPS) == set()
    assert cluster_ops(target, 0) <= cluster_ops(target, 1) <= cluster_ops(target, 2)


def test_everything_listed_for_the_cpu_has_a_kernel() -> None:
    vocabulary = pytest.importorskip("kernelgen.composite.scalar_rules")
    known = {
        *(op.name for op in (*vocabulary.ELEMENTWISE, *vocabulary.REDUCTIONS)),
        "Reshape",
        "Transpose",
        "BroadcastTo",
        "TensorMove",
        "Assign",
        *("Argmax", "Argmin", "Concat", "CumSum", "OneHot", "PadAkg", "Split", "StridedSlice", "UnsortedSegmentSum"),
    }
    assert cluster_ops("cpu", 1) - known == set()


def test_an_extent_that_no_operand_has_stays_outside() -> None:
    """A kernel reads symbolic extents off its operands."""
    graph = trace(lambda x, y: ops.broadcast_to(ops.reduce_max(y), x.shape), spec(("N", "M")), spec((3,)))
    given = context(target="ascend")
    result = graph_kernel_cluster(graph, given)
    verify(result)
    assert operators(result)[-1] == "BroadcastTo"
    assert "not-fused-symbol" in {decision.code for decision in given.log}


@pytest.mark.parametrize(("parts", "expected"), [(MOST_SIZES, ["[Concat]"]), (MOST_SIZES + 1, ["Concat"])])
def test_a_join_of_many_unknown_lengths_is_no_kernel(parts: int, expected: list[str]) -> None:
    joined = trace(lambda *given: ops.concat(list(given)), *[spec((f"n{part}", 4)) for part in range(parts)])
    assert clustered(joined) == expected


def test_what_reads_a_length_that_is_a_sum_of_many_is_no_kernel() -> None:
    length = sum((sym(f"n{part}") for part in range(MOST_SIZES)), sym("last"))
    assert clustered(trace(lambda x: ops.add(x, 1.0), spec((length, 4)))) == ["Add"]
