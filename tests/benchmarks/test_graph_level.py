"""The commands of the graph level run at small size, count what they should, and refuse wrong numbers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import graphkernel as gk
from benchmarks import networks, scale
from benchmarks.networks import Launches
from benchmarks.peers.saved_graph import launches
from graphkernel import ops
from kernelgen.tensor.graph import Graph, Node, Value, keep
from tests.support.sources import ROOT

SAVED = """\
# IR entry: @main
subgraph @kernel(%para3_a, %para4_b) {
  %0(c) = PrimFunc_Add(%para3_a, %para4_b)
      : (<Tensor[Float32], (8, 64)>, <Tensor[Float32], (64)>) -> (<Tensor[Float32], (8, 64)>)
  Return(%0)
}

subgraph @main() {
  %0(w) = Load(%para2_w, UMonad[U])
      : (<Ref[Tensor[Float32]], (64, 64), ref_key=w, is_parameter>, <UMonad, NoShape>) -> (<Tensor[Float32], (64, 64)>)
  %1(x) = PrimFunc_MatMul(%para1_x, %0, Bool(0)) primitive_attrs: {dst_type: F32}
      : (<Tensor[Float16], (8, 64)>, <Tensor[Float32], (64, 64)>, <Bool, NoShape>) -> (<Tensor[Float32], (8, 64)>)
  %2(y) = call @kernel(%1, %0)
      : (<Tensor[Float32], (8, 64)>, <Tensor[Float32], (64)>) -> (<Tensor[Float32], (8, 64)>)
  %3(z) = LayerNorm(%2, Tensor(shape=[], dtype=Float32, value=1))
      : (<Tensor[Float32], (8, 64)>, <Tensor[Float32], ()>) -> (<Tuple[Tensor[Float32]*2], TupleShape((8, 64), (8, 1))>)
  %4(r) = PrimFunc_Reshape(%2, (512))
      : (<Tensor[Float32], (8, 64)>, <Tuple[Int64], TupleShape(())>) -> (<Tensor[Float32], (512)>)
  Return(%4)
}
"""


def test_launches_of_ours_are_kernels_and_operators_but_no_views() -> None:
    def net(x, y):
        return ops.reshape(ops.matmul(ops.tanh(x) + 1.0, y), (32,))

    graph = gk.trace(net, gk.spec((4, 4)), gk.spec((4, 8)))
    assert Launches.of(graph, "cpu") == Launches(kernels=0, outside=3, launches=3, bytes=4 * (32 + 32 + 16 + 32 + 32))
    assert Launches.of(gk.optimize(graph), "cpu") == Launches(
        kernels=1, outside=1, launches=2, bytes=4 * (32 + 16 + 32 + 32)
    )


def test_a_kernel_of_two_launches_is_two() -> None:
    """A sum of many numbers ends in a launch that adds up what the blocks have found."""
    graph = gk.trace(lambda x: ops.exp(ops.reduce_sum(x * x)), gk.spec((1 << 20,)))
    counts = [Launches.of(gk.optimize(graph, target=target), target) for target in ("cpu", "gpu")]
    assert [(count.kernels, count.launches) for count in counts] == [(1, 1), (1, 2)]


def test_launches_of_a_graph_that_mindspore_saved() -> None:
    product, kernel, norm = 2 * 512 + 4 * 4096 + 4 * 512, 4 * (512 + 64 + 512), 4 * (512 + 512 + 8)
    assert launches(SAVED) == {
        "kernels": 1,
        "outside": 2,
        "bytes": product + kernel + norm,
        "outside_names": {"LayerNorm": 1, "MatMul": 1},
    }


@pytest.mark.parametrize(
    ("what", "case"), [("networks", "llama_block"), pytest.param("scale", "branches", marks=pytest.mark.long)]
)
def test_command_writes_json(what: str, case: str, tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    command = [sys.executable, "-m", "benchmarks", what, "--json", str(out), "--tiny", "--case", case]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300, stdout=subprocess.DEVNULL)
    record = json.loads(out.read_text())
    assert list(record["cases"]) == [case]
    assert record["machine"]["versions"]["numpy"]


@pytest.mark.parametrize("name", scale.SHAPES)
def test_shapes_have_about_the_wanted_size(name: str) -> None:
    assert 0.8 < len(scale.SHAPES[name](1000).operators) / 1000 < 1.2


def test_wrong_numbers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    right = gk.optimize
    monkeypatch.setattr(gk, "optimize", lambda graph, *options: _confused(right(graph, *options)))
    with pytest.raises(ArithmeticError, match="llama_block: the optimized graph is off by"):
        networks.measured("llama_block", tiny=True)


def _confused(graph: Graph) -> Graph:
    """The graph with other operands of its products."""

    def wrong(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        swapped = (args[0], args[0]) if node.op.name == "BatchMatMul" and args[0].type == args[1].type else args
        return keep(node, swapped).outs

    return graph.rebuild(wrong)
