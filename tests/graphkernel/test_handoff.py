from dataclasses import replace

import numpy as np
import pytest
from fusion_nets import attention_graph, fused, layer_norm, random_graph, same_numbers, softmax

import kernelgen
from graphkernel import ops
from graphkernel.errors import FrontendError, GraphKernelError
from graphkernel.frontends.trace import spec, trace
from graphkernel.handoff import from_desc, to_desc
from graphkernel.ops import OPS
from kernelgen.composite.description import Tensor, number_of
from kernelgen.composite.document import Document, Operation
from kernelgen.composite.link import linked
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Alias, Builder, Graph
from kernelgen.tensor.types import Attrs, dtype
from kernelgen.tensor.verify import verify

F32 = dtype("float32")


def test_names_follow_positions_and_scalars_are_inline() -> None:
    desc = to_desc(trace(lambda x, y: ops.add(ops.mul(x, 2.0), y), spec((4,)), spec((4,)), name="Fused_Mul_Add"))
    assert desc.name == "Fused_Mul_Add"
    assert desc.process == "cpu"
    assert [tensor.name for tensor in desc.inputs] == ["input_0", "input_1"]
    assert [tensor.name for tensor in desc.outputs] == ["output_0_1"]
    mul, add = desc.operators
    assert [(value.name, number_of(value)) for value in mul.args] == [("input_0", None), ("constant_0", 2.0)]
    assert [value.name for value in add.args] == ["output_0_0", "input_1"]


def test_labels_do_not_matter() -> None:
    first = trace(lambda x: ops.exp(x * 2.0), spec((4,)), name="kernel")
    second = trace(lambda other: ops.exp(other * 2.0), spec((4,)), name="kernel")
    assert to_desc(first) == to_desc(second)


def test_symbols_and_attributes_pass_through() -> None:
    desc = to_desc(trace(softmax, spec(("N", 8))))
    assert desc.symbols == ("N",)
    assert desc.operators[0].attrs == Attrs.of(axis=(1,), keep_dims=True)


@pytest.mark.parametrize(
    "graph",
    [
        trace(softmax, spec((3, 8))),
        trace(layer_norm, spec(("N", 8)), spec((8,)), spec((8,))),
        trace(lambda x: ops.cast(ops.transpose(ops.reshape(x, (2, 3)), (1, 0)), "float16"), spec((6,))),
        trace(lambda x, y: ops.select(x > y, x, 0.0), spec((4,), "bfloat16"), spec((4,), "bfloat16")),
        trace(lambda x: ops.broadcast_to(ops.reduce_max(x), (2, 2)), spec((4,), "int32")),
    ],
    ids=["softmax", "layer norm", "shape and type", "select", "broadcast"],
)
def test_round_trip(graph: Graph) -> None:
    back = from_desc(to_desc(graph))
    verify(back)
    assert to_desc(back) == to_desc(graph)
    if all(value.type.is_static for value in graph.inputs):
        same_numbers(graph, back)


@pytest.mark.parametrize("seed", range(5))
def test_every_kernel_of_a_net_has_a_description(seed: int) -> None:
    for graph in (fused(attention_graph()), fused(random_graph(seed, 60))):
        for node in graph.operators:
            if node.body is not None:
                desc = to_desc(node)
                assert tuple(tensor.shape for tensor in desc.outputs) == tuple(type_.shape for type_ in node.types)
                same_numbers(node.body, from_desc(desc))


def test_descriptions_pass_the_checker() -> None:
    checker = pytest.importorskip("kernelgen.composite.check")
    for node in fused(attention_graph()).operators:
        if node.body is not None:
            checker.check(to_desc(node))


def test_a_parameter_or_a_repeated_value_as_result_is_copied() -> None:
    builder = Builder()
    x = builder.parameter("x", spec((4,)))
    value = builder.emit(OPS["Exp"], x)
    graph = Graph("kernel", (x,), (x, value, value))
    desc = to_desc(graph)
    names = [tensor.name for tensor in (*desc.inputs, *desc.outputs)]
    assert len(set(names)) == len(names)
    same_numbers(graph, from_desc(desc))


def test_a_tensor_constant_cannot_be_inside() -> None:
    graph = trace(lambda x: x + np.arange(4, dtype=np.float32), spec((4,)))
    with pytest.raises(GraphKernelError, match="make it an operand"):
        to_desc(graph)


def test_an_ordinary_node_has_no_description() -> None:
    with pytest.raises(GraphKernelError, match="is not a kernel"):
        to_desc(trace(ops.exp, spec((4,))).operators[0])


def test_an_alias_becomes_an_assignment_and_back() -> None:
    graph = replace(trace(lambda x, y: x + y, spec((4,)), spec((4,))), aliases=(Alias(0, 1),))
    desc = to_desc(graph)
    assert desc.operators[-1].op.name == "Assign"
    assert desc.updated_inputs == (1,)
    assert desc.outputs == ()
    back = from_desc(desc)
    verify(back)
    assert [alias.input for alias in back.aliases] == [1]


def tensor(name: str, shape: tuple[int, ...] = (4,), value: float | None = None) -> Tensor:
    return Tensor(name, shape, F32, value=value)


def test_an_in_place_operator_of_akg_becomes_an_alias() -> None:
    target, source, result = tensor("target"), tensor("sum"), tensor("result")
    kernel = linked(
        Document(
            "Fused_Add_InplaceAssign",
            (target,),
            (result,),
            (
                Operation("TensorAdd", (target, tensor("one", (1,), 1.0)), (source,)),
                Operation("InplaceAssign", (target, source, source), (result,), Attrs.of(fake_output=False)),
            ),
        )
    )
    graph = from_desc(kernel)
    verify(graph)
    assert graph.aliases == (Alias(1, 0),)
    first, second = evaluate(graph, [np.zeros(4, np.float32)])
    assert first.tolist() == second.tolist() == [1.0] * 4


def test_unknown_operators_are_named() -> None:
    kernel = linked(Document("k", (tensor("x"),), (tensor("y"),), (Operation("Adz", (tensor("x"),), (tensor("y"),)),)))
    with pytest.raises(FrontendError, match=r"operator 0: 'Adz' is not declared \(did you mean 'Add'\?\)"):
        from_desc(kernel)


def test_a_slice_that_ends_before_the_first_element() -> None:
    body = trace(lambda x: ops.exp(ops.strided_slice(x, (4,), (-1,), (-1,))), spec((5,)), name="kernel")
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_allclose(kernelgen.reference(to_desc(body))(x)[0], np.exp(x[::-1]), rtol=1e-6)
