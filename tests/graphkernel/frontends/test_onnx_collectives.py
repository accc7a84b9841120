"""Collectives in ONNX models, by onnxruntime's names and by MindSpore's: read, run on ranks, written, and read again."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import graphkernel as gk
from graphkernel import ops
from graphkernel.communication.in_memory import run_ranks
from graphkernel.errors import RuntimeFailure
from kernelgen.tensor.order import sequence

X = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
W = np.ones((3, 3), np.float32)


def model(*nodes: Any, outputs: dict[str, list[int]], shape: tuple[int, ...] = (4, 3)) -> onnx.ModelProto:
    """A model of an input ``x``, whose shape is each rank's part, and of an unread constant ``w``."""
    found = helper.make_graph(
        list(nodes), "parts", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in outputs.items()],
        [onnx.numpy_helper.from_array(W, "w")],
    )  # fmt: skip
    domains = [helper.make_opsetid("", 17), *(helper.make_opsetid(name, 1) for name in ("com.microsoft", "mindspore"))]
    return helper.make_model(found, opset_imports=domains, ir_version=9)


def node(domain: str, name: str, operands: list[str], results: list[str], **attributes: Any) -> Any:
    made = helper.make_node(name, operands, results, **attributes)
    made.domain = domain
    return made


def on_ranks(graph: gk.Graph, ranks: int = 2, level: int = 2) -> list[Any]:
    return run_ranks(ranks, lambda over: gk.compile(graph, level, communicator=over)(X[over.rank]), seconds=20)


@pytest.mark.parametrize("level", [0, 2])
def test_onnxruntimes_operators(tmp_path: Path, level: int):
    nodes = (
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        node("com.microsoft", "AllReduce", ["product"], ["total"]),
        helper.make_node("Relu", ["total"], ["y"]),
        node("com.microsoft", "AllGather", ["x"], ["wide"], axis=1, group_size=2),
        node("com.microsoft", "AllToAll", ["x"], ["turned"], group_size=2),
    )
    path = tmp_path / "m.onnx"
    onnx.save(model(*nodes, outputs={"y": [4, 3], "wide": [4, 6], "turned": [4, 3]}), path)
    graph = gk.load(path)
    for rank, (y, wide, turned) in enumerate(on_ranks(graph, level=level)):
        np.testing.assert_allclose(y, np.maximum((X[0] + X[1]) @ W, 0), rtol=1e-5)
        np.testing.assert_array_equal(wide, np.concatenate([X[0], X[1]], axis=1))
        np.testing.assert_array_equal(turned, np.concatenate([X[0][2 * rank :][:2], X[1][2 * rank :][:2]]))


def test_mindspores_operators(tmp_path: Path):
    told = {"group": "world", "rank_size": 2}
    nodes = (
        node("mindspore", "AllReduce", ["x"], ["most"], op="max", **told),
        node("mindspore", "ReduceScatter", ["x"], ["part"], op="sum", **told),
        node("mindspore", "Broadcast", ["x"], ["first"], root_rank=1, **told),
        node("mindspore", "AllReduce", ["x"], ["unread"], op="sum", **told),
    )
    path = tmp_path / "m.onnx"
    onnx.save(model(*nodes, outputs={"most": [4, 3], "part": [2, 3], "first": [4, 3]}), path)
    graph = gk.load(path)
    assert len(sequence(graph)) == 4, "the others wait for what nobody reads here"
    for rank, (most, part, first) in enumerate(on_ranks(graph)):
        np.testing.assert_array_equal(most, X[1])
        np.testing.assert_array_equal(part, (X[0] + X[1])[2 * rank :][:2])
        np.testing.assert_array_equal(first, X[1])


def every(x):
    """All collectives, and a Send and a Receive of which nobody reads anything."""
    a = ops.relu(ops.all_reduce(x * 2.0, rank_size=2)) + 1.0
    b = ops.all_reduce(a, op="min", rank_size=2)
    ops.send(b, 1, rank_size=2)
    c = ops.all_gather(b, rank_size=2)
    d = ops.reduce_scatter(c, rank_size=2)
    e = ops.broadcast(ops.tanh(d), 1, rank_size=2)
    ops.receive(x, 1, rank_size=2)
    return ops.all_to_all(e, rank_size=2)


@pytest.mark.parametrize("level", [0, 2])
def test_what_is_written_is_read_again(tmp_path: Path, level: int):
    graph = gk.optimize(gk.trace(every, gk.spec((4, 3))), level)
    path = tmp_path / "m.onnx"
    gk.save(graph, path)
    again = gk.load(path)
    names = [line.partition("(")[0] for line in sequence(graph)]
    assert [line.partition("(")[0] for line in sequence(again)] == names
    assert len(names) == 8


def test_a_sum_over_however_many_asks_for_a_communicator():
    graph = gk.trace(lambda x: ops.all_reduce(x, rank_size=0), gk.spec((4, 3)))
    with pytest.raises(RuntimeFailure, match="needs group 'world' of other processes"):
        gk.compile(graph)(X[0])
    for ranks in (1, 2):
        for (found,) in on_ranks(graph, ranks):
            np.testing.assert_array_equal(found, X[:ranks].sum(0))
