from dataclasses import replace
from graphlib import CycleError

import numpy as np
import pytest
from fusion_nets import same_numbers

from graphkernel import ops
from graphkernel.cluster.fuse_nodes import extract, splice, with_unique_labels
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import OPS
from kernelgen.tensor.graph import PARAMETER, Builder, Graph
from kernelgen.tensor.verify import verify


def net(x, y):
    a = ops.exp(x)
    b = ops.mul(a, 2.0)
    c = ops.add(b, np.arange(4, dtype=np.float32))
    return ops.sub(c, y), a


GRAPH = trace(net, spec((3, 4)), spec((3, 4)))


def as_kernel(body: Graph) -> Graph:
    return replace(body, name=f"kernel_{len(body.operators)}_{body.operators[0].op.name}")


def named(*names: str) -> list:
    return [node for node in GRAPH.operators if node.op.name in names]


def test_a_group_becomes_a_call_with_what_crosses_its_boundary() -> None:
    result = extract(GRAPH, [named("Mul", "Add")], as_kernel)
    verify(result)
    (call,) = [node for node in result.operators if node.body is not None]
    assert call.body is not None
    assert call.body.name == "kernel_2_Mul"
    assert [value.op.name for value in call.args] == ["Exp", "Constant"], "a tensor constant is an operand"
    assert [node.op.name for node in call.body.nodes if node.op is not PARAMETER] == ["Constant", "Mul", "Add"], (
        "a scalar constant is inside"
    )
    same_numbers(GRAPH, result)


def test_a_value_used_outside_is_a_result() -> None:
    result = extract(GRAPH, [named("Exp", "Mul")], as_kernel)
    (call,) = [node for node in result.operators if node.body is not None]
    assert len(call.types) == 2
    same_numbers(GRAPH, result)


def test_groups_that_wait_for_each_other_are_refused() -> None:
    with pytest.raises(CycleError):
        extract(GRAPH, [named("Exp", "Add"), named("Mul")], as_kernel)


def test_no_groups_no_change() -> None:
    assert extract(GRAPH, [], as_kernel) is GRAPH


def test_splice_undoes_extract() -> None:
    fused = extract(GRAPH, [named("Exp", "Mul"), named("Add", "Sub")], as_kernel)
    flat = fused.rebuild(lambda node, args: splice(node.body, args) if node.body is not None else node.outs)
    assert [node.op.name for node in flat.operators] == [node.op.name for node in GRAPH.operators]
    assert flat == GRAPH


def test_labels_become_unique() -> None:
    x = Builder().parameter("x", spec((2,)))
    first = Builder().emit(OPS["Exp"], x, name="x")
    second = Builder().emit(OPS["Neg"], first, name="x")
    result = with_unique_labels(Graph("g", (x,), (second,)))
    assert [node.name for node in result.nodes] == ["x", "x_1", "x_2"]
    assert with_unique_labels(result) is result
