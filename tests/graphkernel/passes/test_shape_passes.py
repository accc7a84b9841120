"""Reshapes with one user each, and shapes that cost nothing to know."""

import numpy as np
from fusion_nets import fused, operators, random_graph, same_numbers
from pass_runs import as_kernel, checked, same_bits

from graphkernel import ops
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor
from graphkernel.passes.base import Context
from graphkernel.passes.cluster import graph_kernel_cluster
from graphkernel.passes.cse import graph_kernel_cse
from graphkernel.passes.redundant_output import eliminate_redundant_output
from graphkernel.passes.shape.shape_ops_splitter import shape_ops_splitter
from graphkernel.passes.shape.shrink_only_shape_needed import shrink_only_shape_needed
from kernelgen.tensor.graph import Graph


def shape_of(x: Tensor) -> Tensor:
    return ops.apply(ops.OPS["Shape"], x)


def most_uses_of_a_reshape(graph: Graph) -> int:
    bodies = [node.body for node in graph.operators if node.body is not None]
    return max(
        (
            len(body.users[node]) + sum(value.node is node for value in body.outputs)
            for body in bodies
            for node in body.operators
            if node.op.name == "Reshape"
        ),
        default=0,
    )


def shared(x: Tensor) -> tuple[Tensor, ...]:
    flat = ops.reshape(ops.exp(x), (x.size,))
    square = ops.reshape(flat, (x.size, 1))
    return ops.neg(flat), ops.abs(square), ops.tanh(square), flat + flat


def test_every_reshape_has_one_user() -> None:
    for rows in (3, "N"):
        graph = as_kernel(trace(shared, spec((rows, 4))))
        result = checked(shape_ops_splitter, graph)
        assert most_uses_of_a_reshape(graph) > 1 == most_uses_of_a_reshape(result)
        same_bits(graph, result, [np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)])


def test_cse_is_its_inverse() -> None:
    graph = as_kernel(trace(shared, spec((3, 4))))
    assert graph_kernel_cse(checked(shape_ops_splitter, graph), Context()) == graph


def test_random_kernels() -> None:
    for seed in range(6):
        graph = graph_kernel_cluster(random_graph(seed, 60, hosts=0.0), Context())
        result = checked(shape_ops_splitter, graph)
        assert most_uses_of_a_reshape(result) <= 1
        same_numbers(graph, result)


def test_a_kernel_result_that_only_shape_needs_is_not_computed() -> None:
    def net(x: Tensor) -> tuple[Tensor, Tensor]:
        y = ops.exp(x)
        return y, shape_of(ops.tanh(y) * 2.0)

    graph = graph_kernel_cluster(trace(net, spec(("N", 4))), Context())
    assert operators(graph) == ["[Exp Tanh Mul]", "Shape"]
    result = eliminate_redundant_output(checked(shrink_only_shape_needed, graph), Context())
    assert operators(fused(result)) == ["[Exp]", "Shape"]
    same_bits(graph, result, [np.ones((3, 4), np.float32)])


def test_shapes_of_products_and_of_static_extents() -> None:
    def net(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        product = ops.matmul(a, b)
        return shape_of(ops.exp(product)), shape_of(ops.reduce_sum(a, axis=0)), ops.reduce_sum(product)

    graph = trace(net, spec(("M", 4)), spec((4, "N")))
    result = checked(shrink_only_shape_needed, graph)
    assert sorted(operators(result)) == ["MatMul", "ReduceSum", "Shape"]
    same_bits(graph, result, [np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)])


def test_what_depends_on_the_answer_is_not_asked() -> None:
    """The only other value of the shape is computed from the Shape itself."""

    def net(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        outer = ops.exp(x) + y
        extents = ops.cast(shape_of(outer), "float32")
        return ops.reduce_sum(extents) + ops.abs(x + y), extents

    graph = trace(net, spec(("M", 1)), spec((1, "N")))
    result = checked(shrink_only_shape_needed, graph)
    same_bits(graph, result, [np.ones((3, 1), np.float32), np.ones((1, 5), np.float32)])
