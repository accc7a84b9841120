import numpy as np

from graphkernel.cluster.boundary import tidy_boundaries
from graphkernel.frontends.trace import spec
from graphkernel.ir.graph import Builder, Graph, Value
from graphkernel.ir.verify import verify
from graphkernel.ops import OPS
from tests.support.fusion_nets import attention_graph, fused, same_numbers

TYPE = spec((2, 2))


def calling(build, arguments: int, keep: tuple[int, ...] | None = None) -> Graph:
    """A graph over inputs x0, x1, ... with one kernel whose body ``build(builder, parameters)`` gives the results."""
    inside, outside = Builder(), Builder()
    parameters = tuple(inside.parameter(f"p{i}", TYPE) for i in range(arguments))
    body = Graph("kernel", parameters, tuple(build(inside, parameters)))
    inputs = tuple(outside.parameter(f"x{i}", TYPE) for i in range(arguments))
    call = outside.fused(body, inputs)
    return Graph("g", inputs, call.outs if keep is None else tuple(call.outs[i] for i in keep))


def kernel(graph: Graph):
    (call,) = [node for node in graph.operators if node.body is not None]
    return call


def tidied(graph: Graph) -> Graph:
    result = tidy_boundaries(graph)
    verify(result)
    same_numbers(graph, result)
    return result


def exp(builder: Builder, value: Value) -> Value:
    return builder.emit(OPS["Exp"], value)


def test_unused_operands_go() -> None:
    assert len(kernel(tidied(calling(lambda b, p: [exp(b, p[1])], 2))).args) == 1


def test_equal_operands_are_one() -> None:
    graph = calling(lambda b, p: [b.emit(OPS["Add"], p[0], p[1])], 2)
    call = kernel(graph)
    twice = Graph("g", graph.inputs[:1], Builder().fused(call.body, (graph.inputs[0],) * 2).outs)
    assert len(kernel(tidied(twice)).args) == 1


def test_unused_and_repeated_results_go() -> None:
    def build(builder, parameters):
        value = exp(builder, parameters[0])
        return [value, builder.emit(OPS["Neg"], value), value]

    assert len(kernel(tidied(calling(build, 1))).types) == 2
    assert len(kernel(tidied(calling(build, 1, keep=(0, 2)))).types) == 1


def test_a_parameter_passes_around_the_kernel() -> None:
    result = tidied(calling(lambda b, p: [p[0], exp(b, p[0])], 1))
    assert result.outputs[0] == result.inputs[0]
    assert len(kernel(result).types) == 1


def test_a_kernel_that_computes_nothing_goes() -> None:
    assert tidied(calling(lambda b, p: [p[1], p[0]], 2)).operators == ()


def test_a_tensor_constant_becomes_an_operand() -> None:
    table = np.arange(4, dtype=np.float32).reshape(2, 2)
    result = tidied(calling(lambda b, p: [b.emit(OPS["Add"], p[0], b.constant(table))], 1))
    assert [value.op.name for value in kernel(result).args] == ["Parameter", "Constant"]
    assert kernel(result).body.nodes[1].op.name == "Parameter"


def test_what_is_tidy_stays_the_same_object() -> None:
    graph = fused(attention_graph())
    assert tidy_boundaries(graph) is graph
