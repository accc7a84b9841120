import numpy as np
from fusion_nets import attention_graph, fused, same_numbers

from graphkernel.cluster.boundary import bind_operands
from graphkernel.frontends.trace import spec
from graphkernel.ops import OPS
from kernelgen.tensor.graph import Builder, Graph, Node, Value
from kernelgen.tensor.verify import verify

TYPE = spec((2, 2))


def calling(build, arguments: int) -> Graph:
    """A graph over inputs x0, x1, ... with one kernel whose body ``build(builder, parameters)`` gives the results."""
    inside, outside = Builder(), Builder()
    parameters = tuple(inside.parameter(f"p{i}", TYPE) for i in range(arguments))
    body = Graph("kernel", parameters, tuple(build(inside, parameters)))
    inputs = tuple(outside.parameter(f"x{i}", TYPE) for i in range(arguments))
    return Graph("g", inputs, outside.fused(body, inputs).outs)


def kernel(graph: Graph) -> Node:
    (call,) = [node for node in graph.operators if node.body is not None]
    return call


def body(graph: Graph) -> Graph:
    (found,) = [node.body for node in graph.operators if node.body is not None]
    return found


def bound(graph: Graph) -> Graph:
    result = bind_operands(graph)
    verify(result)
    same_numbers(graph, result)
    return result


def exp(builder: Builder, value: Value) -> Value:
    return builder.emit(OPS["Exp"], value)


def test_unused_operands_go() -> None:
    assert len(kernel(bound(calling(lambda b, p: [exp(b, p[1])], 2))).args) == 1


def test_equal_operands_are_one() -> None:
    graph = calling(lambda b, p: [b.emit(OPS["Add"], p[0], p[1])], 2)
    twice = Graph("g", graph.inputs[:1], Builder().fused(body(graph), (graph.inputs[0],) * 2).outs)
    assert len(kernel(bound(twice)).args) == 1


def test_a_tensor_constant_becomes_an_operand() -> None:
    table = np.arange(4, dtype=np.float32).reshape(2, 2)
    result = bound(calling(lambda b, p: [b.emit(OPS["Add"], p[0], b.constant(table))], 1))
    assert [value.op.name for value in kernel(result).args] == ["Parameter", "Constant"]
    assert body(result).nodes[1].op.name == "Parameter"


def test_what_is_bound_stays_the_same_object() -> None:
    graph = fused(attention_graph())
    assert bind_operands(graph) is graph
