from dataclasses import replace

from fusion_nets import attention_graph, fused

from graphkernel import ops
from graphkernel.cluster.naming import LONGEST, Content, Names, called, kernel_name, rename_kernels
from graphkernel.frontends.trace import spec, trace
from graphkernel.passes.base import map_bodies
from kernelgen.tensor.graph import Graph


def body(scale: float, shape=(4,)) -> Graph:
    return trace(lambda x: ops.add(ops.mul(x, scale), 1.0), spec(shape), name="body")


def test_operators_make_the_name() -> None:
    assert kernel_name(body(2.0), "fusion") == "Fused_Mul_Add_fusion"


def test_a_long_list_is_cut() -> None:
    def chain(x):
        for _ in range(40):
            x = ops.neg(ops.exp(x))
        return x

    name = kernel_name(trace(chain, spec((4,))), "split")
    assert name.startswith("Fused_Exp_Neg_")
    assert name.endswith("_more_split")
    assert len(name) < LONGEST + 25


def test_equal_content_shares_a_name_and_other_content_gets_a_number() -> None:
    names = Names()
    assert names.named(body(2.0), "fusion").name == "Fused_Mul_Add_fusion"
    assert names.named(body(2.0), "fusion").name == "Fused_Mul_Add_fusion"
    assert names.named(body(3.0), "fusion").name == "Fused_Mul_Add_fusion_1"
    assert names.named(body(2.0, (5,)), "fusion").name == "Fused_Mul_Add_fusion_2"


def test_labels_are_no_content() -> None:
    first, second = body(2.0), trace(lambda other: ops.add(ops.mul(other, 2.0), 1.0), spec((4,)))
    assert Content(first) == Content(second)
    assert Content(first) != Content(body(2.5))


def test_a_body_under_another_name_keeps_what_is_known_of_its_nodes() -> None:
    first = body(2.0)
    nodes, named = first.nodes, called(first, "other")
    assert named == replace(first, name="other") != first
    assert named.nodes is nodes, "they are not looked for again"
    assert called(first, first.name) is first


def test_stale_names_are_renewed() -> None:
    graph = fused(attention_graph())
    stale = map_bodies(graph, lambda body: replace(body, name="Fused_Old_split"))
    renewed = rename_kernels(stale)
    for node in renewed.operators:
        if node.body is not None:
            assert node.body.name.startswith(kernel_name(node.body, "split"))
    assert rename_kernels(renewed) is renewed
