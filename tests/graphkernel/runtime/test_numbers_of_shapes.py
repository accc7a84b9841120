"""Numbers that follow from shapes have no step: they are computed once for each set of shapes, before the calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.runtime.steps.steps import KernelStep
from kernelgen.tensor.bind import bind_symbols, concrete_shape
from kernelgen.tensor.graph import Graph

Array = np.ndarray[Any, Any]
X = gk.spec(("N", "M"))

PROGRAMS: Mapping[str, str | Graph] = {
    "a root of an extent": """graph g(x: f32[N, M], y: f32[N, K]) {
      s: i64[2] = Shape(x)
      e: i64[1] = StridedSlice(s, begin=(1,), end=(2,), strides=(1,))
      c: f32[1] = Cast(e, dst_type="float32")
      r: f32[1] = Sqrt(c)
      z: f32[N, K] = RealDiv(y, r)
      w: f32[N, K] = Exp(z)
      return w
    }""",
    "the shape of what a kernel makes": """graph g(x: f32[N, M], y: f32[N, K]) {
      a: f32[N, 1] = ReduceSum(y, axis=(1,), keep_dims=True)
      s: i64[2] = Shape(a)
      c: f32[2] = Cast(s, dst_type="float32")
      p: f32[] = ReduceProd(c, axis=(0,), keep_dims=False)
      w: f32[N, M] = Mul(x, p)
      z: f32[N, M] = Mul(w, a)
      return z
    }""",
    "a reshape": """graph g(x: f32[N, M], y: f32[N, K]) {
      s: i64[2] = Shape(x)
      const c: i64[2] = [1, 1]
      t: i64[2] = Mul(s, c)
      e: f32[N, M] = Exp(x)
      r: f32[N, M] = DynamicReshape(e, t, shape=(N, M))
      w: f32[N, M] = Tanh(r)
      return w
    }""",
    "a filled tensor": """graph g(x: f32[N, M], y: f32[N, K]) {
      s: i64[2] = Shape(x)
      t: f32[N, M] = ConstantOfShape(s, shape=(N, M), value=1.5)
      w: f32[N, M] = Mul(x, t)
      return w
    }""",
    "mean": gk.trace(lambda x: ops.reduce_mean(ops.exp(x), axis=(1,), keep_dims=True) + x, X),
    "layer norm": gk.trace(lambda x, g, b: ops.layer_norm(x, g, b), X, gk.spec(("M",)), gk.spec(("M",))),
    "variance": gk.trace(lambda x: ops.reduce_mean(ops.square(x - ops.reduce_mean(x, 0, keep_dims=True)), 0), X),
}  # fmt: skip
SIZES = ({"N": 3, "M": 5, "K": 4}, {"N": 2, "M": 9, "K": 1}, {"N": 3, "M": 5, "K": 4})


def graph_of(name: str) -> Graph:
    given = PROGRAMS[name]
    return gk.parse(given) if isinstance(given, str) else given


def arrays_for(graph: Graph, sizes: Mapping[str, int]) -> list[Array]:
    generator = np.random.default_rng(0)
    shapes = (concrete_shape(value.type.shape, sizes) for value in graph.inputs)
    return [generator.standard_normal(shape).astype(np.float32) for shape in shapes]


def agree(got: Sequence[Array], graph: Graph, arrays: Sequence[Array]) -> None:
    for one, want in zip(got, gk.evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(one, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("host", ["auto", "numpy"])
@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_of_different_shapes_agree(name: str, level: int, host: str) -> None:
    graph = graph_of(name)
    executable = gk.compile(graph, level, host=host, flags="--enable_debug_mode=true" if level == 3 else None)
    for sizes in SIZES:
        arrays = arrays_for(graph, sizes)
        agree(executable(*arrays), graph, arrays)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("a reshape", "a filled tensor")])
def test_kernels_are_all_that_runs(name: str) -> None:
    graph = graph_of(name)
    plan = gk.compile(graph).plan
    assert plan.numbers
    assert all(isinstance(step, KernelStep) for step in plan.steps)
    assert len(plan.steps) == 1 or name in ("the shape of what a kernel makes", "variance")


def test_a_caller_may_write_into_a_shape_that_it_was_given() -> None:
    text = """graph g(x: f32[N, 4]) {
      s: i64[2] = Shape(x)
      c: f32[2] = Cast(s, dst_type="float32")
      y: f32[N, 2] = BroadcastTo(c, shape=(N, 2))
      return s, c, y
    }"""
    executable = gk.compile(gk.parse(text))
    x = np.zeros((3, 4), np.float32)
    for _ in range(2):
        shape, floats, rows = executable(x)
        assert (shape.tolist(), floats.tolist(), rows.tolist()) == ([3, 4], [3, 4], [[3, 4]] * 3)
        for array in (shape, floats, rows):
            array[:] = 77


def test_a_kernel_that_writes_in_place_writes_into_a_copy() -> None:
    text = """kernel K(a: f32[2]) {
      t: f32[2] = Neg(a)
      return t -> a
    }
    graph g(x: f32[N, 4]) {
      s: i64[2] = Shape(x)
      c: f32[2] = Cast(s, dst_type="float32")
      k: f32[2] = K(c)
      return k
    }"""
    executable = gk.compile(gk.parse(text))
    for _ in range(3):
        assert executable(np.zeros((3, 4), np.float32))[0].tolist() == [-3, -4]


def test_what_is_drawn_and_what_onnx_computes_stay_steps() -> None:
    text = """graph g(x: f32[N, 4]) {
      s: i64[2] = Shape(x)
      c: f32[2] = Cast(s, dst_type="float32")
      d: f32[2], m: f32[2] = Dropout(c)
      n: i64[2] = Onnx(s, op_type="Neg", opset=18, result_types=("i64[2]",))
      return d, n
    }"""
    graph = gk.parse(text)
    plan = gk.compile(graph, opt_level=0, host="numpy").plan
    assert [node.op.name for node in plan.numbers] == ["Shape", "Cast"]
    assert bind_symbols(graph.inputs, [np.zeros((3, 4), np.float32)]) == {"N": 3}


CHAIN = """graph g(x: f32[N, M], w: f32[9, 4]) {
  s: i64[2] = Shape(x)
  n: i64[] = Gather(s, 1, axis=0)
  e: i64[1] = Reshape(n, shape=(1,))
  a: f32[] = Extent(value=N*M + 1, dst_type="float32")
  r: f32[1, 4] = Gather(w, e, axis=0)
  y: f32[1, 4] = Mul(r, a)
  return y, n
}"""


def test_numbers_that_are_extents_need_no_operators_to_run() -> None:
    """So whoever loads a package loads none: neither what computes them nor what lies in between."""
    graph = gk.parse(CHAIN)
    executable = gk.compile(graph, opt_level=0, host="numpy")
    assert executable.plan.numbers
    assert not executable.program.numbers
    for sizes in ({"N": 3, "M": 5}, {"N": 2, "M": 8}):
        x = np.zeros((sizes["N"], sizes["M"]), np.float32)
        w = np.arange(36, dtype=np.float32).reshape(9, 4)
        agree(executable(x, w), graph, [x, w])
        assert executable(x, w)[1].dtype == np.int64
